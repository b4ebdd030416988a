package jobapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"farmhand/internal/problem"
	"farmhand/skeleton"
)

const fuzzLimit = 1 << 10

// collect decodes a body and checks what holds for every body: tasks within the
// limit, or a problem of the client's that names a field and a fix.
func collect(t *testing.T, decode func(sink) error) []skeleton.NewTask {
	t.Helper()
	var tasks []skeleton.NewTask
	err := decode(func(n skeleton.NewTask) error {
		tasks = append(tasks, n)
		return nil
	})
	for i, n := range tasks {
		if len(n.Body) > fuzzLimit || n.Class < 0 || n.Class >= skeleton.Classes || n.Deadline < 0 || n.Attempts < 0 {
			t.Errorf("task %d: %+v", i, n)
		}
	}
	var p *problem.Problem
	if err != nil && (!errors.As(err, &p) || p.Status < 400 || p.Status >= 500 || p.Field == "" && p.Fix == "") {
		t.Errorf("%v is no problem of the client's", err)
	}
	if err != nil {
		return nil
	}
	return tasks
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"worker":"w","tasks":[1,{"a":[2]},"x"]}`, `{"worker":"w","class":1,"items":[{"body":1,"key":"k"},{"body_base64":"AA=="}]}`,
		`{"worker":"w","tasks":[1,2`, `{"tasks":[],"tasks":[]}`, `[]`, `{"a":{"b":`, "{\"worker\":\"\\u0000\"}", `{"tasks":[1]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := options{}
		tasks := collect(t, func(take sink) error {
			return decodeJSON(bytes.NewReader(raw), &o, fuzzLimit, func() error { return nil }, take)
		})
		if tasks != nil && !json.Valid(raw) {
			t.Errorf("accepted what is no JSON: %q", raw)
		}
	})
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{"1\n2\n", "{\"body\":1}\n", "\r\n\n3", "{", "\"" + string(bytes.Repeat([]byte("x"), 2000)) + "\""} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, items bool) {
		tasks := collect(t, func(take sink) error {
			return decodeLines(bytes.NewReader(raw), options{}, items, fuzzLimit, take)
		})
		if items {
			return
		}
		// What was accepted comes out again, line by line.
		want := bytes.Fields(nil)
		for _, line := range bytes.Split(raw, []byte("\n")) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, line)
			}
		}
		for i := range tasks {
			if len(tasks) != len(want) || !bytes.Equal(tasks[i].Body, want[i]) {
				t.Fatalf("%d tasks of %d lines", len(tasks), len(want))
			}
		}
	})
}

func FuzzParts(f *testing.F) {
	f.Add([]byte("--b\r\nContent-Type: a/b\r\n\r\nx\r\n--b--\r\n"))
	f.Add([]byte("--b\r\n\r\n"))
	f.Add([]byte("--b\r\nContent-Transfer-Encoding: base64\r\n\r\nx\r\n--b--"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(bytes.NewReader(raw)))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		collect(t, func(take sink) error { return decodeParts(r, options{}, fuzzLimit, take) })
	})
}

func FuzzJobID(f *testing.F) {
	f.Add("echo~01ARZ3NDEKTSV4RRFFQ69G5FAV")
	f.Add("~")
	f.Fuzz(func(t *testing.T, id string) {
		if farm, ok := splitJob(id); ok && (id[len(farm)] != '~' || len(id) != len(farm)+1+26) {
			t.Errorf("%q", id)
		}
	})
}
