package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farmhand/skeleton/ledger"
)

// numbers are n lines of JSON, some of them long, with empty lines between.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[%d,%q]\n\n", i, strings.Repeat("x", i%7*1000))
	}
	return b.String()
}

// drain reads all pieces and returns the tasks' numbers.
func drain(t *testing.T, in *input) (tasks []int, pieces int) {
	t.Helper()
	for {
		p, err := in.next(t.Context())
		if errors.Is(err, io.EOF) {
			return tasks, pieces
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.tasks != len(p.lines)+len(p.files) || len(p.Body) > pieceBytes+64<<10 {
			t.Fatalf("%d tasks, %d lines, %d files, %d bytes", p.tasks, len(p.lines), len(p.files), len(p.Body))
		}
		for _, line := range p.lines {
			var n int
			if _, err := fmt.Sscanf(string(line), "[%d,", &n); err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, n)
		}
		pieces++
	}
}

func upTo(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

func TestLinesInPieces(t *testing.T) {
	const n = 8000 // about 24 MB
	in, err := openInput(strings.NewReader(numbers(n)), nil, true, "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	first, err := in.next(t.Context())
	if err != nil || first.last {
		t.Fatal(first.last, err)
	}
	in.unread(first)
	if err := in.skip(t.Context(), first.tasks+17); err != nil {
		t.Fatal(err)
	}
	tasks, pieces := drain(t, in)
	if !slices.Equal(tasks, upTo(first.tasks+17, n)) || pieces < 2 {
		t.Errorf("%d tasks in %d pieces", len(tasks), pieces)
	}
	if err := in.skip(t.Context(), 1); err == nil {
		t.Error("skipped what is not there")
	}
}

// What a slow producer has written goes out without waiting for more.
func TestSlowLinesAreSent(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	in, err := openInput(r, nil, true, "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	go func() { _, _ = io.WriteString(w, "1\n2\n") }()
	p, err := in.next(t.Context())
	if err != nil || p.last || string(p.Body) != "1\n2\n" {
		t.Errorf("%q, last %v, %v", p.Body, p.last, err)
	}
}

func TestFilesInPieces(t *testing.T) {
	dir := t.TempDir()
	for i := range pieceFiles + 10 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.txt", i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := openInput(nil, []string{dir}, false, "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	p, err := in.next(t.Context())
	if err != nil || p.tasks != pieceFiles || p.last || bytes.Count(p.Body, []byte("Content-Type: text/plain")) != pieceFiles {
		t.Fatalf("%d tasks, last %v, %v", p.tasks, p.last, err)
	}
	in.unread(p)
	if err := in.skip(t.Context(), pieceFiles+9); err != nil {
		t.Fatal(err)
	}
	if p, err = in.next(t.Context()); err != nil || p.tasks != 1 || !p.last || filepath.Base(p.files[0]) != "0509.txt" {
		t.Errorf("%v %v", p.files, err)
	}
}

func TestSaveNames(t *testing.T) {
	for _, c := range []struct{ files, want []string }{
		{[]string{"a/cat.jpg", "b/cat.jpg", "b/CAT.jpg", "cat.gif"}, []string{"cat.jpg", "cat-2.jpg", "CAT-3.jpg", "cat.gif"}},
		{[]string{"errors.ndjson", "errors", "errors.txt"}, []string{"errors-2.ndjson", "errors-3", "errors.txt"}},
		{[]string{".env", "a/.env", "no-extension", "cat-2.jpg", "a/cat-2.jpg"}, []string{".env", ".env-2", "no-extension", "cat-2.jpg", "cat-2-2.jpg"}},
		// Only an extension added to one of them would make these the same.
		{[]string{"cat", "cat.jpg"}, []string{"cat", "cat-2.jpg"}},
		{[]string{"cat.gif.jpg", "cat.gif"}, []string{"cat.gif.jpg", "cat-2.gif"}},
	} {
		if got := saveNames(c.files); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.files, got, c.want)
		}
	}
}

func TestFileName(t *testing.T) {
	for _, c := range []struct{ name, media, want string }{
		{"hills.jpg", "image/jpeg", "hills.jpg"},
		{"hills.JPEG", "image/jpeg", "hills.JPEG"},
		{"hills.gif", "image/jpeg", "hills.gif.jpg"},
		{"a.txt", "text/plain; charset=utf-8", "a.txt"},
		{"a.bin", "", "a.bin"},
		{"a.strange", "", "a.strange.bin"},
		{"task-000001", "application/json", "task-000001.json"},
		{"v1.2", "nonsense", "v1.2.bin"},
	} {
		if got := fileName(c.name, c.media); got != c.want {
			t.Errorf("%s of %q: %s, want %s", c.name, c.media, got, c.want)
		}
	}
}

// A dead letter's reason is what the worker's problem document says.
func TestWhy(t *testing.T) {
	answer := `{"type":"bad-task","status":422,"detail":"the task does not have this field","field":"rate","fix":"add it"}`
	for _, c := range []struct {
		letter ledger.DeadLetter
		want   string
	}{
		{ledger.DeadLetter{Reason: "the worker refuses the task (422): " + answer, Answer: answer + "\n"},
			"the worker refuses the task (422): rate: the task does not have this field (add it)"},
		{ledger.DeadLetter{Reason: "worker lost"}, "worker lost"},
		{ledger.DeadLetter{Reason: "the worker failed (500): a\n\tb", Answer: "a\n\tb"}, "the worker failed (500): a b"},
		{ledger.DeadLetter{Reason: `the worker failed (500): {"a":1}`, Answer: `{"a":1}`}, `the worker failed (500): {"a":1}`},
	} {
		if got := why(c.letter); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A job's id cannot lead out of the state folder.
func TestRecordPath(t *testing.T) {
	if got := recordPath("state", "../../etc/passwd"); got != filepath.Join("state", "jobs", "passwd.json") {
		t.Error(got)
	}
}
