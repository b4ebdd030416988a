package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"farmhand/skeleton/jobapi/jobclient"
)

func submitCmd() *cobra.Command {
	s := &submit{options: jobclient.Options{}}
	cmd := &cobra.Command{
		Use:   "submit WORKER [FILE|FOLDER|-]...",
		Short: "Post work: each file is a task, or each line of standard input",
		Long: `Post work to a farm. Each file is a task, folders are walked; "-" or nothing
reads standard input: one task, or with --lines one JSON task a line. Input is
sent in pieces; a submission that is cut off goes on with --resume.`,
		Example: `  farmhand submit thumbnail pictures/ --out thumbs
  generate-sweep | farmhand submit montecarlo --lines --wait --json
  farmhand submit thumbnail pictures/ --resume thumbnail~01ARZ3NDEKTSV4RRFFQ69G5FAV`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("submit takes a WORKER, then files, folders or -")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0], args[1:]) },
	}
	s.conn.flags(cmd)
	s.follow.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&s.lines, "lines", false, "input is newline-delimited JSON: one task a line")
	f.StringVar(&s.media, "type", "", "media type of each task (default: by file name)")
	f.StringVar(&s.resume, "resume", "", "go on with a submission that was cut off: its job, and the same input")
	for name, help := range map[string]string{
		"class":    "priority class, 0 (first) to 9 (default 5)",
		"tenant":   "whose turn it is in the round-robin",
		"deadline": "soft bound from acceptance to result, e.g. 10s",
		"due":      "the same as a time (RFC 3339)",
		"timeout":  "hard limit of one attempt, e.g. 30s",
		"attempts": "attempts that may fail (default 5)",
		"retry":    `"never": do not repeat a lost or timed-out attempt`,
		"callback": "URL to tell when the job has ended",
	} {
		f.Func(name, help, func(v string) error { s.options[name] = v; return nil })
	}
	return cmd
}

// submit is one run of the command.
type submit struct {
	conn    connection
	follow  follow
	options jobclient.Options
	lines   bool
	media   string
	resume  string
}

func (s *submit) run(cmd *cobra.Command, worker string, inputs []string) error {
	in, err := openInput(cmd.InOrStdin(), inputs, s.lines, s.media)
	if err != nil {
		return err
	}
	defer in.close()
	client, err := s.conn.client(cmd)
	if err != nil {
		return err
	}
	defer client.Close()
	job, names, err := s.send(cmd, client, worker, in)
	if err != nil {
		if job != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "The submission was cut off. Go on with the same command and input and --resume '%s'\n", job)
		}
		return err
	}
	if s.follow.wanted() {
		return s.follow.run(cmd, &s.conn, client, job, names)
	}
	j, err := client.Job(cmd.Context(), job)
	if err != nil {
		return err
	}
	return s.conn.print(cmd, j, func() {
		fmt.Fprintln(cmd.OutOrStdout(), j.ID)
		fmt.Fprintf(cmd.ErrOrStderr(), "%d tasks accepted. Results: farmhand job '%s' --wait (or --out FOLDER)\n", j.Total, j.ID)
	})
}

var errNothing = errors.New("there is nothing to submit")

// send posts the pieces of the input: the first makes the job, the others are
// appended. What a job to resume has already, it has from the beginning of the
// same input: as many tasks are skipped as it holds.
func (s *submit) send(cmd *cobra.Command, client *jobclient.Client, worker string, in *input) (job string, names []string, err error) {
	ctx := cmd.Context()
	if job = s.resume; job != "" {
		j, err := client.Job(ctx, job)
		if err != nil {
			return "", nil, err
		}
		if names, err = in.skip(ctx, j.Total); err != nil {
			return job, nil, err
		}
	}
	bar := newProgress(cmd.ErrOrStderr(), "submitting", 0)
	defer func() { bar.finish() }()
	for {
		p, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return job, names, err
		}
		if job == "" {
			if job, err = s.first(cmd, client, worker, p); err != nil {
				return "", nil, err
			}
			if p.last {
				return job, p.names, nil
			}
		} else if _, err := client.Append(ctx, job, appendOptions(s.options), p.piece); err != nil {
			return job, names, err
		}
		names = append(names, p.names...)
		bar.add(p.tasks)
	}
	if job == "" {
		return "", nil, errNothing
	}
	_, err = client.CloseJob(ctx, job)
	return job, names, err
}

// first makes the job of the first piece; it stays open for more, unless there
// is certainly nothing more.
func (s *submit) first(cmd *cobra.Command, client *jobclient.Client, worker string, p pieceOf) (string, error) {
	o := jobclient.Options{"worker": worker, "open": strconv.FormatBool(!p.last)}
	for name, v := range s.options {
		o[name] = v
	}
	if s.follow.ordered {
		o["ordered"] = "true"
	}
	done, err := client.Submit(cmd.Context(), o, p.piece)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "job %s (durability: %s)\n", done.Job.ID, done.Durability)
	return done.Job.ID, nil
}

// appendOptions are those that belong to tasks, not to the job.
func appendOptions(all jobclient.Options) jobclient.Options {
	o := jobclient.Options{}
	for name, v := range all {
		if name != "callback" {
			o[name] = v
		}
	}
	return o
}

// interrupted reports whether the user asked to stop.
func interrupted(ctx context.Context) bool { return ctx.Err() != nil }
