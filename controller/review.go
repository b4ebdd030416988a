package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
)

// Referee plays a farm's past again in a model of it.
type Referee interface {
	policy.Estimator
	// Actual is what the counts that there were come to in the same model.
	Actual(ctx context.Context, past []policy.Observation) (policy.Estimate, error)
}

// What reviews may take.
const (
	reviewShare = 0.02             // of one core, all of them together
	reviewTime  = 30 * time.Second // one at most
	reviewTasks = 200_000          // of the newest past
)

// Review compares what a farm was scaled to in its last minutes with what its rule and
// its shadow would have come to. All estimates are of the same past in the same model.
type Review struct {
	At      time.Time        `json:"at"`
	Policy  string           `json:"policy,omitempty"` // the learned policy that decided all of it; "" = a law did
	Target  float64          `json:"target"`
	OnTime  policy.Maybe     `json:"on_time"` // as it was measured
	Actual  policy.Estimate  `json:"actual"`
	Rule    *policy.Estimate `json:"rule,omitempty"`   // where a learned policy decides
	Shadow  *policy.Estimate `json:"shadow,omitempty"` // where there is one
	Beside  string           `json:"shadow_policy,omitempty"`
	Problem string           `json:"problem,omitempty"` // why there are no estimates
	Seconds float64          `json:"took_s"`
}

// trial is what the review says of the learned policy; nil where it says nothing.
func (r *Review) trial(interval float64) *guard.Trial {
	if _, long := policy.Windows(interval); r.Rule == nil || r.Actual.Seconds < long {
		return nil
	}
	return &guard.Trial{At: r.At, Policy: r.Policy, Target: r.Target, OnTime: r.OnTime, Actual: r.Actual, Rule: *r.Rule}
}

// subject is what a review of a farm is about.
type subject struct {
	farm     string
	interval time.Duration
	learned  string        // name of the learned policy that decides; "" = a law, or the rule, does
	rule     policy.Policy // the learned policy's fallback
	shadow   policy.Policy // nil = none
}

// subject says what is to be compared on the farm; ok is false where nothing is.
func (f *farm) subject() (s subject, ok bool) {
	if f.fence == 0 || f.last == nil {
		return s, false
	}
	s = subject{farm: f.name, interval: f.eff.Interval}
	m := &f.mind
	if m.active != nil && f.eff.Mode == Act && !f.state.Hand.Back() {
		s.learned, s.rule = m.active.Name(), m.active.Fallback()
	}
	switch {
	case m.beside != nil:
		s.shadow = m.beside
	case m.shadow.Spec != "":
		s.shadow, _ = policy.New(m.shadow.Spec) // a champion that is not there is not reviewed
	case f.eff.Mode == Shadow && m.active != nil:
		s.shadow = m.active
	case f.eff.Mode == Shadow && !m.policy.Learned():
		s.shadow, _ = policy.New(f.eff.Policy) // else its problem is told
	}
	return s, s.rule != nil || s.shadow != nil
}

// review compares until the controller is stopped: one farm after the other, each once
// in guard.TrialEvery at most, and so much rest after each that all of it takes no more
// than reviewShare of a core, however many there are.
func (c *Controller) review() {
	timer := time.NewTimer(lookTime)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		}
		rest := lookTime
		if f, s := c.reviewed(time.Now()); f != nil {
			begun := time.Now()
			r := c.compare(s)
			took := time.Since(begun)
			r.Seconds = took.Seconds()
			f.conclude(s, r)
			rest = max(rest, time.Duration(float64(took)*(1/reviewShare-1)))
		}
		timer.Reset(rest)
	}
}

// reviewed is the farm that has waited longest for a review that is due; nil = none.
func (c *Controller) reviewed(now time.Time) (first *farm, s subject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var since time.Time
	for _, f := range c.farms {
		f.mu.Lock()
		about, ok := f.subject()
		switch {
		case !ok:
			f.judged = time.Time{}
		case f.judged.IsZero():
			f.judged = now
		case now.Sub(f.judged) >= guard.TrialEvery && (first == nil || f.judged.Before(since)):
			first, s, since = f, about, f.judged
		}
		f.mu.Unlock()
	}
	if first != nil {
		first.mu.Lock()
		first.judged = now
		first.mu.Unlock()
	}
	return first, s
}

// conclude keeps a review with the farm, and hands it to the next decision.
func (f *farm) conclude(s subject, r *Review) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fence == 0 {
		return
	}
	f.state.Review, f.unsaved = r, true
	if t := r.trial(s.interval.Seconds()); t != nil {
		f.trial = t
	}
}

// compare plays the farm's past again.
func (c *Controller) compare(s subject) *Review {
	ctx, cancel := context.WithTimeout(c.ctx, reviewTime)
	defer cancel()
	r := &Review{OnTime: policy.Unknown, Policy: s.learned}
	r.Actual.OnTime = policy.Unknown // there is no JSON of it else
	past, err := c.past(ctx, s)
	if err == nil {
		err = c.estimate(ctx, r, s, past)
	}
	if err != nil {
		r.Problem, r.Rule, r.Shadow = err.Error(), nil, nil
	}
	return r
}

func (c *Controller) estimate(ctx context.Context, r *Review, s subject, past []policy.Observation) (err error) {
	last := &past[len(past)-1]
	r.At, r.Target, r.OnTime = last.At, last.Target, measured(past)
	if r.Actual, err = c.cfg.Referee.Actual(ctx, past); err != nil {
		return err
	}
	play := func(p policy.Policy) (*policy.Estimate, error) {
		if p == nil {
			return nil, nil
		}
		e, err := c.cfg.Referee.Estimate(ctx, past, p)
		return &e, err
	}
	if r.Rule, err = play(s.rule); err != nil {
		return err
	}
	if s.shadow != nil {
		r.Beside = s.shadow.Name()
	}
	r.Shadow, err = play(s.shadow)
	return err
}

// measured is the share of tasks that were on time.
func measured(past []policy.Observation) policy.Maybe {
	var w policy.Window
	for i := range past[1:] {
		w.Decided += past[i+1].Last.Decided
		w.Late += past[i+1].Last.Late
	}
	return w.OnTime()
}

// past reads the observations of the farm's last minutes, the oldest first: where a
// learned policy decides, only its own, and of a busy farm no more than are played in
// little time.
func (c *Controller) past(ctx context.Context, s subject) ([]policy.Observation, error) {
	n := min(maxReceipts, 2+2*int(guard.TrialPast/s.interval)) // a farm may be woken between
	raws, err := c.cfg.Receipts.Tail(ctx, s.farm, n)
	if err != nil {
		return nil, err
	}
	var list []policy.Observation
	tasks := 0.0
	for _, raw := range raws { // the newest first
		var r struct { // of a Receipt
			Observation policy.Observation `json:"observation"`
			Mode        Mode               `json:"mode"`
			By          string             `json:"by"`
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("controller: a receipt cannot be read: %w", err)
		}
		o := &r.Observation
		if s.learned != "" && (r.Mode != Act || cmp.Or(r.By, s.learned) != s.learned) {
			break
		}
		if len(list) > 0 && (list[0].At.Sub(o.At) > guard.TrialPast || tasks >= reviewTasks || !o.At.Before(list[len(list)-1].At)) {
			break
		}
		list = append(list, *o)
		tasks += o.Last.Arrivals
	}
	if len(list) < 2 {
		return nil, fmt.Errorf("only %d decisions of it are known", len(list))
	}
	slices.Reverse(list)
	return list, nil
}
