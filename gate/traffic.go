package gate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"farmhand/evaluate"
	"farmhand/policy"
	"farmhand/sim"
	"farmhand/sim/workload"
	"farmhand/telemetry"
)

// What of a farm's telemetry can be played again.
const (
	Window       = 24 * time.Hour   // how far back to read rows
	stretchTime  = 30 * time.Minute // of a stretch, at most
	stretches    = 12               // at most, the last ones
	enough       = 4                // stretches, at least
	leastTasks   = 500              // of a stretch
	mostTasks    = 1_000_000        // of a stretch: it has to fit into memory
	mostRate     = 10_000           // tasks a second that a row can have
	longest      = 86_400           // s that services and start-ups of a row can last
	unbalanced   = 0.1              // share of a stretch's tasks that may be unaccounted for
	gapIntervals = 3                // between two rows, at most
)

// Traffic is the last of a farm's Stretches, for a Gate; nil where there are too few.
func Traffic(rows []telemetry.Row, periods []telemetry.Period, farm workload.Farm) (list []*evaluate.Past, notes []string) {
	list, notes = Stretches(rows, periods, farm, stretches)
	if len(list) < enough {
		return nil, append(notes, fmt.Sprintf("traffic: %d stretches can be played again, want %d: the verdict rests on unseen seeds alone", len(list), enough))
	}
	return list, notes
}

// Stretches cuts out of a farm's telemetry what can be played again: the last most
// stretches, the oldest first, each half an hour or less. Rows stand in the order in
// which they were kept, which a clock that was set may not be that of their times. The
// farm's interval, target and bounds are not in the rows: they are those of farm.
//
// Telemetry is not trusted. Rows that cannot be are left out; a stretch ends where the
// clock jumps or rows are missing; and one whose tasks do not add up, arrivals against
// results and what waits, is not used. The notes say what was left out.
func Stretches(rows []telemetry.Row, periods []telemetry.Period, farm workload.Farm, most int) (list []*evaluate.Past, notes []string) {
	good := slices.DeleteFunc(slices.Clone(rows), func(r telemetry.Row) bool { return !plausible(&r) })
	if n := len(rows) - len(good); n > 0 {
		notes = append(notes, fmt.Sprintf("traffic: %d of %d rows of telemetry cannot be, and are left out", n, len(rows)))
	}
	refused := map[string]int{}
	parts := cut(good, farm.Interval)
	for _, part := range slices.Backward(parts) {
		if len(list) == most {
			break
		}
		past, why := pastOf(part, periods, farm)
		if past == nil {
			refused[why]++
			continue
		}
		list = append(list, past)
	}
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		notes = append(notes, fmt.Sprintf("traffic: %d stretches are left out: %s", refused[why], why))
	}
	slices.Reverse(list)
	return list, notes
}

// plausible reports whether a row can be: nothing is negative, services and start-ups
// end within a day, and no farm is that busy.
func plausible(r *telemetry.Row) bool {
	for _, x := range []policy.Maybe{r.Length, r.Covered, r.Arrivals, r.Done, r.Decided, r.Late, r.Waiting, r.Running, r.Delayed, r.ServiceMean, r.ServiceSD, r.StartupLag, r.Deadline} {
		if x < 0 { // what is unknown is not
			return false
		}
	}
	if r.Desired < 0 || r.Slots < 0 || r.Slots > sim.MaxSlots || r.Late > r.Decided {
		return false
	}
	for _, x := range []policy.Maybe{r.ServiceMean, r.ServiceSD, r.StartupLag} {
		if x > longest {
			return false
		}
	}
	return !r.Arrivals.Known() || r.Covered > 0 && r.Covered <= 2*max(r.Length, 1) && r.Arrivals <= mostRate*r.Covered
}

// cut makes stretches of rows that follow one another.
func cut(rows []telemetry.Row, interval float64) (parts [][]telemetry.Row) {
	most := time.Duration(gapIntervals * interval * float64(time.Second))
	var part []telemetry.Row
	tasks := 0.0
	for _, r := range rows {
		if n := len(part); n > 0 {
			step := r.At.Sub(part[n-1].At)
			if step <= 0 || step > most || r.At.Sub(part[0].At) > stretchTime || tasks+float64(r.Arrivals.Or(0)) > mostTasks {
				parts, part, tasks = append(parts, part), nil, 0
			}
		}
		part, tasks = append(part, r), tasks+float64(r.Arrivals.Or(0))
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// pastOf makes a past of a stretch; nil with the reason why it is not used.
func pastOf(rows []telemetry.Row, periods []telemetry.Period, farm workload.Farm) (*evaluate.Past, string) {
	first, last := &rows[0], &rows[len(rows)-1]
	if last.At.Sub(first.At) < shortest*time.Second {
		return nil, fmt.Sprintf("shorter than %d s", shortest)
	}
	arrivals, done := 0.0, 0.0
	for i := range rows[1:] {
		arrivals += float64(rows[i+1].Arrivals.Or(0))
		done += float64(rows[i+1].Done.Or(0))
	}
	if arrivals < leastTasks {
		return nil, fmt.Sprintf("fewer than %d tasks", leastTasks)
	}
	if before, after := inside(first), inside(last); before.Known() && after.Known() {
		if missing := arrivals - done - float64(after-before); math.Abs(missing) > unbalanced*max(arrivals, done)+leastTasks/10 {
			return nil, "arrivals, results and what waits do not add up"
		}
	}
	within := slices.DeleteFunc(slices.Clone(periods), func(p telemetry.Period) bool {
		return p.Start.Before(first.At.Add(-telemetry.Span)) || p.Start.After(last.At)
	})
	past, err := evaluate.PastOfRows(rows, within, farm)
	if err != nil {
		return nil, "too little of it was measured"
	}
	return past, ""
}

// inside are the tasks in the farm.
func inside(r *telemetry.Row) policy.Maybe {
	return r.Waiting + r.Running + policy.Maybe(r.Delayed.Or(0))
}
