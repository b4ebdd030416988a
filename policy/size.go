package policy

// Sizer is a policy that can tell how many replicas it would have for any load,
// not only for the one there is.
type Sizer interface {
	Policy
	// DecideAndSize is Decide, and what sizes the same observation for other loads.
	DecideAndSize(o *Observation, m Memory) (Decision, Sizing)
}

// Sizing sizes an observation for steady loads, until the observation changes. It
// shares what does not depend on the load with the decision that it came with.
type Sizing struct {
	rule     staff
	observed *Observation
	punctuality
}

// DecideAndSize implements Sizer.
func (s staff) DecideAndSize(o *Observation, m Memory) (Decision, Sizing) {
	z := Sizing{rule: s, observed: o}
	d := s.decide(o, m, &z.punctuality)
	return d, z
}

// Size is the count for a steady load in Erlangs (of slots); nothing is known where
// the service time is not.
func (z *Sizing) Size(load float64) (replicas int, known bool) {
	s, o := &z.rule, z.observed
	service := float64(o.Service)
	if !(service > 0) || !(load >= 0) {
		return 0, false
	}
	slots, _ := s.steady(o, s.headroom*min(load, fastest), clip(service, 0, 1e6), &z.punctuality)
	return s.bound(whole(o, slots)), true
}
