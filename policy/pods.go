package policy

import "math"

// knative is the decision of Knative's pod autoscaler (KPA), as a function of what its
// scaler reads at a tick: two averages of a metric over all pods and the ready pods.
// The law kpa feeds it from an observation.
//
// With R = max(1, ready), every value of the metric in the units of target:
//
//	stable, panic  ⌈average/target⌉, from ⌊R/down⌋ to ⌈up·R⌉; where there is any, at
//	               least activation
//	panicking      from ⌈panic average/target⌉ ≥ threshold·R, not clamped, until a stable
//	               window after the last such tick
//	desired        stable; while panicking the largest of both since it began
//	delay          the largest desired of the last delay seconds
//
// A scaler that begins with more than one ready pod begins panicking at that count,
// so that a restart cannot drop any for a stable window.
//
// Memory: panic, when the threshold was last passed; most, the count held while
// panicking; begun; and the trail of the delay.
//
// Source: pkg/autoscaler/scaling of Knative serving v0.42.2, which produced
// testdata/golden/kpa.
type knative struct {
	target, total float64 // of the metric a pod: to aim at, and what it can carry
	window        float64 // seconds, stable
	threshold     float64 // ratio
	up, down      float64 // ratios a decision
	burst         float64 // capacity to keep for bursts; −1 unlimited
	delay, tick   float64 // seconds
	activation    int     // 0 = none
	reachable     bool
}

// knativeDelay is the room for the counts of the delay.
var knativeDelay = trailOf("delay", "n", roomiest)

// knativeReading is what the scaler reads. It decides nothing where the averages are
// unknown.
type knativeReading struct {
	now           float64
	stable, panic Maybe
	ready         int
}

// knativeAnswer is what it comes to, before min and max.
type knativeAnswer struct {
	valid     bool
	desired   int
	panicking bool
	excess    float64 // burst capacity left, negative: requests should be buffered
}

// begin starts a scaler that finds so many ready pods.
func (k *knative) begin(m Memory, now float64, ready int) {
	if _, begun := m["begun"]; begun {
		return
	}
	m["begun"] = now
	if ready > 1 {
		m["panic"], m["most"] = now, float64(ready)
	}
}

// scale decides.
func (k *knative) scale(m Memory, in knativeReading) knativeAnswer {
	if !in.stable.Known() || !in.panic.Known() {
		return knativeAnswer{}
	}
	ready := max(1, float64(in.ready))
	need, rush := math.Ceil(float64(in.stable)/k.target), math.Ceil(float64(in.panic)/k.target)
	a := knativeAnswer{valid: true, panicking: k.panics(m, in.now, rush/ready >= k.threshold)}

	desired := k.clamp(need, ready)
	if a.panicking {
		desired = max(desired, k.clamp(rush, ready), clip(m["most"], 0, most))
		m["most"] = desired
	}
	if k.delay > 0 {
		bucket := math.Floor(in.now / k.tick)
		desired = knativeDelay.peak(m, bucket, math.Ceil(k.delay/k.tick)-1, desired)
	}
	a.desired = int(desired)
	switch {
	case k.burst > 0:
		a.excess = math.Floor(float64(in.ready)*k.total - k.burst - float64(in.panic))
	case k.burst < 0:
		a.excess = -1
	}
	return a
}

// clamp limits a need by the rates of one decision.
func (k *knative) clamp(need, ready float64) float64 {
	least := math.Floor(ready / k.down)
	if !k.reachable {
		least = 0
	}
	n := min(max(need, least), math.Ceil(k.up*ready), most)
	if need > 0 {
		n = max(n, float64(k.activation))
	}
	return n
}

// panics begins, prolongs or ends the panic, and reports whether there is one.
func (k *knative) panics(m Memory, now float64, over bool) bool {
	since, panicking := m["panic"]
	switch {
	case over:
		m["panic"] = now
		return true
	case panicking && since+k.window < now:
		delete(m, "panic")
		delete(m, "most")
		return false
	}
	return panicking
}
