package workload

import "fmt"

// What a scenario may draw. A task takes 24 bytes at most while it is drawn, so that the
// tasks of a run take 5 GB at most; changes of the rate and decisions are bounded too.
const (
	mostTasks = 200e6
	mostSteps = 100e6
)

// Fits reports whether a run of the scenario is of a size that can be drawn and played:
// an error names the field that makes it too large, and the limit.
func (s *Scenario) Fits() error {
	tasks, changes, field := size(s.Arrivals, s.Horizon)
	switch {
	case tasks > mostTasks:
		return fmt.Errorf("scenario %s: arrivals: %s with a horizon of %g s means up to %.3g tasks: want at most %g million", s.Name, field, s.Horizon, tasks, mostTasks/1e6)
	case changes > mostSteps:
		return fmt.Errorf("scenario %s: horizon: %g s mean up to %.3g changes of the rate: want at most %g million", s.Name, s.Horizon, changes, mostSteps/1e6)
	case s.Horizon/s.Farm.Interval > mostSteps:
		return fmt.Errorf("scenario %s: horizon: %g s at an interval of %g s are %.3g decisions: want at most %g million", s.Name, s.Horizon, s.Farm.Interval, s.Horizon/s.Farm.Interval, mostSteps/1e6)
	}
	return nil
}

// size is about how many tasks a process draws at most, how often it changes its rate,
// and which of its fields says so.
func size(a Arrivals, horizon float64) (tasks, changes float64, field string) {
	switch p := a.(type) {
	case Poisson:
		return p.Rate * horizon, 1, fmt.Sprintf("rate %g", p.Rate)
	case Levels:
		peak := 0.0
		for _, l := range p.Levels {
			peak, changes = max(peak, l.Rate), max(changes, horizon/l.For.Mean())
		}
		return peak * horizon, changes, fmt.Sprintf("rate %g", peak)
	case Sinusoid:
		return (p.Mean + p.Amplitude) * horizon, horizon / grid, fmt.Sprintf("mean %g", p.Mean)
	case Cycle:
		peak := 0.0
		for _, x := range p.Rates {
			peak = max(peak, x)
		}
		return peak * horizon, horizon / grid, fmt.Sprintf("a rate of %g", peak)
	case Walk:
		return p.Max * horizon, horizon / p.Every, fmt.Sprintf("max %g", p.Max)
	case Flash:
		peak := p.Base
		for _, f := range p.Plateaus {
			peak = max(peak, f.Rate)
		}
		return peak * horizon, float64(2 * len(p.Plateaus)), fmt.Sprintf("rate %g", peak)
	case SelfSimilar:
		return p.Mean * horizon, 2 * float64(p.Sources) * horizon / (p.On + p.Off), fmt.Sprintf("mean %g", p.Mean)
	case Phases:
		for _, f := range p.Phases {
			tasks += float64(f.Tasks)
		}
		return tasks, float64(len(p.Phases)), "tasks of its phases"
	case *Instants:
		return float64(len(p.At)), min(horizon, p.Length()) / grid, "its recording"
	case *Replay:
		for i, rate := range p.rates {
			tasks += rate * max(0, min(p.p.Bin, horizon-float64(i)*p.p.Bin))
		}
		return tasks, float64(len(p.rates)), "its recording, as it is scaled,"
	}
	return 0, 0, ""
}
