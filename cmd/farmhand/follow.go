package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

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
	fl.BoolVar(&f.keep, "keep", false, "with --out: leave the results on the server (for 24 h) after they were saved")
}

func (f *follow) wanted() bool { return f.wait || f.out != "" }

// check makes the folder before any work is posted.
func (f *follow) check() error {
	if f.out == "" {
		return nil
	}
	if st, err := os.Stat(f.out); err == nil && !st.IsDir() {
		return usage("--out %s: it is a file; name a folder", f.out)
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return usage("--out: %v", err)
	}
	return nil
}

// run follows a job to its end. files are those it was made of, one a task.
func (f *follow) run(cmd *cobra.Command, c *connection, client *jobclient.Client, job string, files []string) error {
	n, err := f.take(cmd, client, job, files)
	if interrupted(cmd.Context()) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Stopped following; the job goes on. Its results: farmhand job '%s' %s%s\n", job, f.again(), c.hint())
		return &exitError{code: exitInterrupted}
	}
	if err != nil {
		return err
	}
	return f.summary(cmd, c, client, job, n)
}

// take prints or saves the results until there are no more, and counts them.
func (f *follow) take(cmd *cobra.Command, client *jobclient.Client, job string, files []string) (n int, err error) {
	ctx := cmd.Context()
	j, err := client.Job(ctx, job)
	if err != nil {
		return 0, err
	}
	f.idle(cmd, client, j)
	query := jobclient.Query{Ordered: f.ordered, Follow: true, Ack: f.out != "" && !f.keep}
	handle, done := f.printer(cmd), func() error { return nil }
	if f.out != "" {
		s := newSaver(f.out, job, files)
		query.Kept = s.sync
		handle, done = s.save, func() error {
			fmt.Fprintln(cmd.ErrOrStderr(), s.told())
			return s.close()
		}
	}
	bar := newProgress(cmd.ErrOrStderr(), "results", j.Total)
	_, _, err = client.Results(ctx, job, query, func(r jobapi.Result) error {
		bar.add(1)
		n++
		return handle(r)
	})
	bar.finish()
	if cerr := done(); err == nil {
		err = cerr
	}
	return n, err
}

// idle tells who waits for results why there may be none for long.
func (f *follow) idle(cmd *cobra.Command, client *jobclient.Client, j jobapi.JobView) {
	if j.Pending == 0 {
		return
	}
	if farm, err := client.Farm(cmd.Context(), j.Worker); err == nil && farm.Ready == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "worker %s has 0 ready replicas: the tasks wait for one\n", j.Worker)
	}
}

// summary tells how the job went, also by the exit code.
func (f *follow) summary(cmd *cobra.Command, c *connection, client *jobclient.Client, job string, n int) error {
	j, err := client.Job(cmd.Context(), job)
	if err != nil {
		return err
	}
	if c.json && f.out != "" {
		if err := c.print(cmd, j, nil); err != nil {
			return err
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d done, %d dead, %d cancelled of %d\n", j.ID, j.Done, j.Dead, j.Cancelled, j.Total)
	if gone := j.Done + j.Dead - n; gone > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d results are gone: they were taken before with --out, which without --keep leaves none on the server\n", gone)
	}
	if j.Dead > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "Why they died: farmhand dead %[1]s%[2]s; again: farmhand redrive %[1]s --all%[2]s\n", j.Worker, c.hint())
	}
	if j.Dead > 0 || j.Cancelled > 0 {
		return &exitError{code: exitPartly}
	}
	return nil
}

// again are the flags that go on following.
func (f *follow) again() string {
	if f.out != "" {
		return fmt.Sprintf("--wait --out '%s'", f.out)
	}
	return "--wait"
}

// printer writes each result as a line of JSON.
func (f *follow) printer(cmd *cobra.Command) func(jobapi.Result) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	return func(r jobapi.Result) error { return enc.Encode(r) }
}

// interrupted reports whether the user asked to stop.
func interrupted(ctx context.Context) bool { return ctx.Err() != nil }
