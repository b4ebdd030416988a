// Package fit makes a simulated farm of a real one's telemetry, and says how far the
// two differ.
//
// Of the arrivals it keeps the pattern and not the order: blocks of some minutes of
// what was measured are put one after the other at random. Services have the measured
// histogram, start-ups the measured mean.
package fit

import (
	"errors"
	"fmt"
	"slices"

	"farmhand/evaluate"
	"farmhand/gate"
	"farmhand/sim/workload"
	"farmhand/skeleton"
	"farmhand/telemetry"
	"farmhand/trainer"
)

// Known is what is known of a farm: its telemetry, and its settings.
type Known struct {
	Rows    []telemetry.Row // as they were kept
	Periods []telemetry.Period
	Farm    workload.Farm
}

// Model is a simulated farm.
type Model struct {
	Scenario *workload.Scenario
	// Traffic is what the farm served last, for the gate. Nil: not enough is known.
	Traffic []*evaluate.Past
	// Fit says what it was made of; Compare, how much it is like the real farm.
	Fit trainer.Calibration
}

// ErrLittle says that too little is known of a farm.
var ErrLittle = errors.New("fit: too little telemetry")

// Bounds of a Model.
const (
	leastSeconds = 1200      // of telemetry
	everything   = 1000      // stretches
	horizon      = 3600      // s of the scenario
	shortest     = 600       // s of it, where an hour has too many tasks
	mostTasks    = 2_000_000 // of it
	mostTarget   = 0.999     // what asks for all is out of reach of statistics
	replicas     = 20        // of a farm without a maximum
)

// Of makes the Model of a farm, with the settings that it has now. The last stretches of
// telemetry are kept apart for the gate where there are enough others to learn from. The
// error wraps ErrLittle where there are not even enough to learn from at all, and
// trainer.ErrNoDeadline where the farm has none.
func Of(name string, k Known) (*Model, error) {
	if k.Farm.Deadline <= 0 {
		return nil, fmt.Errorf("%w: %.80q", trainer.ErrNoDeadline, name)
	}
	all, notes := gate.Stretches(k.Rows, k.Periods, k.Farm, everything)
	traffic, more := Traffic(k)
	for _, n := range more {
		if !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	learn := all
	switch apart := all[:len(all)-min(len(all), len(traffic))]; {
	case seconds(apart) >= leastSeconds:
		learn = apart
	case len(traffic) > 0:
		notes = append(notes, "traffic: there is too little telemetry to learn from other traffic than the gate's")
	}
	if s := seconds(learn); s < leastSeconds {
		return nil, fmt.Errorf("%w of %s: %.0f s can be used, want %d", ErrLittle, name, s, leastSeconds)
	}
	m := &Model{Traffic: traffic, Scenario: scenario(name, learn, k.Farm.Deadline)}
	m.Fit = trainer.Calibration{Scenario: m.Scenario.Name, Telemetry: true, Seconds: seconds(learn), Tasks: tasks(learn), Notes: notes}
	return m, nil
}

// Traffic is what a farm served last, for the gate; nil with a note where too little is
// known.
func Traffic(k Known) ([]*evaluate.Past, []string) {
	list, notes := gate.Traffic(k.Rows, k.Periods, k.Farm)
	for _, p := range list {
		p.Farm.Deadline = k.Farm.Deadline // which may have been another one then
	}
	return list, notes
}

func seconds(list []*evaluate.Past) (sum float64) {
	for _, p := range list {
		sum += p.Seconds()
	}
	return sum
}

func tasks(list []*evaluate.Past) (sum float64) {
	for _, p := range list {
		for _, b := range p.Bins {
			sum += b.Arrivals
		}
	}
	return sum
}

// scenario is what a farm may meet that has met these stretches.
func scenario(name string, list []*evaluate.Past, deadline float64) *workload.Scenario {
	last := list[len(list)-1]
	s := &workload.Scenario{
		Name: "farm:" + name, Doc: "made of the telemetry of " + name, Horizon: horizon,
		Arrivals: newBlocks(list), Service: newMixture(list), Farm: last.Farm, Platform: workload.DefaultPlatform(),
	}
	s.Platform.Startup = last.Startup
	if rate := tasks(list) / seconds(list); rate*horizon > mostTasks {
		s.Horizon = max(shortest, float64(int(mostTasks/rate)))
	}
	s.Farm.Start, s.Farm.Deadline = max(1, s.Farm.Min), deadline
	s.Farm.Prior = s.Service.Mean()
	return s
}

// FarmOf are the settings of a farm as a simulated one has them.
func FarmOf(s skeleton.Settings) workload.Farm {
	f := workload.Farm{
		Interval: s.Interval.Seconds(), Deadline: s.EffectiveDeadline().Seconds(), Target: min(s.Target, mostTarget), Timeout: s.Timeout.Seconds(),
		Prior: s.Service.Seconds(), Slots: max(1, s.Slots), Min: s.Min, Max: s.Max, Start: max(1, s.Min), Attempts: skeleton.DefaultAttempts,
	}
	if f.Max == 0 {
		f.Max = max(replicas, f.Min)
	}
	return f
}
