package sim

import (
	"cmp"
	"fmt"
	"math"

	"farmhand/sim/workload"
	"farmhand/skeleton"
)

// check says what of a Config cannot be, and what would be right.
func (c *Config) check() error {
	sc := c.Scenario
	if sc == nil {
		return fmt.Errorf("sim: Config.Scenario: nil is not valid: want a scenario")
	}
	if b := c.Beat; b != nil && !(*b >= 0 && *b < 1) {
		return fmt.Errorf("sim: Config.Beat: %g is not valid: want a part of a second, from 0 to below 1", *b)
	}
	if c.Tasks == nil && (sc.Arrivals == nil || sc.Service == nil) {
		return fmt.Errorf("sim: Config.Tasks: nil is not valid for a scenario without Arrivals or Service: want tasks, or laws to draw them by")
	}
	return cmp.Or(checkNumbers(sc), checkCounts(sc), checkBounds(sc), checkPlatform(&sc.Platform))
}

func checkNumbers(sc *workload.Scenario) error {
	f, p := &sc.Farm, &sc.Platform
	for _, x := range []struct {
		name  string
		value float64
		ok    bool
		want  string
	}{
		{"Farm.Interval", f.Interval, f.Interval > 0, "seconds between decisions, above 0"},
		{"Farm.Deadline", f.Deadline, f.Deadline >= 0, "seconds, or 0 for none"},
		{"Farm.DeadlineFactor", f.DeadlineFactor, f.DeadlineFactor >= 0, "times the service time, or 0 for none"},
		{"Farm.Target", f.Target, f.Target >= 0 && f.Target <= 1, "a share of tasks, from 0 to 1"},
		{"Farm.Timeout", f.Timeout, f.Timeout >= 0, "seconds, or 0 for none"},
		{"Farm.Prior", f.Prior, f.Prior >= 0, "seconds of a service, or 0 for unknown"},
		{"Farm.Failing", f.Failing, f.Failing >= 0 && f.Failing <= 1, "a share of attempts, from 0 to 1"},
		{"Platform.Overhead", p.Overhead, p.Overhead >= 0, "seconds a task, from 0"},
		{"Platform.Crashes", p.Crashes, p.Crashes >= 0, "crashes per second of a replica, from 0"},
	} {
		if !x.ok || x.value > longest {
			return fmt.Errorf("sim: %s: %g is not valid: want %s", x.name, x.value, x.want)
		}
	}
	return nil
}

func checkCounts(sc *workload.Scenario) error {
	f, p := &sc.Farm, &sc.Platform
	for _, x := range []struct {
		name   string
		value  int
		lo, hi int
	}{
		{"Farm.Slots", f.Slots, 0, MaxSlots}, // 0 = one
		{"Farm.Min", f.Min, 0, mostReplicas},
		{"Farm.Max", f.Max, 0, mostReplicas}, // 0 = no bound
		{"Farm.Start", f.Start, 0, mostReplicas},
		{"Farm.Attempts", f.Attempts, 0, skeleton.MaxAttempts}, // 0 = skeleton.DefaultAttempts
		{"Platform.Cap", p.Cap, 0, mostReplicas},               // 0 = no bound
	} {
		if x.value < x.lo || x.value > x.hi {
			return fmt.Errorf("sim: %s: %d is not valid: want a number from %d to %d", x.name, x.value, x.lo, x.hi)
		}
	}
	return nil
}

// checkBounds: nothing is beyond the most that there may be.
func checkBounds(sc *workload.Scenario) error {
	f, p := &sc.Farm, &sc.Platform
	most := f.Max
	switch {
	case most > 0 && f.Min > most:
		return fmt.Errorf("sim: Farm.Min: %d is not valid: want no more than Max, %d", f.Min, most)
	case most > 0 && f.Start > most:
		return fmt.Errorf("sim: Farm.Start: %d is not valid: want no more than Max, %d", f.Start, most)
	case p.Cap > 0 && f.Start > p.Cap:
		return fmt.Errorf("sim: Farm.Start: %d is not valid: want no more than Platform.Cap, %d", f.Start, p.Cap)
	}
	return nil
}

// checkPlatform looks at names and laws.
func checkPlatform(p *workload.Platform) error {
	switch {
	case p.Victim != "" && p.Victim != workload.IdleFirst && p.Victim != workload.RandomVictim:
		return fmt.Errorf("sim: Platform.Victim: %q is not valid: want %s or %s", p.Victim, workload.IdleFirst, workload.RandomVictim)
	case p.Balance != "" && p.Balance != workload.LeastBusy && p.Balance != workload.RandomReplica:
		return fmt.Errorf("sim: Platform.Balance: %q is not valid: want %s or %s", p.Balance, workload.LeastBusy, workload.RandomReplica)
	}
	for _, x := range []struct {
		name string
		law  workload.Law
	}{{"Startup", p.Startup}, {"Call", p.Call}, {"Seen", p.Seen}, {"Stop", p.Stop}, {"Answer", p.Answer}} {
		if x.law == nil {
			continue
		}
		if m := x.law.Mean(); !(m >= 0) || math.IsInf(m, 1) {
			return fmt.Errorf("sim: Platform.%s: the mean of %s is %g: want a law with a mean, from 0 seconds", x.name, x.law, m)
		}
	}
	return nil
}

// MaxSlots is how many tasks a replica runs at once at most.
const MaxSlots = 1000

// Bounds of what is simulated.
const (
	mostReplicas  = 10_000
	mostIntervals = 10_000_000
	longest       = 1e9 // seconds, thirty years: nanoseconds are counted in 63 bits
)

// work is what a run's tasks ask for.
type work struct{ total, longest float64 }

// checkTasks says what of the tasks cannot be, and sums up the rest.
func checkTasks(t *workload.Tasks, interval float64) (w work, err error) {
	if !(t.Horizon > 0 && t.Horizon <= longest) {
		return w, fmt.Errorf("sim: Tasks.Horizon: %g is not valid: want seconds, above 0", t.Horizon)
	}
	if t.Horizon/interval > mostIntervals {
		return w, fmt.Errorf("sim: Farm.Interval: %g is not valid: want at least %g, of which the horizon of %g s has ten million", interval, t.Horizon/mostIntervals, t.Horizon)
	}
	n := len(t.At)
	if n > maxIndex {
		return w, fmt.Errorf("sim: Tasks.At: %d tasks are too many: want at most %d", n, maxIndex)
	}
	for _, x := range []struct {
		name string
		n    int
		have bool
	}{{"Service", len(t.Service), true}, {"Deadline", len(t.Deadline), t.Deadline != nil}, {"Class", len(t.Class), t.Class != nil}, {"Tenant", len(t.Tenant), t.Tenant != nil}} {
		if x.have && x.n != n {
			return w, fmt.Errorf("sim: Tasks.%s: %d values are not valid: want one for each of %d tasks", x.name, x.n, n)
		}
	}
	last := 0.0
	for i, at := range t.At {
		if !(at >= last && at < t.Horizon) {
			return w, fmt.Errorf("sim: Tasks.At[%d]: %g is not valid: want instants in order, from 0 to below the horizon, %g", i, at, t.Horizon)
		}
		last = at
		x := t.Service[i]
		if !(x >= 0 && x <= math.MaxFloat64) {
			return w, fmt.Errorf("sim: Tasks.Service[%d]: %g is not valid: want seconds, from 0", i, x)
		}
		w.total += x
		w.longest = max(w.longest, x)
	}
	for i, d := range t.Deadline {
		if !(d >= 0 && d <= longest) {
			return w, fmt.Errorf("sim: Tasks.Deadline[%d]: %g is not valid: want seconds, or 0 for none", i, d)
		}
	}
	return w, nil
}

// settings are those of the live farm.
func settings(f workload.Farm) skeleton.Settings {
	return skeleton.Settings{Slots: orElse(f.Slots, skeleton.DefaultSlots), Deadline: duration(f.Deadline), DeadlineFactor: f.DeadlineFactor, Target: f.Target,
		Timeout: duration(f.Timeout), Service: duration(f.Prior), Interval: duration(f.Interval), Min: f.Min, Max: f.Max}
}
