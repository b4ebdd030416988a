package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// store is a ledger in memory for one farm, by the clock of the test: just
// enough of the contract to watch the engine, with faults to inject. That the
// engine and a real ledger fit together is shown in ledger_test.go.
type store struct {
	ledger.Ledger // what the engine must not call

	mu       sync.Mutex
	roster   skeleton.Roster
	watchers map[int]func()
	events   map[int]func(ledger.Event)
	next     int

	tasks   []*record
	waiting []int // indexes of tasks
	fence   int64
	window  int
	delayed int
	refused int
	lapsed  int
	busy    int
	settles int // calls of Settle and Exchange
	renewed int
	beats   int
	due     []ledger.CallbackDue
	done    []time.Duration // what CallbackDone was told

	down      bool                                 // everything fails
	deaf      bool                                 // Settle and Exchange work, their answers are lost
	noRenew   bool                                 // Renew fails
	failWatch int                                  // so many Watch calls fail
	spoilt    string                               // Settle refuses batches that hold a result with this body
	body      func(l ledger.Lease) ([]byte, error) // of tasks that have a locator
}

type record struct {
	task    skeleton.Task
	locator string
	state   skeleton.State
	fence   int64
	lease   time.Time // end of the lease
	delay   time.Time // end of the delay
	failed  int
	kinds   []ledger.Kind
	reason  string
	status  int
	body    string
	sojourn time.Duration
}

var errDown = fmt.Errorf("%w: injected", ledger.ErrUnavailable)

const farmName = "echo"

func newStore(window int, n int, edit ...func(t *skeleton.Task)) *store {
	s := &store{window: window, watchers: map[int]func(){}, events: map[int]func(ledger.Event){}}
	settings := skeleton.DefaultSettings()
	s.roster = skeleton.Roster{Published: time.Now(), Farms: []skeleton.Farm{{Name: farmName, Settings: settings, Ready: 1, Target: 1}}}
	s.submit(n, edit...)
	return s
}

func (s *store) submit(n int, edit ...func(t *skeleton.Task)) {
	s.mu.Lock()
	for range n {
		t := skeleton.Task{Farm: farmName, Job: farmName + "~1", Index: len(s.tasks), Accepted: time.Now()}
		t.Attempts = skeleton.DefaultAttempts
		t.Body = fmt.Appendf(nil, "%d", t.Index)
		for _, e := range edit {
			e(&t)
		}
		s.waiting = append(s.waiting, len(s.tasks))
		s.tasks = append(s.tasks, &record{task: t, state: skeleton.Waiting})
	}
	s.mu.Unlock()
	s.tell(ledger.Event{Kind: ledger.Wake})
}

func (s *store) tell(e ledger.Event) {
	s.mu.Lock()
	var fns []func(ledger.Event)
	for _, fn := range s.events {
		fns = append(fns, fn)
	}
	s.mu.Unlock()
	for _, fn := range fns {
		fn(e)
	}
}

// set changes the farm as the controller would.
func (s *store) set(edit func(f *skeleton.Farm), window int) {
	s.mu.Lock()
	f := s.roster.Farms[0]
	edit(&f)
	s.roster.Farms = []skeleton.Farm{f}
	s.window = window
	var fns []func()
	for _, fn := range s.watchers {
		fns = append(fns, fn)
	}
	s.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
	s.tell(ledger.Event{Kind: ledger.Wake})
}

func (s *store) fault(set func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set()
}

func (s *store) read(get func()) { s.fault(get) }

func (s *store) count(want skeleton.State) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.tasks {
		if r.state == want {
			n++
		}
	}
	return n
}

func (s *store) cancel() {
	s.mu.Lock()
	for _, r := range s.tasks {
		if r.state != skeleton.Done && r.state != skeleton.Dead {
			r.state = skeleton.Cancelled
		}
	}
	s.waiting = nil
	s.mu.Unlock()
	s.tell(ledger.Event{Kind: ledger.Cancel, Job: farmName + "~1"})
}

// Store.

func (s *store) Farm(string) ledger.Ledger { return s }

func (s *store) Roster(context.Context) (skeleton.Roster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return skeleton.Roster{}, errDown
	}
	return s.roster, nil
}

func (s *store) PublishWindows(context.Context, []skeleton.Farm) error { return nil }
func (s *store) PublishRoster(context.Context, skeleton.Roster) error  { return nil }

func (s *store) Durability(context.Context) (string, error) { return "memory", nil }

func (s *store) WatchRoster(ctx context.Context, fn func()) error {
	s.mu.Lock()
	id := s.next
	s.next++
	s.watchers[id] = fn
	s.mu.Unlock()
	fn()
	<-ctx.Done()
	s.mu.Lock()
	delete(s.watchers, id)
	s.mu.Unlock()
	return ctx.Err()
}

// Dispatch.

func (s *store) Watch(ctx context.Context, fn func(ledger.Event)) error {
	s.mu.Lock()
	if s.failWatch > 0 {
		s.failWatch--
		s.mu.Unlock()
		return errDown
	}
	id := s.next
	s.next++
	s.events[id] = fn
	s.mu.Unlock()
	fn(ledger.Event{Kind: ledger.Wake})
	<-ctx.Done()
	s.mu.Lock()
	delete(s.events, id)
	s.mu.Unlock()
	return ctx.Err()
}

func (s *store) live() (n int) {
	for _, r := range s.tasks {
		if !r.lease.IsZero() {
			n++
		}
	}
	return n
}

// endings ends leases and delays that are over, under mu.
func (s *store) endings() {
	if s.delayed == 0 && s.noRenew == false && !s.down && s.lapsed == 0 && len(s.tasks) > 5000 {
		return // benchmarks
	}
	now := time.Now()
	for i, r := range s.tasks {
		if !r.lease.IsZero() && now.After(r.lease) {
			s.lapsed++
			r.lease, r.fence = time.Time{}, -1
			if r.state == skeleton.Leased {
				s.lose(i, 0)
			}
		}
		if r.state == skeleton.Delayed && !now.Before(r.delay) {
			s.delayed--
			s.queue(i)
		}
	}
}

func (s *store) queue(i int) {
	s.tasks[i].state = skeleton.Waiting
	at, _ := slices.BinarySearch(s.waiting, i)
	s.waiting = slices.Insert(s.waiting, at, i)
}

func (s *store) postpone(i int, d time.Duration) {
	if d <= 0 {
		s.queue(i)
		return
	}
	s.delayed++
	s.tasks[i].state, s.tasks[i].delay = skeleton.Delayed, time.Now().Add(d)
}

func (s *store) die(r *record, reason string) { r.state, r.reason = skeleton.Dead, reason }

func (s *store) lose(i int, delay time.Duration) {
	r := s.tasks[i]
	r.task.Lost++
	switch {
	case r.task.NoRetry:
		s.die(r, "unknown outcome")
	case r.task.Lost > skeleton.LostBudget:
		s.die(r, "worker lost")
	default:
		s.postpone(i, delay)
	}
}

func (s *store) Take(_ context.Context, _ string, n int) (ledger.Taken, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(n, s.window)
}

func (s *store) TakeAny(_ context.Context, _ string, n int) (ledger.Taken, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(n, 1<<30)
}

func (s *store) take(n, window int) (ledger.Taken, error) {
	if s.down {
		return ledger.Taken{}, errDown
	}
	s.endings()
	live := s.live()
	n = max(0, min(n, window-live, len(s.waiting)))
	t := ledger.Taken{Window: window, Live: live + n, Waiting: len(s.waiting) - n}
	now := time.Now()
	for _, i := range s.waiting[:n] {
		r := s.tasks[i]
		s.fence++
		r.state, r.fence, r.lease = skeleton.Leased, s.fence, now.Add(ledger.LeaseTime)
		l := ledger.Lease{Task: r.task, Ref: fmt.Sprint(i), Locator: r.locator, Fence: r.fence, Taken: now}
		l.Attempt = 1 + r.failed
		if l.Locator != "" {
			l.Body = nil
		}
		t.Leases = append(t.Leases, l)
	}
	s.waiting = s.waiting[n:]
	for _, r := range s.tasks {
		for _, at := range []time.Time{r.lease, r.delay} {
			if !at.IsZero() && (r.state == skeleton.Leased || r.state == skeleton.Delayed) {
				if d := max(1, at.Sub(now)); t.Next == 0 || d < t.Next {
					t.Next = d
				}
			}
		}
		if len(s.tasks) > 5000 {
			break // benchmarks
		}
	}
	return t, nil
}

func (s *store) Body(_ context.Context, l ledger.Lease) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body(l)
}

func (s *store) find(l ledger.Lease) *record { return s.tasks[l.Index] }

func (s *store) Renew(_ context.Context, leases []ledger.Lease) ([]ledger.Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down || s.noRenew {
		return nil, errDown
	}
	s.endings()
	out := make([]ledger.Standing, len(leases))
	for i, l := range leases {
		r := s.find(l)
		switch {
		case r.fence != l.Fence || r.lease.IsZero():
			out[i] = ledger.WasLost
			continue
		case r.state == skeleton.Cancelled:
			out[i] = ledger.WasCancel
		case l.Timeout > 0 && time.Since(l.Taken) > l.Timeout:
			out[i] = ledger.HasTimeout
		default:
			out[i] = ledger.Held
		}
		s.renewed++
		r.lease = time.Now().Add(ledger.LeaseTime)
	}
	return out, nil
}

func (s *store) Settle(_ context.Context, outcomes []ledger.Outcome, busy int) (ledger.Settled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settle(outcomes, busy)
}

func (s *store) Exchange(_ context.Context, _ string, outcomes []ledger.Outcome, busy, n int) (ledger.Settled, ledger.Taken, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done, err := s.settle(outcomes, busy)
	if err != nil {
		return done, ledger.Taken{}, err
	}
	t, err := s.take(n, s.window)
	return done, t, err
}

func (s *store) settle(outcomes []ledger.Outcome, busy int) (ledger.Settled, error) {
	if s.down {
		return ledger.Settled{}, errDown
	}
	for _, o := range outcomes {
		if s.spoilt != "" && string(o.Body) == s.spoilt {
			return ledger.Settled{}, errors.New("injected: this outcome cannot be stored")
		}
	}
	s.busy += busy
	s.settles++
	out := ledger.Settled{Verdicts: make([]ledger.Verdict, len(outcomes))}
	for i, o := range outcomes {
		out.Verdicts[i] = s.settleOne(o)
	}
	if s.deaf {
		return ledger.Settled{}, errDown
	}
	out.Window, out.Live, out.Waiting = s.window, s.live(), len(s.waiting)
	return out, nil
}

func (s *store) settleOne(o ledger.Outcome) ledger.Verdict {
	i := o.Lease.Index
	r := s.tasks[i]
	if r.fence != o.Lease.Fence || r.lease.IsZero() {
		s.refused++
		return ledger.Refused
	}
	r.lease = time.Time{}
	r.kinds = append(r.kinds, o.Kind)
	r.status, r.body = o.Status, string(o.Body)
	if r.state == skeleton.Cancelled {
		return ledger.Verdict(r.state)
	}
	switch o.Kind {
	case ledger.Success:
		r.state, r.sojourn = skeleton.Done, time.Since(r.task.Accepted)
	case ledger.Released:
		s.queue(i)
	case ledger.Rejected:
		s.die(r, o.Reason)
	case ledger.Lost:
		s.lose(i, o.Delay)
	default:
		r.failed++
		switch {
		case o.Kind == ledger.TimedOut && r.task.NoRetry:
			s.die(r, "unknown outcome")
		case r.failed >= r.task.Attempts:
			s.die(r, o.Reason)
		default:
			s.postpone(i, o.Delay)
		}
	}
	return ledger.Verdict(r.state)
}

func (s *store) Beat(context.Context, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats++
	return nil
}

// Keeper.

func (s *store) Sweep(context.Context) (bool, error) {
	s.mu.Lock()
	before := len(s.waiting)
	s.endings()
	more := len(s.waiting) > before
	s.mu.Unlock()
	if more {
		s.tell(ledger.Event{Kind: ledger.Wake})
	}
	return false, nil
}

func (s *store) Callbacks(_ context.Context, limit int) ([]ledger.CallbackDue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown
	}
	n := min(limit, len(s.due))
	due := s.due[:n]
	s.due = s.due[n:]
	return due, nil
}

func (s *store) CallbackDone(_ context.Context, _ string, again time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, again)
	return nil
}
