package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/logs"
)

var errEnough = errors.New("enough")

// A log takes a bounded place, and who follows it misses nothing when its file
// is turned over.
func TestLogTurnsOver(t *testing.T) {
	s := newLogStore(t.TempDir())
	defer s.close()
	lf := s.file("f")
	const n = 400 // of 60 KB: a file holds some 140
	put := func(i int) {
		if err := lf.append(logs.Message{Name: "f", Text: fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 60<<10))}); err != nil {
			t.Error(err)
		}
	}
	seen := make(chan int)
	done := make(chan error, 1)
	go func() {
		i := 0
		done <- lf.send(t.Context(), logs.Request{Follow: true}, func(line []byte) error {
			var m logs.Message
			if err := json.Unmarshal(line, &m); err != nil || !strings.HasPrefix(m.Text, fmt.Sprint(i, " ")) {
				return fmt.Errorf("want message %d, got %.20q, %v", i, m.Text, err)
			}
			i++
			seen <- i
			if i == n {
				return errEnough
			}
			return nil
		}, func() error { return nil })
	}()
	// It may be behind by most of a file, so that it reads on in the older one.
	for i, last := 0, 0; i < n; i++ {
		put(i)
		for ; last < i-100; last++ {
			<-seen
		}
		if i == n-1 {
			for ; last < n; last++ {
				<-seen
			}
		}
	}
	if err := <-done; !errors.Is(err, errEnough) {
		t.Error(err)
	}
	for _, path := range []string{lf.path, lf.path + older} {
		st, err := os.Stat(path)
		if err != nil || st.Size() > maxLogFile+6*maxLogLine || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
	}
	// Both files together have the last messages.
	got := 0
	err := lf.send(t.Context(), logs.Request{Tail: 200}, func([]byte) error { got++; return nil }, nil)
	if err != nil || got != 200 {
		t.Errorf("%d of the last 200, %v", got, err)
	}
}

// One that is left behind goes on with the oldest that is kept.
func TestLogLeftBehind(t *testing.T) {
	s := newLogStore(t.TempDir())
	defer s.close()
	lf := s.file("f")
	var p logPart
	defer func() { p.close() }()
	first := func() string {
		t.Helper()
		for {
			next, changed, err := lf.after(p)
			if p = next; err != nil || changed != nil {
				t.Fatalf("nothing more: %v", err)
			}
			for line := range p.lines() {
				var m logs.Message
				if err := json.Unmarshal(line, &m); err != nil {
					t.Fatal(err)
				}
				return m.Text
			}
		}
	}
	put := func(text string) {
		t.Helper()
		if err := lf.append(logs.Message{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	turn := func() {
		t.Helper()
		lf.size = maxLogFile + 1
	}
	if _, changed, err := lf.after(p); changed == nil || err != nil {
		t.Errorf("of no file: %v, %v", changed, err)
	}
	put("a")
	turn()
	put("b") // the file of a, not seen before, is the older one now
	for _, want := range []string{"a", "b"} {
		if got := first(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, text := range []string{"c", "d", "e"} {
		turn()
		put(text)
	}
	for _, want := range []string{"d", "e"} { // c is gone
		if got := first(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := s.drop("f"); err != nil {
		t.Error(err)
	}
	put("f")
	if got := first(); got != "f" {
		t.Errorf("%q after all was dropped", got)
	}
	next, changed, err := lf.after(p)
	if p = next; changed == nil || err != nil {
		t.Fatalf("%v, %v", changed, err)
	}
	put("g")
	<-changed
	if got := first(); got != "g" {
		t.Errorf("%q", got)
	}
}

func TestLogBrokenOff(t *testing.T) {
	s := newLogStore(t.TempDir())
	defer s.close()
	if err := s.file("f").append(logs.Message{Text: "a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		fail error
	}{"context": {ctx, nil}, "client": {t.Context(), errEnough}} {
		for _, follow := range []bool{false, true} {
			if err := s.file("f").send(c.ctx, logs.Request{Follow: follow}, func([]byte) error { return c.fail }, func() error { return c.fail }); err == nil {
				t.Errorf("%s: goes on", name)
			}
		}
	}
}
