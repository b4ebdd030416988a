// Command worker is the worker of the fault suite: it does what its task says.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"farmhand/internal/fn"
)

// task is the body of a task.
type task struct {
	Sleep  string `json:"sleep"`  // before the answer
	Burn   string `json:"burn"`   // keep the processor busy so long before the answer
	File   string `json:"file"`   // append this process's number: one line a run
	Gate   string `json:"gate"`   // hang while this file is not there
	Crash  bool   `json:"crash"`  // end the process with 1
	Status int    `json:"status"` // of the answer
	Until  int    `json:"until"`  // answer Status only to attempts below this one
	Retry  string `json:"retry"`  // Retry-After of the answer
	Answer string `json:"answer"`
	Big    int    `json:"big"` // bytes of the answer
}

func main() {
	if err := note(os.Getenv("starts")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fn.Main("worker", func(context.Context, *slog.Logger) (*fn.Service, error) {
		return &fn.Service{Handler: http.HandlerFunc(serve)}, nil
	})
}

func serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var t task
	if err == nil {
		err = json.Unmarshal(body, &t)
	}
	if err == nil {
		err = note(t.File)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	if t.Crash {
		os.Exit(1)
	}
	if err := t.spend(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	t.answer(w, r.Header.Get("X-Farm-Attempt"))
}

// spend takes the time the task takes, unless the caller goes away.
func (t *task) spend(ctx context.Context) error {
	for _, d := range []struct {
		text string
		busy bool
	}{{t.Sleep, false}, {t.Burn, true}} {
		if d.text == "" {
			continue
		}
		length, err := time.ParseDuration(d.text)
		if err != nil {
			return err
		}
		end, cancel := context.WithTimeout(ctx, length)
		for d.busy && end.Err() == nil { // a processor that has no time for anything else
		}
		<-end.Done()
		cancel()
	}
	for t.Gate != "" && ctx.Err() == nil {
		if _, err := os.Stat(t.Gate); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return ctx.Err()
}

func (t *task) answer(w http.ResponseWriter, attempt string) {
	n := 0
	_, _ = fmt.Sscan(attempt, &n) // without the header it is 0
	if t.Retry != "" && (t.Until == 0 || n < t.Until) {
		w.Header().Set("Retry-After", t.Retry)
	}
	if t.Status != 0 && (t.Until == 0 || n < t.Until) {
		w.WriteHeader(t.Status)
	}
	_, _ = io.WriteString(w, t.Answer+strings.Repeat("x", t.Big)) // a caller that went away needs no answer
}

// note appends this process's number to a file; small appends are whole.
func note(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, os.Getpid())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
