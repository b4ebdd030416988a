package policy

import "math"

// stabilize is the largest proposal of the last stabilization seconds. One that is
// exactly as old still counts.
func (h *horizontal) stabilize(m Memory, in hpaReading, proposal int) int {
	return int(hpaProposals.peak(m, in.now, h.stabilization, float64(proposal)))
}

// stabilizeByRules brings the current count no further than to the least proposal of
// the up window or the largest of the down window. One that is exactly as old as
// the window does not count.
func (h *horizontal) stabilizeByRules(m Memory, in hpaReading, proposal int) int {
	var room [roomiest + 1]mark
	all := hpaProposals.load(m, room[:0])
	low, high := float64(proposal), float64(proposal)
	kept := all[:0]
	for _, p := range all {
		up, down := p.at > in.now-h.up.window, p.at > in.now-h.down.window
		if up {
			low = min(low, p.value)
		}
		if down {
			high = max(high, p.value)
		}
		// What a later proposal reached cannot be the least, or the largest, again.
		if p.at <= in.now && (up && p.value < float64(proposal) || down && p.value > float64(proposal)) {
			kept = append(kept, p)
		}
	}
	hpaProposals.save(m, append(kept, mark{in.now, float64(proposal)}))
	return int(clip(min(max(float64(in.current), low), high), 0, math.MaxInt32))
}

// limitPlainly is what a controller without rules allows of a count.
func limitPlainly(in hpaReading, n int) (int, string) {
	top, why := max(2*in.current, 4), "ScaleUpLimit"
	if in.max <= top {
		top, why = in.max, "TooManyReplicas"
	}
	switch {
	case n < in.min:
		return in.min, "TooFewReplicas"
	case n > top:
		return top, why
	}
	return n, "DesiredWithinRange"
}

// limitByRules is what the rules allow.
func (h *horizontal) limitByRules(m Memory, in hpaReading, n int) (int, string) {
	switch {
	case n > in.current:
		top, why := in.max, "TooManyReplicas"
		if most := max(in.current, h.reach(m, in, &h.up, 1)); most < top {
			top, why = most, "ScaleUpLimit"
		}
		if n > top {
			return top, why
		}
	case n < in.current:
		bottom, why := in.min, "TooFewReplicas"
		if least := min(in.current, h.reach(m, in, &h.down, -1)); least > bottom {
			bottom, why = least, "ScaleDownLimit"
		}
		if n < bottom {
			return bottom, why
		}
	}
	return n, "DesiredWithinRange"
}

// reach is how far the rules of one direction (1 up, −1 down) let the count go. Of
// several policies the one with the largest change counts, or the least.
func (h *horizontal) reach(m Memory, in hpaReading, r *scalingRules, direction float64) int {
	if r.choice == choiceDisabled || len(r.limits) == 0 {
		return in.current
	}
	var room [2 * roomiest]mark
	all := hpaFalls.load(m, hpaRises.load(m, room[:0]))
	best := math.Inf(-1)
	for i, l := range r.limits {
		begun := float64(in.current)
		for _, c := range all {
			if c.at > in.now-l.period {
				begun -= c.value
			}
		}
		to := begun + direction*l.value
		switch {
		case l.percent && direction > 0:
			to = math.Ceil(begun * (1 + l.value/100)) // up at least by one
		case l.percent:
			to = math.Trunc(begun * (1 - l.value/100))
		}
		// change is how far that is in the direction.
		if change := direction * to; i == 0 || (change > best) == (r.choice == choiceMax) {
			best = change
		}
	}
	return int(clip(direction*best, 0, math.MaxInt32))
}

// note stores a change of the count.
func (h *horizontal) note(m Memory, now float64, change int) {
	if !h.rules {
		return
	}
	t, r := hpaRises, &h.up
	if change < 0 {
		t, r = hpaFalls, &h.down
	}
	longest := 0.0
	for _, l := range r.limits {
		longest = max(longest, l.period)
	}
	var room [roomiest + 1]mark
	list, over := t.load(m, room[:0]), -1
	for i, c := range list {
		if c.at < now-longest {
			over = i
		}
	}
	if over < 0 {
		over, list = len(list), append(list, mark{})
	}
	list[over] = mark{now, float64(change)}
	t.save(m, list)
}
