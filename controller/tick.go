package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/skeleton/signal"
)

// measure reads gauges, signals and usage, and decides for the farms that tick.
func (c *Controller) measure(ctx context.Context, batch []*work) {
	since := make(map[string]int64, len(batch))
	cold := 0
	for _, w := range batch {
		w.mu.Lock()
		from := w.series.Since()
		w.mu.Unlock()
		if from == 0 {
			if cold++; cold > coldFarms { // reading failed before, for many: bit by bit again
				continue
			}
		}
		since[w.name] = from
	}
	readings, err := c.cfg.Signals.Read(ctx, since)
	if err != nil {
		c.cfg.Log.Warn("signals could not be read: those farms hold", "error", err)
	}
	c.gauge(ctx, batch)
	for _, w := range batch {
		w.mu.Lock()
		var r *signal.Reading
		if reading, ok := readings[w.name]; ok {
			reading.Seconds = slices.DeleteFunc(reading.Seconds, spoilt)
			r = &reading
			w.serve(r)
		}
		var foreign *Foreign
		if !w.farm.call {
			foreign = w.state.foreign(w.worker.Desired, w.now)
			if w.state.Left == nil {
				n := w.worker.Desired
				w.state.Left = &n
			}
		}
		if w.tick || foreign != nil {
			o := w.observe(w.now, w.gauges, r)
			w.mind = c.mind(w.farm)
			w.wish = w.decide(c.cfg.Owner, w.now, o, foreign)
			w.dirty = true
		} else if r != nil {
			w.series.Add(r)
		}
		w.heard = !policy.Silent(w.series.Age(w.now), w.eff.Interval.Seconds())
		w.mu.Unlock()
		if w.tick && c.cfg.Ticked != nil {
			c.cfg.Ticked(w.name, w.late)
		}
	}
}

// serve gathers the service times of new seconds for the log, but of that of now,
// which may grow. What was there before the last decision has been kept with it,
// maybe by another controller.
func (f *farm) serve(r *signal.Reading) {
	for i := range r.Seconds {
		if s := &r.Seconds[i]; s.Unix > f.counted && s.Unix >= f.state.Ticked.Unix() && s.Unix < r.Now.Unix() {
			f.served.Merge(&s.Service)
			f.counted = s.Unix
		}
	}
}

// spoilt reports whether a second holds what is no number. Nothing of it can be
// told in a receipt, so it is passed over, as one that is not known.
func spoilt(s signal.Second) bool {
	for _, h := range []*signal.Hist{&s.Wait, &s.Service, &s.Sojourn} {
		if x := h.Sum + h.Squares + h.Max; math.IsNaN(x) || math.IsInf(x, 0) {
			return true
		}
	}
	return false
}

// mind is what decides for a farm.
type mind struct {
	policy Choice
	shadow Choice         // no specification where there is none
	active policy.Learned // nil where the policy is a law, or there is none
	beside policy.Learned // likewise, of the shadow
}

// fallback is the specification of the rule.
func (m *mind) fallback() string {
	if m.active != nil {
		return m.active.Fallback().Name()
	}
	return DefaultPolicy
}

// adviser is the specification of what advises the learned policy; "" = the rule does.
func (m *mind) adviser() string {
	if m.active != nil {
		if spec := m.active.Rule().Name(); spec != m.fallback() {
			return spec
		}
	}
	return ""
}

// key tells which policy it is: what another one remembered is not its own.
func (c *Choice) key() string { return cmp.Or(c.Version, c.Spec) }

// mind finds what decides for a farm now.
func (c *Controller) mind(f *farm) (m mind) {
	m.policy, m.active = c.champions.choose(f.name, f.eff.Policy)
	if f.eff.Shadow != "" {
		m.shadow, m.beside = c.champions.choose(f.name, f.eff.Shadow)
	}
	return m
}

// decide makes the receipt of a tick. The farm is locked.
func (f *farm) decide(owner string, now time.Time, o policy.Observation, foreign *Foreign) *Receipt {
	s, m := &f.state, &f.mind
	if s.Policy != m.policy.key() && !m.policy.Loading {
		s.Policy, s.Memory.Policy = m.policy.key(), nil
	}
	if rule := m.fallback(); s.Fallback != rule && !m.policy.Loading {
		s.Fallback, s.Memory.Rule = rule, nil
	}
	if adviser := m.adviser(); s.Adviser != adviser && !m.policy.Loading {
		s.Adviser, s.Memory.Adviser = adviser, nil
	}
	if s.Shadow != m.shadow.key() && !m.shadow.Loading {
		s.Shadow, s.Memory.Shadow = m.shadow.key(), nil
	}
	if m.policy.Origin == originChampion && s.Term != m.policy.Term { // whoever promoted it again wants to see it act
		s.Term, s.Hand, f.trial = m.policy.Term, guard.Hand{}, nil
	}
	s.Seq++
	s.Ticked = now
	r := &Receipt{Farm: f.name, At: now, Seq: s.Seq, Controller: owner, Fence: f.fence, Foreign: foreign, Acted: f.acted, Before: o.Desired,
		Inputs: Inputs{Observation: o, Mode: f.eff.Mode, Policy: f.eff.Policy, Fallback: m.fallback(), Adviser: m.adviser(), Memory: s.Memory,
			Guard: guard.Settings{Budget: f.eff.Budget}, State: s.Guard, Busy: f.call, Blocked: f.blocked, Hand: s.Hand, Trial: f.trial}}
	if choice := m.policy; choice.Learned() {
		r.Learned = &choice
	}
	if choice := m.shadow; choice.Spec != "" {
		r.Beside = &choice
	}
	r.Verdict = r.decide([]policy.Learned{m.active, m.beside}, clocked)
	s.Memory, s.Guard, s.Hand, f.trial = r.After, r.Next, r.HandNext, nil
	r.Replicas = o.Desired
	if r.Mode.Acts() && !r.Outcome.Hold {
		r.Replicas = r.Outcome.Replicas
	}
	f.acted = nil
	return r
}

// demand is what the farm wants of the capacity, given its last decision. What it
// keeps in any case it gets first.
func (f *farm) demand(want int, r *Receipt) Demand {
	if r != nil && r.keeps() {
		return Demand{Farm: f.name, Want: want, Min: want}
	}
	return Demand{Farm: f.name, Want: want, Min: f.eff.Min}
}

// keeps reports whether the capacity can take nothing from the farm: in the dark
// nothing is scaled down, in some modes nothing at all, and what people or other
// controllers hold is theirs.
func (r *Receipt) keeps() bool { return !r.Mode.Acts() || r.Observation.Stale() || r.Wish.Hold }

// allot fits what the farms want into the capacity.
func (c *Controller) allot(batch []*work) {
	demands := make([]Demand, 0, len(batch))
	ticking := map[string]*work{}
	for _, w := range batch {
		if w.wish != nil {
			ticking[w.name] = w
			w.want = w.eff.uncut(w.wish)
			demands = append(demands, w.demand(w.want, w.wish))
		}
	}
	if len(demands) == 0 {
		return
	}
	c.mu.Lock()
	there := 0 // replicas of all farms, until those that are to go have gone
	for name, f := range c.farms {
		f.mu.Lock()
		there += f.worker.Desired
		if ticking[name] == nil {
			demands = append(demands, f.standing())
		}
		f.mu.Unlock()
	}
	c.mu.Unlock()
	capacity, _ := c.cfg.Allocator.(Capacity)
	for i, n := range c.cfg.Allocator.Allot(demands) {
		w := ticking[demands[i].Farm]
		if w == nil {
			continue
		}
		r := w.wish
		cut := n < w.want
		if has := w.worker.Desired; capacity > 0 && n > has {
			first := max(has, min(n, has+int(capacity)-there)) // others have to go first
			there += first - has
			cut, n = cut || first < n, first
		}
		if w.share = 0; cut && !r.keeps() {
			w.share = max(n, 1)
			r.Capacity = &Cut{From: w.want, To: n, Capacity: int(capacity)}
			r.Replicas = min(r.Replicas, n)
		}
	}
}

// uncut is what the farm wants, however full the capacity is: the wish that
// counts, inside the farm's own bounds.
func (e *effective) uncut(r *Receipt) int {
	wish := r.Wish
	if r.Mode == Shadow {
		wish = r.Rule
	}
	switch {
	case r.keeps() || wish.Hold:
		return r.Replicas
	case e.Max > 0:
		return min(max(wish.Replicas, e.Min), e.Max)
	}
	return min(max(wish.Replicas, e.Min), guard.Ceiling)
}

// standing is the demand of a farm that is not decided for now: what it wanted
// before the capacity cut it, or, where another controller decides, what it has.
func (f *farm) standing() Demand {
	has := f.state.wanted(f.worker.Desired)
	if f.fence == 0 || f.last == nil {
		return Demand{Farm: f.name, Want: has, Min: has}
	}
	return f.demand(max(f.want, has), f.last)
}

// save keeps the states, and returns what the log is to keep. A farm whose lease
// was lost does nothing.
func (c *Controller) save(ctx context.Context, batch []*work) (entries []Entry, err error) {
	var saves []Save
	var saved []*work
	for _, w := range batch {
		if !w.dirty {
			continue
		}
		w.mu.Lock()
		w.state.Signals = w.series.State()
		state, serr := json.Marshal(w.state)
		if w.wish != nil && serr == nil {
			w.receipt, serr = json.Marshal(w.wish)
		}
		if serr != nil { // a number that is none: what cannot be told is not done
			w.call = nil
		} else {
			saves, saved = append(saves, Save{Farm: w.name, Fence: w.fence, State: state}), append(saved, w)
		}
		w.mu.Unlock()
		if serr != nil {
			c.cfg.Log.Error("a decision cannot be written down, and is not acted on", "farm", w.name, "error", serr)
		}
	}
	if len(saves) == 0 {
		return nil, nil
	}
	kept, err := c.cfg.Keeper.Save(ctx, saves)
	if err != nil {
		return nil, fmt.Errorf("controller: decisions could not be saved, and are not acted on: %w", err)
	}
	for i, w := range saved {
		w.mu.Lock()
		if !kept[i] {
			w.fence, w.call = 0, nil
		} else {
			w.unsaved = false
			if w.wish != nil {
				w.last = w.wish
				entries = append(entries, Entry{Farm: w.name, At: w.now, Data: w.receipt, Receipt: w.wish, Service: w.served})
				w.served = signal.Hist{}
			}
		}
		w.mu.Unlock()
	}
	return entries, nil
}

// note appends to the log what was decided. The decisions stand, whatever becomes
// of it: it must not take the time to act on them.
func (c *Controller) note(ctx context.Context, entries []Entry) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if err := c.cfg.Receipts.Append(ctx, entries); err != nil {
		c.cfg.Log.Warn("receipts could not be kept", "error", err)
	}
}

// gauge reads the gauges of all, and now and then what the replicas use.
func (c *Controller) gauge(ctx context.Context, batch []*work) {
	var g errgroup.Group
	g.SetLimit(16)
	for _, w := range batch {
		g.Go(func() error {
			v, err := c.cfg.Ledgers.Farm(w.name).Gauges(ctx)
			if err != nil {
				c.cfg.Log.Warn("the ledger could not be read: the farm holds", "farm", w.name, "error", err)
				return nil
			}
			w.gauges = &v
			return nil
		})
		if w.tick && time.Since(w.used) >= usageTime {
			w.used = time.Now()
			c.meter(w.farm)
		}
	}
	_ = g.Wait() // each has logged its own error
}

// meter asks the platform, beside the loop, what a farm's replicas use.
func (c *Controller) meter(f *farm) {
	c.done.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, CallTimeout)
		defer cancel()
		u, ok, err := c.cfg.Platform.Usage(ctx, f.name)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.usage, f.usedOK = u, ok && err == nil // what is not known is unknown
	})
}
