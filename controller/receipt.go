package controller

import (
	"fmt"
	"reflect"
	"time"

	"farmhand/policy"
)

// Receipt says why a farm has the workers it has. It holds all that the decision
// depended on, so that it can be made again.
type Receipt struct {
	Farm       string    `json:"farm"`
	At         time.Time `json:"at"`
	Seq        int64     `json:"seq"`
	Controller string    `json:"controller"`
	Fence      int64     `json:"fence"`

	Inputs
	Verdict
	Capacity *Cut `json:"capacity,omitempty"` // where the capacity bound
	Replicas int  `json:"replicas"`           // what is wanted now
	Before   int  `json:"before"`             // what was wanted before

	Foreign *Foreign `json:"foreign_change,omitempty"` // a change that this controller did not make
	Acted   *Acted   `json:"acted,omitempty"`          // the scale call that ended since the last receipt
}

// Cut is a count that the capacity lowered.
type Cut struct {
	From     int `json:"from"`
	To       int `json:"to"`
	Capacity int `json:"capacity"`
}

// Foreign is a change of the count that somebody else made.
type Foreign struct {
	From int `json:"from"` // what this controller had left
	To   int `json:"to"`
}

// Acted is a scale call.
type Acted struct {
	At       time.Time `json:"at"` // by the store's clock
	From     int       `json:"from"`
	To       int       `json:"to"`
	ReadBack int       `json:"read_back"` // what the platform says of it
	Seconds  float64   `json:"seconds"`
	Error    string    `json:"error,omitempty"`
}

// Decider is the policy whose wish counted.
func (r *Receipt) Decider() string {
	switch {
	case r.By != "":
		return r.By
	case r.Mode == Shadow:
		return r.Fallback
	}
	return r.Policy
}

// Why tells the decision in one line.
func (r *Receipt) Why() string {
	wish := r.Wish
	if r.Mode == Shadow {
		wish = r.Rule
	}
	s := fmt.Sprintf("%s: %s", r.Decider(), wish.Reason)
	for _, l := range r.Outcome.Limits {
		s += fmt.Sprintf("; %s %d→%d: %s", l.Name, l.From, l.To, l.Reason)
	}
	if r.Capacity != nil {
		s += fmt.Sprintf("; capacity %d→%d: %d for all farms", r.Capacity.From, r.Capacity.To, r.Capacity.Capacity)
	}
	return s
}

// Replay decides again from the receipt's inputs, and the learned policies that they
// name. It returns an error that says what differs, if anything does.
func (r *Receipt) Replay(learned ...policy.Learned) error {
	v := Decide(r.Inputs, learned...)
	for _, c := range []struct {
		what      string
		then, now any
	}{{"wish", r.Wish, v.Wish}, {"rule", r.Rule, v.Rule}, {"advice", r.Advice, v.Advice}, {"outcome", r.Outcome, v.Outcome},
		{"hand-back", r.HandedBack, v.HandedBack}, {"shadow's wish", r.ShadowWish, v.ShadowWish}} {
		if !reflect.DeepEqual(c.then, c.now) {
			return fmt.Errorf("controller: receipt %d of %s: the %s was %+v and is %+v now", r.Seq, r.Farm, c.what, c.then, c.now)
		}
	}
	return nil
}
