package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"farmhand/controller"
	"farmhand/internal/problem"
)

const (
	topLeast    = 100 * time.Millisecond // between looks
	topPatience = 5 * time.Second        // for an answer
)

// top looks at the farms again and again.
type top struct {
	client *farmClient
	every  time.Duration
	n      int // looks; 0 = until it is stopped
	json   bool
}

func topCmd() *cobra.Command {
	var c connection
	var t top
	cmd := &cobra.Command{
		Use: "top", Short: "Watch the farms: queues, waits, workers and why they are as many", Args: exactly(),
		Long: "Watch the farms: queues, waits, workers and why they are as many.\n\n" +
			"On a terminal it fills the screen until q is pressed. Elsewhere, and with -n or\n" +
			"--json, it prints a line for each farm at each look.",
		Example: "  farmhand top\n  farmhand top -n 1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.every < topLeast {
				return usage("--interval %s: want %s or more", t.every, topLeast)
			}
			if t.n < 0 || t.n == 0 && cmd.Flags().Changed("count") {
				return usage("-n %d: want 1 or more", t.n)
			}
			return c.withFarms(func(client *farmClient) error {
				t.client, t.json = client, c.json
				if out, ok := cmd.OutOrStdout().(*os.File); ok && term.IsTerminal(int(out.Fd())) && t.n == 0 && !t.json {
					return t.screen(cmd.Context(), cmd.InOrStdin(), out)
				}
				return t.lines(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().DurationVar(&t.every, "interval", time.Second, "between looks")
	cmd.Flags().IntVarP(&t.n, "count", "n", 0, "print lines, and end after so many looks")
	return cmd
}

// look asks the controller once.
func (t *top) look(ctx context.Context) (controller.Overview, error) {
	patient, cancel := context.WithTimeout(ctx, topPatience)
	defer cancel()
	v, err := t.client.overview(patient)
	if err != nil && patient.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %s", topPatience)
	}
	return v, err
}

// hopeless reports whether asking again cannot help.
func hopeless(err error) bool {
	var p *problem.Problem
	return errors.As(err, &p) && p.Status == http.StatusUnauthorized
}

// lines prints what it sees. A failed look is told, and does not end it unless
// it was the last.
func (t *top) lines(ctx context.Context, out, errOut io.Writer) error {
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for i := 1; ; i++ {
		v, err := t.look(ctx)
		switch {
		case ctx.Err() != nil:
			return &exitError{code: exitInterrupted}
		case err != nil && (i == t.n || hopeless(err)):
			return err
		case err != nil:
			fmt.Fprintf(errOut, "%s  %v\n", timeText(time.Now()), err)
		case t.json:
			if err := json.NewEncoder(out).Encode(v); err != nil {
				return err
			}
		default:
			tellStatus(errOut, v.Status)
			for _, f := range v.Farms {
				if _, err := fmt.Fprintf(out, "%s  %s\n", timeText(time.Now()), farmLine(f)); err != nil {
					return err
				}
			}
			for _, r := range t.trainings(ctx) {
				if _, err := fmt.Fprintf(out, "%s  training %s\n", timeText(time.Now()), runText(r)); err != nil {
					return err
				}
			}
		}
		if i == t.n {
			return nil
		}
		select {
		case <-ctx.Done():
			return &exitError{code: exitInterrupted}
		case <-tick.C:
		}
	}
}

// farmLine is a farm and its last decision in a line.
func farmLine(f controller.FarmView) string {
	s := fmt.Sprintf("%s  %s  ready %d/%d", f.Name, f.Mode, f.Ready, f.Desired)
	l := f.Last
	if l == nil {
		return s + "  nothing has been decided yet"
	}
	s += fmt.Sprintf("  waiting %s  running %s  oldest wait %s  on time %s  decided %s  %s", numberText(l.Waiting), numberText(l.Running),
		waitText(l), shareText(l.OnTime), stepText(l.Before, l.Replicas), oneLine(l.Why))
	if out := standsOut(f); out != unknown {
		s += "  (" + out + ")"
	}
	if text := reviewText(f.Review); text != "" {
		s += "  [" + text + "]"
	}
	return s
}

// screen fills the terminal.
func (t *top) screen(ctx context.Context, in io.Reader, out io.Writer) error {
	m := topModel{gateway: t.client.gateway, every: t.every, look: func() tea.Msg {
		v, err := t.look(ctx)
		return topSeen{view: v, err: err, at: time.Now(), trainings: t.trainings(ctx)}
	}}
	end, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if last, ok := end.(topModel); ok && (last.interrupted || ctx.Err() != nil) {
		return &exitError{code: exitInterrupted}
	} else if ok && hopeless(last.err) {
		return last.err
	}
	return err
}
