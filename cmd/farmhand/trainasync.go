package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"farmhand/policy"
	"farmhand/registry"
	"farmhand/trainer"
)

// asyncTraining is a training by the function trainer.
type asyncTraining struct {
	connection
	async, follow     bool
	farm, run, cancel string
}

// elsewhere lets farmhand train begin trainings by the function trainer too, and look
// at them.
func elsewhere(cmd *cobra.Command) *cobra.Command {
	var t asyncTraining
	t.flags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&t.async, "async", false, "let the function trainer do it, and its gate judge the policy: for --farm, or in one --scenario")
	flags.StringVar(&t.farm, "farm", "", "with --async: worker to train for, in a simulated farm that is made of its telemetry unless a --scenario is named")
	flags.StringVar(&t.run, "run", "", "id of a training by the trainer: show it, or --follow it")
	flags.StringVar(&t.cancel, "cancel", "", "id of a training by the trainer: end it")
	flags.BoolVar(&t.follow, "follow", false, "with --async or --run: tell how it goes until it is over")
	cmd.Long += `

With --async the function trainer learns instead, in slices that survive a kill of
whatever takes part. What comes of it goes into the registry; where the gate finds it
better than the farm's champion and the calibrated rule, it becomes the champion.
farmhand top shows trainings under way.`
	cmd.Example += `
  farmhand train --async --farm thumbnail --follow
  farmhand train --cancel 4f9c2a6e-…`
	here := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !t.async && t.run == "" && t.cancel == "" {
			for _, name := range []string{"farm", "follow"} {
				if flags.Changed(name) {
					return usage("--%s goes with --async", name)
				}
			}
			return here(cmd, args)
		}
		return t.do(cmd)
	}
	return cmd
}

func (t *asyncTraining) do(cmd *cobra.Command) error {
	given := 0
	for _, is := range []bool{t.async, t.run != "", t.cancel != ""} {
		if is {
			given++
		}
	}
	if given > 1 {
		return usage("want one of --async, --run and --cancel")
	}
	request, err := t.request(cmd)
	if err != nil {
		return err
	}
	gateway, token, err := t.address()
	if err != nil {
		return err
	}
	client := newTrainClient(gateway, token)
	ctx := cmd.Context()
	var run trainer.Run
	switch {
	case t.cancel != "":
		run, err = client.cancel(ctx, t.cancel)
	case t.run != "":
		run, err = client.get(ctx, t.run)
	default:
		run, err = client.begin(ctx, request)
	}
	if err == nil && t.follow {
		run, err = t.watch(cmd, client, run)
	}
	if err != nil {
		return unreachable(err)
	}
	if err := t.print(cmd, run, func() { writeRun(cmd.OutOrStdout(), run) }); err != nil {
		return err
	}
	return t.ending(run)
}

// request is what the flags ask for; what they do not say is the trainer's own default.
func (t *asyncTraining) request(cmd *cobra.Command) (map[string]any, error) {
	// How each flag of a training here is called there.
	names := map[string]string{"learner": "learner", "steps": "budget", "seed": "seed", "rule": "rule", "from": "from", "round": "round"}
	others := []string{"async", "farm", "run", "cancel", "follow", "scenario", "gateway", "token-file", "state", "json", "help"}
	r := map[string]any{}
	var err error
	flags := cmd.Flags()
	for _, name := range changed(flags) {
		field, ok := names[name]
		switch {
		case !ok && !slices.Contains(others, name):
			err = usage("--%s does not go with --async, --run or --cancel", name)
		case ok && !t.async:
			err = usage("--%s goes with --async", name)
		case ok && (name == "steps" || name == "round"):
			r[field], _ = flags.GetInt(name) // it is one
		case ok && name == "seed":
			r[field], _ = flags.GetUint64(name)
		case ok:
			r[field], _ = flags.GetString(name)
		}
	}
	if err != nil || !t.async {
		return nil, err
	}
	scenarios, _ := flags.GetStringSlice("scenario")
	switch {
	case len(scenarios) > 1:
		return nil, usage("--scenario names %d: the trainer learns in one", len(scenarios))
	case len(scenarios) == 1:
		r["scenario"] = scenarios[0]
	case t.farm == "":
		return nil, usage("--async: want --farm or --scenario")
	}
	if t.farm != "" {
		r["farm"] = t.farm
	}
	r["run"] = uuid.NewString() // so that a post that is repeated begins no second one
	return r, nil
}

const lookEvery = time.Second

// watch a run until it is over.
func (t *asyncTraining) watch(cmd *cobra.Command, client *trainClient, run trainer.Run) (trainer.Run, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told := ""
	for {
		if text := runText(run); text != told {
			fmt.Fprintln(cmd.ErrOrStderr(), text)
			told = text
		}
		if run.State != trainer.Running {
			return run, nil
		}
		select {
		case <-cmd.Context().Done():
			fmt.Fprintf(cmd.ErrOrStderr(), "Stopped following; the training goes on: farmhand train --run %s --follow%s\n", run.ID, t.hint())
			return run, &exitError{code: exitInterrupted}
		case <-tick.C:
		}
		next, err := client.get(cmd.Context(), run.ID)
		switch {
		case cmd.Context().Err() != nil:
		case hopeless(err):
			return run, err
		case err != nil: // the trainer may be starting again
			fmt.Fprintln(cmd.ErrOrStderr(), err)
		default:
			run = next
		}
	}
}

// runText is how a run goes, in a line.
func runText(r trainer.Run) string {
	p := &r.Progress
	s := fmt.Sprintf("%s  %s  ", r.ID, trainedFor(r))
	if r.State != trainer.Running {
		return s + outcome(r)
	}
	s += fmt.Sprintf("%s %.0f %%  %d of %d steps", p.Phase, 100*p.Share, p.Steps, r.Request.Budget)
	if p.Return.Known() {
		s += fmt.Sprintf("  return %.3g", float64(p.Return))
	}
	if p.OnTime.Known() {
		s += fmt.Sprintf("  on time %s  workers %.2f", shareText(p.OnTime), float64(p.Workers))
	}
	if p.Left.Known() {
		s += fmt.Sprintf("  %s left", secondsText(float64(p.Left)))
	}
	if !r.Held {
		s += "  (waiting)"
	}
	return s
}

func trainedFor(r trainer.Run) string {
	if r.Request.Farm == "" {
		return r.Request.Scenario
	}
	return r.Request.Farm
}

// outcome of a run that is over.
func outcome(r trainer.Run) string {
	p := &r.Progress
	switch {
	case r.State == trainer.Failed:
		return "failed: " + oneLine(r.Error)
	case r.State != trainer.Done:
		return string(r.State)
	}
	s := "policy " + registry.Short(p.Version)
	if p.Verdict != nil {
		s += ": " + string(p.Verdict.Outcome)
	}
	switch {
	case p.Promoted:
		s += ", champion now"
	case p.Verdict != nil && r.Request.Farm == "":
		s += ", for no farm"
	}
	return s
}

// writeRun tells all of a run.
func writeRun(out io.Writer, r trainer.Run) {
	fmt.Fprintln(out, runText(r))
	p := &r.Progress
	if c := p.Calibration; c != nil {
		fmt.Fprintf(out, "learned in %s; the calibrated rule there is %s\n", c.Scenario, c.Rule)
		if c.Telemetry {
			fmt.Fprintf(out, "  made of %s of telemetry, %.0f tasks\n", secondsText(c.Seconds), c.Tasks)
		}
		for _, d := range c.Distances {
			fmt.Fprintf(out, "  %s: simulated %s, measured %s", d.Of, meanText(d.Simulated), meanText(d.Measured))
			if d.KS.Known() {
				fmt.Fprintf(out, ", Kolmogorov–Smirnov distance %.3f", float64(d.KS))
			}
			fmt.Fprintln(out)
		}
		for _, n := range c.Notes {
			fmt.Fprintln(out, "  "+oneLine(n))
		}
	}
	if p.Verdict != nil {
		writeVerdict(out, trainedFor(r), *p.Verdict)
	}
}

func meanText(m policy.Maybe) string {
	if !m.Known() {
		return unknown
	}
	return fmt.Sprintf("%.4g", float64(m))
}

// ending is the exit of a run: what was not promoted for its farm was refused. Who
// cancels has what it wants; to all others the run is a part of what was asked for.
func (t *asyncTraining) ending(r trainer.Run) error {
	switch {
	case r.State == trainer.Failed:
		return fmt.Errorf("the training has failed: %s", oneLine(r.Error))
	case r.State == trainer.Done && r.Request.Farm != "" && !r.Progress.Promoted:
		return &exitError{code: exitRefused}
	case r.State == trainer.Cancelled && t.cancel == "":
		return &exitError{code: exitPartly, err: errors.New("the training was cancelled; begin it again with --async")}
	}
	return nil
}

// trainings are those under way, and those that ended a moment ago. Without a trainer
// there are none.
func (t *top) trainings(ctx context.Context) (list []trainer.Run) {
	patient, cancel := context.WithTimeout(ctx, topPatience)
	defer cancel()
	client := newTrainClient(t.client.gateway, t.client.token)
	all, err := client.list(patient)
	if err != nil {
		return nil
	}
	for _, r := range all {
		if r.State == trainer.Running || time.Since(r.Ended) < endedShown {
			list = append(list, r)
		}
	}
	return list
}

const endedShown = 10 * time.Minute
