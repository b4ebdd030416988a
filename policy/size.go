package policy

// Sizer is a policy that can tell how many replicas it would have for any load,
// not only for the one there is.
type Sizer interface {
	Policy
	// Size is the count for a steady load in Erlangs (of slots); nothing is known
	// where the service time is not. It remembers nothing.
	Size(o *Observation, load float64) (replicas int, known bool)
}

// Size implements Sizer.
func (s staff) Size(o *Observation, load float64) (int, bool) {
	service := float64(o.Service)
	if !(service > 0) || !(load >= 0) {
		return 0, false
	}
	slots, _ := s.steady(o, s.headroom*min(load, fastest), clip(service, 0, 1e6))
	return s.bound(whole(o, slots)), true
}
