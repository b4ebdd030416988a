package policy

import "math"

// horizontal is the decision of the horizontal pod autoscaler of Kubernetes (v2) for
// one External metric with an AverageValue target, as a function of what the
// controller reads at a sync. The laws hpa and keda feed it from an observation.
//
// A sync proposes, with u = total/(target·status replicas), in thousandths:
//
//	status replicas        where 1 − tolerance ≤ u ≤ 1 + tolerance
//	⌈total/target⌉         else
//
// The proposal is stabilised, then limited. Without rules (a behavior block): the
// largest proposal of the last stabilization seconds; from min to
// min(max, max(2·current, 4)). With rules: no less than the least proposal of the up
// window and no more than the largest of the down window, as near to the current
// count as these allow; then each policy of the direction limits what the count may
// be, given its change within the policy's period; then min and max.
//
// Memory: the proposals that can still count and, with rules, the changes up and
// down. What one direction stores takes the place of its newest change that is older than
// its own longest period, even where the other direction's longer period would
// still count it: a quirk of the controller.
//
// Source: the published controller, pkg/controller/podautoscaler of Kubernetes v1.35.0,
// which produced testdata/golden/hpa.
type horizontal struct {
	tolerance     float64
	stabilization float64 // seconds, without rules
	rules         bool
	up, down      scalingRules // each with a tolerance of its own
}

// scalingRules are one direction of a behavior block.
type scalingRules struct {
	window    float64 // seconds
	tolerance float64
	choice    choice
	limits    []scalingLimit
}

// choice is which policy of several counts: that of the largest change, the least, or
// none that changes anything.
type choice int

const (
	choiceMax choice = iota
	choiceMin
	choiceDisabled
)

// scalingLimit is a policy: a change by value pods or percent in period seconds.
type scalingLimit struct {
	percent       bool
	value, period float64
}

var (
	hpaProposals = trailOf("proposal", "n", roomiest)
	hpaRises     = trailOf("rise", "n", roomiest)
	hpaFalls     = trailOf("fall", "n", roomiest)
)

// hpaReading is what a sync reads. Without a value of the metric nothing changes.
type hpaReading struct {
	now             float64 // seconds
	total           Maybe   // of the metric
	current, status int     // replicas asked for, and there
	min, max        int
}

// hpaAnswer is what a sync comes to, with the reasons that the controller publishes.
type hpaAnswer struct {
	desired         int
	able            string // SucceededGetScale, ReadyForNewScale, ScaleUpStabilized, ScaleDownStabilized, SucceededRescale
	active, limited string // "" where the sync did not look
}

// sync decides, for a target per replica.
func (h *horizontal) sync(m Memory, in hpaReading, target float64) hpaAnswer {
	a := hpaAnswer{desired: in.current, able: "SucceededGetScale"}
	h.begin(m, in)
	switch {
	case in.current == 0 && in.min != 0:
		a.active = "ScalingDisabled"
		return a
	case in.current > in.max:
		a.desired = in.max
	case in.current < in.min:
		a.desired = in.min
	case !in.total.Known():
		a.active = "FailedGetExternalMetric"
		return a
	default:
		a.active = "ValidMetricFound"
		proposal := h.propose(in, target)
		stable := proposal
		if h.rules {
			stable = h.stabilizeByRules(m, in, proposal)
			a.desired, a.limited = h.limitByRules(m, in, stable)
		} else {
			stable = h.stabilize(m, in, proposal)
			a.desired, a.limited = limitPlainly(in, stable)
		}
		switch {
		case stable == proposal:
			a.able = "ReadyForNewScale"
		case h.rules && proposal >= in.current:
			a.able = "ScaleUpStabilized"
		default:
			a.able = "ScaleDownStabilized"
		}
	}
	if a.desired != in.current {
		a.able = "SucceededRescale"
		h.note(m, in.now, a.desired-in.current)
	}
	return a
}

// begin stores the count that is found first as if it had been proposed.
func (h *horizontal) begin(m Memory, in hpaReading) {
	if _, begun := m["begun"]; !begun {
		m["begun"] = in.now
		hpaProposals.save(m, []mark{{in.now, float64(in.current)}})
	}
}

// propose is the count that the metric asks for. The controller divides whole
// thousandths.
func (h *horizontal) propose(in hpaReading, target float64) int {
	total := milli(float64(in.total))
	target = max(1, milli(target))
	below, above := h.tolerance, h.tolerance
	if h.rules {
		below, above = h.down.tolerance, h.up.tolerance
	}
	u := total / (target * float64(in.status))
	if 1-below <= u && u <= 1+above {
		return in.status
	}
	return int(clip(math.Ceil(total/target), 0, math.MaxInt32))
}

// milli is x in whole thousandths.
func milli(x float64) float64 { return clip(math.Round(1000*x), 0, 1e15) }
