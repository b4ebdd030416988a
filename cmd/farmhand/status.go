package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"farmhand/platform"
	"farmhand/skeleton"
)

func statusCmd() *cobra.Command {
	var state string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say where the local platform is, what runs on it, when next and what is durable",
		Example: "  farmhand status --json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, err := running(state)
			if errors.Is(err, platform.ErrNotRunning) {
				return fmt.Errorf("%w (start it with farmhand up -d%s)", err, stateHint(state))
			}
			if err != nil {
				return err
			}
			s := status{Info: info}
			if s.Functions, err = platform.Functions(cmd.Context(), info); err != nil {
				return err
			}
			if s.Async, err = platform.Async(cmd.Context(), info); err != nil {
				return err
			}
			if s.Unrestored, err = platform.ListUnrestored(info.State); err != nil {
				return err
			}
			s.Problems = settingsProblems(s.Functions)
			if !asJSON {
				s.print(cmd.OutOrStdout())
				return nil
			}
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(s)
		},
	}
	stateFlag(cmd, &state)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// status is all there is to say of a platform.
type status struct {
	platform.Info
	Async      *platform.AsyncCalls  `json:"async,omitempty"`
	Functions  []platform.Detail     `json:"functions"`
	Unrestored []platform.Unrestored `json:"unrestored,omitempty"`
	Problems   map[string][]string   `json:"problems,omitempty"` // of workers' annotations
}

func (s status) print(out io.Writer) {
	printInfo(out, s.Info)
	if s.Async != nil {
		fmt.Fprintf(out, "async       %s\n", asyncText(*s.Async, s.CE))
	}
	for _, f := range s.Functions {
		fmt.Fprintf(out, "function    %-20s %d of %d ready\n", f.Name, f.AvailableReplicas, f.Replicas)
		if f.Schedule != nil {
			fmt.Fprintf(out, "schedule    %-20s %s\n", f.Name, scheduleText(*f.Schedule))
		}
		for _, text := range s.Problems[f.Name] {
			fmt.Fprintf(out, "INVALID     %-20s %s\n", f.Name, text)
		}
		for _, text := range f.Warnings {
			fmt.Fprintf(out, "WARNING     %-20s %s\n", f.Name, text)
		}
	}
	printUnrestored(out, s.Unrestored)
}

// asyncText also says where calls wait although there are replicas: they are
// made so many at a time.
func asyncText(a platform.AsyncCalls, ce bool) string {
	text := fmt.Sprintf("%d calls wait, %d run, at most %d at once", a.Waiting, a.Running, a.AtOnce)
	switch {
	case a.Waiting == 0 || a.Running < a.AtOnce:
		return text
	case ce:
		return text + ": plain CE makes one after the other, more replicas do not help; post them as tasks (farmhand submit)"
	default:
		return text + ": more replicas do not help, --async-inflight does"
	}
}

// scheduleText says when the clock calls a function next, and how it went last.
func scheduleText(s platform.Schedule) string {
	text := s.Schedule + "; "
	if s.Async {
		text += "queued; "
	}
	if s.NextRun.IsZero() {
		text += "no further run"
	} else {
		text += "next run " + s.NextRun.Local().Format(time.DateTime)
	}
	switch {
	case s.Running:
		text += "; running since " + s.LastRun.Local().Format(time.DateTime)
	case s.LastRun.IsZero():
	case s.LastStatus == 0:
		text += "; last run " + s.LastRun.Local().Format(time.DateTime) + " got no answer"
	default:
		text += fmt.Sprintf("; last run %s got %d", s.LastRun.Local().Format(time.DateTime), s.LastStatus)
	}
	if s.Skipped > 0 {
		text += fmt.Sprintf("; %d left out, since the one before was not over", s.Skipped)
	}
	return text
}

// settingsProblems are the settings of workers that are not valid.
func settingsProblems(functions []platform.Detail) map[string][]string {
	problems := map[string][]string{}
	for _, f := range functions {
		var labels, annotations map[string]string
		if f.Labels != nil {
			labels = *f.Labels
		}
		if f.Annotations != nil {
			annotations = *f.Annotations
		}
		if !skeleton.IsWorker(labels) {
			continue
		}
		if _, found := skeleton.ParseSettings(labels, annotations); len(found) > 0 {
			problems[f.Name] = found
		}
	}
	return problems
}
