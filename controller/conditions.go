package controller

import (
	"fmt"
	"strings"
	"time"
)

// The types of conditions.
const (
	Healthy  = "Healthy"  // signals come, the platform answers, nobody else scales
	Scaling  = "Scaling"  // replicas are on their way
	Limited  = "Limited"  // a limit keeps the farm from what its policy wishes
	Fallback = "Fallback" // the rule decides in the place of the farm's policy
	PausedBy = "Paused"   // nothing is decided, or nothing done
)

// Condition is one thing that holds of a farm, or does not.
type Condition struct {
	Status bool      `json:"status"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"` // of the last change of Status
}

// set notes how a condition stands; Since moves only with its status.
func (s *state) set(kind string, now time.Time, status bool, reason string) {
	if s.Conditions == nil {
		s.Conditions = map[string]Condition{}
	}
	c, known := s.Conditions[kind]
	if !known || c.Status != status {
		c.Since = now
	}
	c.Status, c.Reason = status, reason
	if !status && kind != Healthy {
		c.Reason = ""
	}
	s.Conditions[kind] = c
}

// assess sets all conditions after a decision.
func (s *state) assess(r *Receipt, desired, ready int, blocked string) {
	now := r.At
	if r.Replicas == desired { // there is nothing to call
		s.Failed = ""
	}
	ill := ""
	switch {
	case r.Observation.Stale():
		ill = "the signals are missing or too old"
	case blocked != "":
		ill = blocked + ": no task is handed out until then"
	case s.Failed != "":
		ill = "the last scale call failed: " + s.Failed
	case len(s.recent(now)) >= foreignMany:
		ill = "somebody else scales this function too (com.openfaas.scale.factor: \"0\" keeps the gateway's own scaler away)"
	case r.Outcome.Alarm:
		ill = "80 % of the day's budget is used"
	}
	s.set(Healthy, now, ill == "", ill)
	s.set(Scaling, now, r.Replicas != ready, "")
	var limits []string
	for _, l := range r.Outcome.Limits {
		limits = append(limits, l.Name+": "+l.Reason)
	}
	if r.Capacity != nil {
		limits = append(limits, "capacity: all farms share it")
	}
	if s.Most.holds(now) && r.Replicas == s.Most.N || s.Least.holds(now) && r.Replicas == s.Least.N {
		limits = append(limits, "the platform keeps to bounds of its own")
	}
	s.set(Limited, now, len(limits) > 0, strings.Join(limits, "; "))
	back := r.fallsBack()
	s.set(Fallback, now, back != "", back)
	s.set(PausedBy, now, !r.Mode.Acts(), "mode "+string(r.Mode))
}

// fallsBack says why the rule decides in the place of the farm's policy; "" = it does
// not.
func (r *Receipt) fallsBack() string {
	h := &r.HandNext
	switch {
	case r.Mode == Shadow:
		return "mode shadow: the rule decides"
	case r.Learned == nil || r.Learned.Loading:
		return ""
	case r.Learned.Version == "":
		return r.Learned.Note
	case h.Back() && h.Policy == r.Learned.Version:
		return fmt.Sprintf("%s is handed back for %s: %s", h.Policy, time.Duration(h.Left*1e9).Round(time.Second), h.Reason)
	}
	return ""
}
