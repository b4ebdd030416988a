package telemetry

import (
	"sort"
	"time"

	"farmhand/skeleton/signal"
)

// Gather puts the service times of ticks together to periods, of many farms. It
// belongs to one goroutine. The zero value is ready to use.
//
// What it holds is lost when its process dies: five minutes at most. What Take
// has given and could not be kept may be added again.
type Gather struct {
	farms map[string]map[time.Time]*signal.Hist
}

// Add counts the service times that a farm had around an instant.
func (g *Gather) Add(farm string, at time.Time, h *signal.Hist) {
	if h.N == 0 {
		return
	}
	if g.farms == nil {
		g.farms = map[string]map[time.Time]*signal.Hist{}
	}
	periods := g.farms[farm]
	if periods == nil {
		periods = map[time.Time]*signal.Hist{}
		g.farms[farm] = periods
	}
	start := PeriodOf(at)
	if periods[start] == nil {
		periods[start] = &signal.Hist{}
	}
	periods[start].Merge(h)
}

// Take hands over the periods that have ended by an instant, oldest first, by
// farm.
func (g *Gather) Take(now time.Time) map[string][]Period {
	return g.take(func(start time.Time) bool { return !start.Add(Span).After(now) })
}

// TakeAll hands over all periods, those too that have not ended: for a stop, or
// when a farm is given to another controller. Periods of the same start add up.
func (g *Gather) TakeAll() map[string][]Period {
	return g.take(func(time.Time) bool { return true })
}

func (g *Gather) take(ready func(start time.Time) bool) map[string][]Period {
	taken := map[string][]Period{}
	for farm, periods := range g.farms {
		for start, h := range periods {
			if ready(start) {
				taken[farm] = append(taken[farm], Period{start, *h})
				delete(periods, start)
			}
		}
		sort.Slice(taken[farm], func(i, j int) bool { return taken[farm][i].Start.Before(taken[farm][j].Start) })
		if len(periods) == 0 {
			delete(g.farms, farm)
		}
	}
	return taken
}

// Join makes one period of those that have the same start, oldest first.
func Join(periods []Period) []Period {
	var g Gather
	for i := range periods {
		g.Add("", periods[i].Start, &periods[i].Service)
	}
	return g.TakeAll()[""]
}
