package controller_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

// signals keep what the dispatcher brings.
type signals struct {
	now func() time.Time

	mu     sync.Mutex
	by     map[string][]signal.Second
	err    error
	frozen bool                                // nothing new is kept
	mangle func(farm string, s *signal.Second) // what is read
	cold   int                                 // farms read from the beginning in one call, at most
}

func (s *signals) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// beat notes a second of a farm.
func (s *signals) beat(farm string, l ledger.Ledger, t *signal.Tally) {
	g, err := l.Gauges(background)
	if err != nil {
		panic(err)
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	sec := signal.Second{Unix: now.Unix(), Snapshot: signal.Snapshot{At: now, Counts: g.Counts, Timed: g.Timed, Late: g.Late, Lapsed: g.Lapsed}, Tally: *t}
	if !s.frozen {
		s.put(farm, sec)
	}
}

// put keeps a second, in the place of the newest if it is that one. s is locked.
func (s *signals) put(farm string, sec signal.Second) {
	if n := len(s.by[farm]); n > 0 && s.by[farm][n-1].Unix == sec.Unix {
		s.by[farm] = s.by[farm][:n-1]
	}
	s.by[farm] = append(s.by[farm], sec)
}

func (s *signals) Read(_ context.Context, since map[string]int64) (map[string]signal.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]signal.Reading{}
	cold := 0
	for _, after := range since {
		if after == 0 {
			cold++
		}
	}
	s.cold = max(s.cold, cold)
	for farm, after := range since {
		if s.err != nil {
			continue
		}
		r := signal.Reading{Now: s.now()}
		first, _ := slices.BinarySearchFunc(s.by[farm], after+1, func(sec signal.Second, unix int64) int { return cmp.Compare(sec.Unix, unix) })
		for _, sec := range s.by[farm][first:] {
			if r.Now.Sub(sec.At) <= signal.Kept {
				if s.mangle != nil {
					s.mangle(farm, &sec)
				}
				r.Seconds = append(r.Seconds, sec)
			}
		}
		out[farm] = r
	}
	return out, s.err
}

// window is what was published of a farm.
type window struct {
	at time.Time
	skeleton.Farm
}

// ledgers are a ledger.Store that can be away, and note the windows.
type ledgers struct {
	ledger.Store

	mu                   sync.Mutex
	err                  error // of everything
	gaugeErr, publishErr error
	watchErr             error
	blocked              string // what gauges say
	windows              []window
	rosters              int // how many were published
}

func (l *ledgers) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *ledgers) away() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *ledgers) Farm(name string) ledger.Ledger { return gauged{l.Store.Farm(name), l} }

func (l *ledgers) Roster(ctx context.Context) (skeleton.Roster, error) {
	r, err := l.Store.Roster(ctx)
	return r, cmp.Or(l.away(), err)
}

// lists is how many rosters were published.
func (l *ledgers) lists() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rosters
}

func (l *ledgers) PublishRoster(ctx context.Context, r skeleton.Roster) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.rosters++
	return l.Store.PublishRoster(ctx, r)
}

func (l *ledgers) PublishWindows(ctx context.Context, farms []skeleton.Farm) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := cmp.Or(l.err, l.publishErr); err != nil {
		return err
	}
	if err := l.Store.PublishWindows(ctx, farms); err != nil {
		return err
	}
	for _, f := range farms {
		l.windows = append(l.windows, window{time.Now(), f})
	}
	return nil
}

// gauged is a ledger whose gauges can be away.
type gauged struct {
	ledger.Ledger
	of *ledgers
}

func (g gauged) Gauges(ctx context.Context) (ledger.Gauges, error) {
	g.of.mu.Lock()
	away, blocked := cmp.Or(g.of.err, g.of.gaugeErr), g.of.blocked
	g.of.mu.Unlock()
	v, err := g.Ledger.Gauges(ctx)
	v.Blocked = cmp.Or(blocked, v.Blocked)
	return v, cmp.Or(away, err)
}

func (g gauged) Watch(ctx context.Context, fn func(ledger.Event)) error {
	g.of.mu.Lock()
	err := g.of.watchErr
	g.of.mu.Unlock()
	if err != nil {
		return err
	}
	return g.Ledger.Watch(ctx, fn)
}
