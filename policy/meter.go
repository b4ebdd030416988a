package policy

// meter averages a metric over periods, as a monitoring service does that shows a point
// a period: the total over all replicas, and its share of a ready slot.
//
// Memory: point, when the next period ends; total, slots and samples, their sums so far.
type meter struct {
	metric metric
	period float64 // seconds
}

// meterPoint is the mean of a period.
type meterPoint struct {
	total float64 // of all replicas, in the mean
	share float64 // per ready slot; of the slots of one where none was ready
}

// read takes a sample and returns the point where a period ends with it.
func (t meter) read(o *Observation, m Memory) (p meterPoint, ok bool) {
	total, slots, n := clip(m["total"], 0, 1e15), clip(m["slots"], 0, 1e15), clip(m["samples"], 0, 1e9)
	total, slots, n = total+t.metric.total(o), slots+max(o.ready(), o.slots()), n+1
	_, begun := m["point"]
	if end := due(m, "point", seconds(o.At), t.period); end && begun {
		m["total"], m["slots"], m["samples"] = 0, 0, 0
		return meterPoint{total / n, total / slots}, true
	}
	m["total"], m["slots"], m["samples"] = total, slots, n
	return p, false
}

// streak counts how often in a row something was so, up to most.
func streak(m Memory, key string, so bool) int {
	n := 0
	if so {
		n = count(m[key]) + 1
	}
	m[key] = float64(n)
	return n
}

// within reports whether a time that stands in Memory lies less than so many seconds
// back.
func within(m Memory, key string, now, span float64) bool {
	at, ok := m[key]
	return ok && at <= now && now < at+span
}
