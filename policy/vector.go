package policy

import (
	"math"
	"slices"
)

// A learner sees an Observation as a vector of numbers without dimension, so that
// what it learned of one farm holds for others of any speed and size: an
// observation of a farm whose every time is ten times as long, and whose every
// rate a tenth, is the same vector.
//
// Every feature lies within the bounds of features below, whatever the observation
// holds. What is unknown is 0, and the feature called …_known at the head of a
// group says so (1 known, 0 not). Amounts without natural bound are log(1 + x):
// near 0 as exact as x, and steps by equal factors far out. Units:
//
//	load, replicas   Erlangs, counts
//	queue            tasks over what the ready replicas do in an interval, and per
//	                 ready slot (none ready: the slots of one)
//	wait, sojourn    over the deadline, or the interval where there is none
//	age, lag         over the interval
//
// The order and the meaning of the features belong to ObservationVersion.

// feature is one number of the vector. of gives NaN or Inf where it is unknown.
type feature struct {
	name   string
	lo, hi float64
	of     func(v view) float64
}

// view is an observation with the units that its features share.
type view struct {
	*Observation
	unit float64 // seconds: the deadline, or the interval where there is none
	able float64 // slots of the ready replicas, at least those of one
}

func newView(o *Observation) view {
	v := view{Observation: o, unit: o.Interval, able: max(o.ready(), o.slots())}
	if o.Deadline > 0 {
		v.unit = o.Deadline
	}
	return v
}

// ratio is x/y, NaN where y is no amount.
func ratio(x, y float64) float64 {
	if !(y > 0) || math.IsInf(y, 1) {
		return math.NaN()
	}
	return x / y
}

// grow is log(1 + x), of nothing where x is below it.
func grow(x float64) float64 { return math.Log1p(math.Max(0, x)) }

// known is 1 or 0.
func known(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// load is the offered load of a window in Erlangs.
func (v view) load(w Window) float64 { return float64(v.Load(w)) }

// past is a past level, the newest is 0; nothing where there is none.
func (v view) past(i int) Level {
	if i >= len(v.Past) {
		return Level{}
	}
	return v.Past[i]
}

// against compares replicas with the load of the short window: 0 where both are
// equal, log 2 where there are twice as many.
func (v view) against(replicas int) float64 { return grow(float64(replicas)) - grow(v.load(v.Short)) }

// late is the share of the decided tasks that were late.
func late(w Window) float64 { return 1 - float64(w.OnTime()) }

// features are the vector from its first number to its last.
var features = slices.Concat([]feature{
	// What the farm is asked to keep.
	{"deadline_known", 0, 1, func(v view) float64 { return known(v.Deadline > 0) }},
	{"deadline", 0, 10, func(v view) float64 { return grow(ratio(v.Deadline, v.Interval)) }},
	{"target", 0, 1, func(v view) float64 { return v.Target }},
	{"age", 0, 5, func(v view) float64 { return grow(ratio(float64(v.Age), v.Interval)) }},

	// Service times.
	{"service_known", 0, 1, func(v view) float64 { return known(v.Service.Known()) }},
	{"service", 0, 10, func(v view) float64 { return grow(ratio(float64(v.Service), v.unit)) }},
	{"service_cv2", 0, 5, func(v view) float64 { return grow(v.Short.Service.CV2()) }},

	// Load.
	{"load_known", 0, 1, func(v view) float64 { return known(v.Load(v.Short).Known()) }},
	{"load_last", 0, 15, func(v view) float64 { return grow(v.load(v.Last)) }},
	{"load_short", 0, 15, func(v view) float64 { return grow(v.load(v.Short)) }},
	{"load_long", 0, 15, func(v view) float64 { return grow(v.load(v.Long)) }},
	{"load_peak_known", 0, 1, func(v view) float64 { return known(v.PeakLoad.Known()) }},
	{"load_peak", 0, 15, func(v view) float64 { return grow(float64(v.PeakLoad)) }},

	// Replicas, and how far from the bounds they are.
	{"desired", 0, 15, func(v view) float64 { return grow(float64(v.Desired)) }},
	{"desired_against_load", -15, 15, func(v view) float64 { return v.against(v.Desired) }},
	{"ready_against_load", -15, 15, func(v view) float64 { return v.against(v.Ready) }},
	{"starting", 0, 1, func(v view) float64 { return ratio(float64(v.Starting), float64(v.Desired)) }},
	{"draining_known", 0, 1, func(v view) float64 { return known(v.Draining.Known()) }},
	{"draining", 0, 5, func(v view) float64 { return grow(ratio(float64(v.Draining), max(1, float64(v.Ready)))) }},
	{"room_above", 0, 1, func(v view) float64 { return 1 - ratio(float64(v.Desired), float64(v.Max)) }},
	{"room_below", 0, 1, func(v view) float64 { return 1 - ratio(float64(v.Min), float64(v.Desired)) }},
	{"lag_known", 0, 1, func(v view) float64 { return known(v.StartupLag.Known()) }},
	{"lag", 0, 10, func(v view) float64 { return grow(ratio(float64(v.StartupLag), v.Interval)) }},

	// The queue at this instant.
	{"gauges_known", 0, 1, func(v view) float64 { return known(v.Waiting.Known() && v.Running.Known()) }},
	{"waiting", 0, 15, func(v view) float64 {
		return grow(ratio(float64(v.Waiting)*float64(v.Service), v.able*v.Interval))
	}},
	{"waiting_per_slot", 0, 15, func(v view) float64 { return grow(ratio(float64(v.Waiting), v.able)) }},
	{"running_per_slot", 0, 2, func(v view) float64 { return ratio(float64(v.Running), v.able) }},
	{"delayed_per_slot", 0, 15, func(v view) float64 { return grow(ratio(float64(v.Delayed), v.able)) }},
	{"oldest_wait", 0, 10, func(v view) float64 { return grow(ratio(float64(v.OldestWait), v.unit)) }},
	{"overdue", 0, 1, func(v view) float64 { return ratio(float64(v.Overdue), float64(v.Waiting+v.Running)) }},
	{"next_due_known", 0, 1, func(v view) float64 { return known(v.NextDue.Known()) }},
	{"next_due", -5, 5, func(v view) float64 { return ratio(float64(v.NextDue), v.unit) }},
	{"running_age", 0, 10, func(v view) float64 { return grow(ratio(float64(v.RunningAge), v.unit)) }},

	// What became of the tasks.
	{"late_last_known", 0, 1, func(v view) float64 { return known(v.Last.OnTime().Known()) }},
	{"late_last", 0, 1, func(v view) float64 { return late(v.Last) }},
	{"late_short_known", 0, 1, func(v view) float64 { return known(v.Short.OnTime().Known()) }},
	{"late_short", 0, 1, func(v view) float64 { return late(v.Short) }},
	{"late_long", 0, 1, func(v view) float64 { return late(v.Long) }},
	{"sojourn_known", 0, 1, func(v view) float64 { return known(v.Short.Sojourn.N > 0) }},
	{"sojourn_mean", 0, 10, func(v view) float64 { return grow(ratio(v.Short.Sojourn.Mean, v.unit)) }},
	{"sojourn_p95", 0, 10, func(v view) float64 { return grow(ratio(v.Short.Sojourn.P95, v.unit)) }},
	{"sojourn_p99", 0, 10, func(v view) float64 { return grow(ratio(v.Short.Sojourn.P99, v.unit)) }},
	{"wait_p95", 0, 10, func(v view) float64 { return grow(ratio(v.Short.Wait.P95, v.unit)) }},
	{"busy_answers", 0, 1, func(v view) float64 { return ratio(v.Short.Busy, v.Short.Busy+v.Short.Starts) }},
	{"failed", 0, 1, func(v view) float64 { return ratio(v.Short.Failed+v.Short.Lost, v.Short.Starts) }},
	{"busy_known", 0, 1, func(v view) float64 { return known(v.Busy.Known()) }},
	{"busy", 0, 1, func(v view) float64 { return float64(v.Busy) }},

	// The level of the load, and how its age compares with the level before the last:
	// in a load that goes up and down that was one of the same kind.
	{"level_known", 0, 1, func(v view) float64 { return known(v.Level.Age > 0) }},
	{"level_load", 0, 15, func(v view) float64 { return grow(v.Level.Load) }},
	{"level_age", 0, 10, func(v view) float64 { return grow(ratio(v.Level.Age, v.Interval)) }},
	{"level_sojourn", 0, 10, func(v view) float64 { return grow(ratio(v.Level.Sojourn, v.unit)) }},
	{"level_age_against_past2", 0, 5, func(v view) float64 { return ratio(v.Level.Age, v.past(1).Age) }},
}, pastFeatures())

// pastFeatures are those of the past levels, newest first.
func pastFeatures() (list []feature) {
	for i := range Levels {
		name := "past" + string(rune('1'+i)) + "_"
		list = append(list,
			feature{name + "known", 0, 1, func(v view) float64 { return known(v.past(i).Age > 0) }},
			feature{name + "load", 0, 15, func(v view) float64 { return grow(v.past(i).Load) }},
			feature{name + "age", 0, 10, func(v view) float64 { return grow(ratio(v.past(i).Age, v.Interval)) }},
			feature{name + "sojourn", 0, 10, func(v view) float64 { return grow(ratio(v.past(i).Sojourn, v.unit)) }},
		)
	}
	return list
}

// Vector is the observation as a learner sees it: one number for each of
// VectorNames, each within VectorBounds.
func (o *Observation) Vector() []float64 { return o.AppendVector(make([]float64, 0, len(features))) }

// AppendVector appends the vector to dst; it allocates nothing where dst has room.
func (o *Observation) AppendVector(dst []float64) []float64 {
	v := newView(o)
	for _, f := range features {
		x := f.of(v)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			x = 0
		}
		dst = append(dst, clip(x, f.lo, f.hi))
	}
	return dst
}

// VectorNames are the names of the vector's numbers, in their order.
func VectorNames() []string {
	names := make([]string, len(features))
	for i, f := range features {
		names[i] = f.name
	}
	return names
}

// VectorBounds are the least and the greatest value of each of the vector's numbers.
func VectorBounds() (lo, hi []float64) {
	for _, f := range features {
		lo, hi = append(lo, f.lo), append(hi, f.hi)
	}
	return lo, hi
}
