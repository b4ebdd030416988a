package memledger

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/order"
)

// farm is the ledger of one farm.
type farm struct {
	store *Store
	name  string
	hub   hub // key "": events of the farm; else of the job of that id

	mu   sync.Mutex // guards all that follows
	time int64      // the latest instant seen
	win  window

	queue  *order.Queue[*run]
	leases leases
	delays timeline[*task]
	live   int // live leases, ghosts included
	fence  int64
	seq    int64
	runs   map[int64]*run // by seq

	jobs     map[string]*job
	ids      []string // of jobs, sorted
	keys     map[string]*job
	receipts map[string]receipt
	stages   map[*stage]struct{}
	expiry   timeline[*job]
	owed     timeline[*job] // callbacks
	dead     graveyard
	beats    map[string]int64

	n                            ledger.Counts
	late, timed, refused, lapsed int
	queueBytes, keptBytes        int
	stagedBytes                  int

	touched []*job   // whose books must be looked at before the lock is released
	notices []notice // to be told after that
}

var _ ledger.Ledger = (*farm)(nil)

// notice is an event to be told.
type notice struct {
	key string
	e   ledger.Event
}

func newFarm(s *Store, name string) *farm {
	return &farm{store: s, name: name, win: window{f: 1},
		queue: order.New[*run](order.Rule{AgeFactor: ledger.AgeFactor, NoDeadline: ledger.NoDeadline.Microseconds()}),
		runs:  map[int64]*run{}, jobs: map[string]*job{}, keys: map[string]*job{}, receipts: map[string]receipt{},
		stages: map[*stage]struct{}{}, beats: map[string]int64{}}
}

// do runs fn under the lock, closes the books of the jobs it touched, and tells
// the watchers afterwards.
func (f *farm) do(ctx context.Context, fn func(now int64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	f.time = max(f.time, f.store.clock().UnixMicro())
	err := fn(f.time)
	f.settleBooks(f.time)
	notices := f.notices
	f.notices = nil
	f.mu.Unlock()
	for _, n := range notices {
		f.hub.call(n.key, n.e)
	}
	return err
}

// job finds a job; ids of other farms name none.
func (f *farm) job(id string) (*job, error) {
	if j := f.jobs[id]; j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
}

// owns reports whether an id is one of this farm's: FARM~ULID.
func (f *farm) owns(id string) error {
	unit, ok := strings.CutPrefix(id, f.name+"~")
	if !ok || unit == "" {
		return fmt.Errorf("%w: %q is no job of farm %s", ledger.ErrNotFound, id, f.name)
	}
	return nil
}

func (f *farm) tell(key string, e ledger.Event) {
	if f.hub.watched() {
		f.notices = append(f.notices, notice{key, e})
	}
}

func (f *farm) wakeUp() { f.tell("", ledger.Event{Kind: ledger.Wake}) }

func (f *farm) touch(j *job) {
	if !j.touched {
		j.touched = true
		f.touched = append(f.touched, j)
	}
}

// settleBooks ends the jobs whose last task became final.
func (f *farm) settleBooks(now int64) {
	for _, j := range f.touched {
		j.touched = false
		f.tell(j.ID, ledger.Event{})
		if j.Open || j.Pending() > 0 || !j.Ended.IsZero() {
			continue
		}
		keep := f.store.limits.Retention
		if j.Dead > 0 {
			keep = f.store.limits.DeadRetains
		}
		j.expires = now + keep.Microseconds()
		j.Ended, j.Expires = instant(now), instant(j.expires)
		f.expiry.push(moment[*job]{at: j.expires, v: j})
		if j.Callback != "" {
			f.owe(j, now)
			f.wakeUp()
		}
		f.compact(j)
	}
	clear(f.touched)
	f.touched = f.touched[:0]
}

// window is how many tasks may run at once.
type window struct {
	published            bool
	ready, target, slots int
	f                    float64
	cut                  int64 // when f fell last; 0 = never
	since                int64 // when the counting of busy answers began
	busy, from           int   // busy answers since then, and what had ended then
}

func (w *window) factor(now int64) float64 {
	if w.cut == 0 {
		return w.f
	}
	return min(1, w.f+ledger.BusyRecover*float64(now-w.cut)/float64(time.Second/time.Microsecond))
}

// hair keeps a factor that rounding left just short of a whole slot from
// losing that slot.
const hair = 1e-12

func (w *window) size(now int64) int {
	if !w.published {
		return 1
	}
	return skeleton.Window(w.ready, w.target, w.slots, w.factor(now)+hair)
}

// refuse takes note of busy answers, when so many tasks have ended in all.
func (w *window) refuse(now int64, busy, ended int) {
	if age := now - w.since; age >= ledger.BusyPeriod.Microseconds() || age < 0 {
		w.since, w.busy, w.from = now, 0, ended
	}
	w.busy += busy
	if ledger.TooBusy(w.busy, min(w.ready, w.target), ended-w.from) && (w.cut == 0 || now-w.cut >= ledger.BusyEvery.Microseconds()) {
		w.f, w.cut = max(ledger.MinFactor, w.factor(now)*ledger.BusyFactor), now
	}
}

func (f *farm) publish(ctx context.Context, s skeleton.Farm) error {
	return f.do(ctx, func(now int64) error {
		old := f.win.size(now)
		f.win.published, f.win.ready, f.win.target, f.win.slots = true, s.Ready, s.Target, max(1, s.Settings.Slots)
		if f.win.size(now) > old {
			f.wakeUp()
		}
		return nil
	})
}
