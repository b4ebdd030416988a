package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"farmhand/internal/problem"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

func submitCmd() *cobra.Command {
	s := &submit{options: jobclient.Options{}}
	cmd := &cobra.Command{
		Use:   "submit WORKER [FILE|FOLDER|-]...",
		Short: "Post work: each file is a task, or each line of the input",
		Long: `Post work to a farm. Each file is a task, folders are walked; "-" or nothing
reads standard input: one task, or with --ndjson one JSON task a line. The input
is sent in pieces. A submission that is cut off goes on with --resume JOB: what
the job has is left out, and no task is posted twice.
` + exitHelp,
		Example: `  farmhand submit thumbnail pictures/ --out thumbs
  generate-sweep | farmhand submit montecarlo --ndjson --wait
  farmhand submit thumbnail pictures/ --resume thumbnail~01ARZ3NDEKTSV4RRFFQ69G5FAV`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("submit takes a WORKER, then files, folders or -")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s.worker, s.inputs = args[0], args[1:]
			if err := s.follow.check(); err != nil {
				return err
			}
			return s.conn.with(cmd, func(client *jobclient.Client) error { return s.run(cmd, client) })
		},
	}
	s.conn.flags(cmd)
	s.follow.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&s.ndjson, "ndjson", false, "the input is newline-delimited JSON: one task a line")
	f.StringVar(&s.media, "type", "", "media type of each task (default: by file name)")
	f.StringVar(&s.resume, "resume", "", "go on with a submission that was cut off: its job")
	f.StringVar(&s.key, "idempotency-key", "", "repeating a whole submission with the same key and input posts nothing twice")
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

var errNothing = errors.New("there is nothing to submit")

// submit is one run of the command.
type submit struct {
	conn    connection
	follow  follow
	worker  string
	inputs  []string
	options jobclient.Options
	ndjson  bool
	media   string
	resume  string
	key     string

	job   string   // once there is one
	files []string // all of them, where each task is a file
	sent  int      // tasks the job has

	closed bool // the job to resume takes nothing more
}

func (s *submit) run(cmd *cobra.Command, client *jobclient.Client) error {
	ctx := cmd.Context()
	if s.resume != "" && len(s.inputs) == 0 {
		r := readRecord(s.conn.stateDir(), s.resume)
		s.inputs, s.ndjson, s.media = r.Inputs, r.NDJSON || s.ndjson, r.Type
	}
	s.hint(cmd)
	in, err := openInput(cmd.InOrStdin(), s.inputs, s.ndjson, s.media)
	if err != nil {
		return err
	}
	defer in.close()
	s.files = in.files
	if s.resume != "" {
		err = s.goOn(cmd, client, in)
	}
	if err == nil && !s.closed {
		err = s.send(cmd, client, in)
	}
	if err != nil {
		return s.cutOff(cmd, err)
	}
	if s.follow.wanted() {
		return s.follow.run(cmd, &s.conn, client, s.job, s.files)
	}
	j, err := client.Job(ctx, s.job)
	if err != nil {
		return err
	}
	return s.conn.print(cmd, j, func() {
		fmt.Fprintln(cmd.OutOrStdout(), j.ID)
		if !s.closed {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d tasks accepted. ", j.Total)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "Results: farmhand job '%s' --wait (or --out FOLDER)%s\n", j.ID, s.conn.hint())
	})
}

// hint wonders at lines that are posted as one task.
func (s *submit) hint(cmd *cobra.Command) {
	for _, path := range s.inputs {
		if ext := filepath.Ext(path); !s.ndjson && (ext == ".ndjson" || ext == ".jsonl") {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is posted as one task; with --ndjson each of its lines is one\n", path)
		}
	}
}

// cutOff says how to go on. What was accepted is the user's to keep or to drop:
// a job is not cancelled for a line that is wrong.
func (s *submit) cutOff(cmd *cobra.Command, err error) error {
	if s.job != "" {
		again := "the same command and input, and"
		if len(s.inputs) > 0 {
			again = "farmhand submit " + s.worker
		}
		if !interrupted(cmd.Context()) {
			again = "mend what is wrong, then " + again
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "The submission was cut off after %d tasks. Go on with: %s --resume '%s'%s\n", s.sent, again, s.job, s.conn.hint())
		fmt.Fprintf(cmd.ErrOrStderr(), "Until then the job stays open, and its tasks are worked on. Give it up with: farmhand cancel '%s'%s\n", s.job, s.conn.hint())
	}
	if interrupted(cmd.Context()) {
		if s.job == "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "Interrupted before the dispatcher had answered; farmhand jobs --worker %s%s shows whether it took something\n", s.worker, s.conn.hint())
		}
		return &exitError{code: exitInterrupted}
	}
	return err
}

// goOn finds out what the job to resume has. Its files are those of the first
// run, whatever the folders hold by now.
func (s *submit) goOn(cmd *cobra.Command, client *jobclient.Client, in *input) error {
	ctx := cmd.Context()
	j, err := client.Job(ctx, s.resume)
	if err != nil {
		return err
	}
	if j.Worker != s.worker {
		return usage("job %s is one of worker %s", j.ID, j.Worker)
	}
	r := readRecord(s.conn.stateDir(), j.ID)
	if s.closed = j.State != "open"; s.closed {
		if err := s.nothingNew(ctx, in, j, r.Files); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "job %s is closed with %d tasks: nothing is posted\n", j.ID, j.Total)
	}
	if s.files != nil && r.Files != nil {
		s.files, in.files = r.Files, r.Files
	}
	options := maps.Clone(r.Options)
	if options == nil {
		options = jobclient.Options{}
	}
	maps.Copy(options, s.options)
	s.options, s.job, s.sent = options, j.ID, j.Total
	if s.closed {
		return nil
	}
	return in.skip(ctx, j.Total)
}

// nothingNew refuses input that a closed job does not have, as far as that can
// be known. files are those it was made of, if known.
func (s *submit) nothingNew(ctx context.Context, in *input, j jobapi.JobView, files []string) error {
	closed := fmt.Errorf("job %s is closed with %d tasks and takes no more: nothing is posted", j.ID, j.Total)
	if in.files != nil && files != nil {
		for i, file := range absolute(in.files) {
			if !slices.Contains(files, file) {
				return fmt.Errorf("%w, and it does not have %s", closed, in.files[i])
			}
		}
		return nil
	}
	if err := in.skip(ctx, j.Total); err != nil {
		return fmt.Errorf("%w; %w", closed, err)
	}
	if _, err := in.next(ctx); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w, and the input holds more", closed)
	}
	return nil
}

// send posts the pieces of the input: the first makes the job, the others are
// appended.
func (s *submit) send(cmd *cobra.Command, client *jobclient.Client, in *input) error {
	ctx := cmd.Context()
	bar := newProgress(cmd.ErrOrStderr(), "submitting", len(s.files))
	defer bar.finish()
	for {
		p, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if s.job == "" {
			done, err := s.first(cmd, client, in, p)
			if err != nil || done {
				return err
			}
			bar.add(s.sent)
			continue
		}
		if _, err := client.Append(ctx, s.job, s.taskOptions(), p.Piece); err != nil {
			return s.explain(err, p)
		}
		s.sent += p.tasks
		bar.add(p.tasks)
	}
	if s.job == "" {
		return errNothing
	}
	_, err := client.CloseJob(ctx, s.job)
	return err
}

// first makes the job of the first piece; it stays open for more, unless there
// is certainly nothing more.
func (s *submit) first(cmd *cobra.Command, client *jobclient.Client, in *input, p piece) (done bool, err error) {
	o := maps.Clone(s.options)
	o["worker"], o["open"] = s.worker, strconv.FormatBool(!p.last)
	if s.follow.ordered {
		o["ordered"] = "true"
	}
	p.Key = s.key
	answer, err := client.Submit(cmd.Context(), o, p.Piece)
	if err != nil {
		return false, s.explain(err, p)
	}
	s.job, s.sent = answer.Job.ID, answer.Job.Total
	fmt.Fprintf(cmd.ErrOrStderr(), "job %s (durability: %s)\n", s.job, answer.Durability)
	s.remember(cmd)
	if answer.Repeated && s.key != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "repeated: this submission was already accepted")
		return answer.Job.State != "open", s.after(cmd.Context(), in, p, answer)
	}
	return p.last, nil
}

// after goes on where an earlier run with the same key has stopped.
func (s *submit) after(ctx context.Context, in *input, p piece, answer jobapi.Submitted) error {
	if answer.Job.State != "open" {
		return nil
	}
	in.unread(p)
	return in.skip(ctx, answer.Job.Total)
}

// remember keeps what a later run needs. A folder that cannot be written is no
// reason to stop.
func (s *submit) remember(cmd *cobra.Command) {
	r := record{Job: s.job, Worker: s.worker, Inputs: absolute(s.inputs), NDJSON: s.ndjson, Type: s.media,
		Options: s.taskOptions(), Files: absolute(s.files)}
	if err := r.write(s.conn.stateDir()); err != nil && !errors.Is(err, os.ErrExist) {
		fmt.Fprintf(cmd.ErrOrStderr(), "cannot remember the submission (%v): results saved later are named by number\n", err)
	}
}

// explain names the input that a refusal is about.
func (s *submit) explain(err error, p piece) error {
	var bad *problem.Problem
	if !errors.As(err, &bad) {
		return err
	}
	if bad.Index != nil && *bad.Index < len(p.files) {
		return fmt.Errorf("%s: %w", p.files[*bad.Index], err)
	}
	if bad.Line > 0 {
		n := s.sent + bad.Line
		bad.Line = 0 // of the piece, which the user never saw
		return fmt.Errorf("task %d of the input: %w", n, err)
	}
	return err
}

// taskOptions are those that belong to tasks, not to the job.
func (s *submit) taskOptions() jobclient.Options {
	o := maps.Clone(s.options)
	delete(o, "callback")
	return o
}
