package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

// follow waits for a job and takes its results.
type follow struct {
	wait    bool
	out     string
	ordered bool
	keep    bool
}

func (f *follow) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.wait, "wait", false, "wait for the results and print them, a line each")
	fl.StringVar(&f.out, "out", "", "wait for the results and save each in this folder")
	fl.BoolVar(&f.ordered, "ordered", false, "results in the order of the tasks")
	fl.BoolVar(&f.keep, "keep", false, "leave the results on the server (for 24 h) after they were saved")
}

func (f *follow) wanted() bool { return f.wait || f.out != "" }

// run follows a job to its end. names are those of the files it was made of.
func (f *follow) run(cmd *cobra.Command, c *connection, client *jobclient.Client, job string, names []string) error {
	ctx := cmd.Context()
	j, err := client.Job(ctx, job)
	if err != nil {
		return err
	}
	handle, done := f.printer(cmd), func() error { return nil }
	if f.out != "" {
		s, err := newSaver(f.out, names)
		if err != nil {
			return err
		}
		handle, done = s.save, s.close
	}
	bar := newProgress(cmd.ErrOrStderr(), "results", j.Total)
	dead := 0
	_, end, err := client.Results(ctx, job, jobclient.Query{Ordered: f.ordered, Follow: true, Ack: f.out != "" && !f.keep}, func(r jobapi.Result) error {
		if r.State == skeleton.Dead {
			dead++
		}
		bar.add(1)
		return handle(r)
	})
	bar.finish()
	if cerr := done(); err == nil {
		err = cerr
	}
	if interrupted(ctx) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Stopped following; the job goes on. Results: farmhand job '%s' %s\n", job, f.again())
		return &exitError{code: exitInterrupted}
	}
	if err != nil || !end {
		return err
	}
	if j, err = client.Job(ctx, job); err != nil {
		return err
	}
	if c.json && f.out != "" {
		if err := c.print(cmd, j, nil); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d done, %d dead, %d cancelled of %d\n", j.ID, j.Done, j.Dead, j.Cancelled, j.Total)
	}
	if dead > 0 || j.Cancelled > 0 {
		return &exitError{code: exitPartly}
	}
	return nil
}

func (f *follow) again() string {
	if f.out != "" {
		return "--out " + f.out
	}
	return "--wait"
}

// printer writes each result as a line of JSON.
func (f *follow) printer(cmd *cobra.Command) func(jobapi.Result) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	return func(r jobapi.Result) error { return enc.Encode(r) }
}

// saver writes results into a folder.
type saver struct {
	dir    string
	names  []string
	taken  map[string]bool
	errors *os.File
}

func newSaver(dir string, names []string) (*saver, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &saver{dir: dir, names: names, taken: map[string]bool{}}, nil
}

// save writes a result under the name of its input, with the extension of its
// own type; what died goes to errors.ndjson.
func (s *saver) save(r jobapi.Result) error {
	name := fmt.Sprintf("task-%06d", r.Index)
	if r.Index < len(s.names) {
		base := filepath.Base(s.names[r.Index])
		name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if r.State == skeleton.Dead {
		return s.fail(r, name)
	}
	body := r.Base64
	if r.Body != nil {
		body = r.Body
	}
	name = unique(s.taken, name+extension(r.Type))
	tmp, err := os.CreateTemp(s.dir, ".part-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(body)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(s.dir, name))
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // the first error is the one to tell
	}
	return err
}

func (s *saver) fail(r jobapi.Result, name string) error {
	if s.errors == nil {
		f, err := os.Create(filepath.Join(s.dir, "errors.ndjson"))
		if err != nil {
			return err
		}
		s.errors = f
	}
	return json.NewEncoder(s.errors).Encode(map[string]any{"input": name, "index": r.Index, "status": r.Status, "reason": r.Reason, "attempt": r.Attempt})
}

func (s *saver) close() error {
	if s.errors == nil {
		return nil
	}
	return s.errors.Close()
}

// progress is a bar on a terminal, and a plain line now and then elsewhere.
type progress struct {
	bar   *progressbar.ProgressBar
	w     io.Writer
	what  string
	total int
	n     int
	told  time.Time
}

const tellEvery = 2 * time.Second

func newProgress(w io.Writer, what string, total int) progress {
	p := progress{w: w, what: what, total: total, told: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		most := int64(total)
		if total == 0 {
			most = -1
		}
		p.bar = progressbar.NewOptions64(most, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p
}

func (p *progress) add(n int) {
	p.n += n
	switch {
	case p.bar != nil:
		_ = p.bar.Add(n) // only a picture
	case p.w != nil && time.Since(p.told) >= tellEvery:
		p.told = time.Now()
		p.tell()
	}
}

func (p *progress) tell() {
	if p.total > 0 {
		fmt.Fprintf(p.w, "%s: %d of %d\n", p.what, p.n, p.total)
		return
	}
	fmt.Fprintf(p.w, "%s: %d\n", p.what, p.n)
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish() // only a picture
	}
}
