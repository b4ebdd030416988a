package main

import (
	"context"
	"encoding/json"
	"fmt"

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

// run follows a job to its end. files are those it was made of, one a task.
func (f *follow) run(cmd *cobra.Command, c *connection, client *jobclient.Client, job string, files []string) error {
	err := f.take(cmd, client, job, files)
	if interrupted(cmd.Context()) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Stopped following; the job goes on. Its results: farmhand job '%s' %s\n", job, f.again())
		return &exitError{code: exitInterrupted}
	}
	if err != nil {
		return err
	}
	return f.summary(cmd, c, client, job)
}

// take prints or saves the results until there are no more.
func (f *follow) take(cmd *cobra.Command, client *jobclient.Client, job string, files []string) error {
	ctx := cmd.Context()
	j, err := client.Job(ctx, job)
	if err != nil {
		return err
	}
	handle, done := f.printer(cmd), func() error { return nil }
	if f.out != "" {
		s, err := newSaver(f.out, job, files)
		if err != nil {
			return err
		}
		handle, done = s.save, s.close
	}
	bar := newProgress(cmd.ErrOrStderr(), "results", j.Total)
	query := jobclient.Query{Ordered: f.ordered, Follow: true, Ack: f.out != "" && !f.keep}
	_, _, err = client.Results(ctx, job, query, func(r jobapi.Result) error {
		bar.add(1)
		return handle(r)
	})
	bar.finish()
	if cerr := done(); err == nil {
		err = cerr
	}
	return err
}

// summary tells how the job went, also by the exit code.
func (f *follow) summary(cmd *cobra.Command, c *connection, client *jobclient.Client, job string) error {
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
	if j.Dead > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "Why they died: farmhand dead %s; again: farmhand redrive %s --all\n", j.Worker, j.Worker)
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
