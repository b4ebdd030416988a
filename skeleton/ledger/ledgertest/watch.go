package ledgertest

import (
	"context"
	"sync"
	"time"

	"farmhand/skeleton/ledger"
)

// patience is how long an event may take to arrive.
const patience = 20 * time.Second

var watchTests = []test{
	{name: "a farm's events", fn: func(b *bench) {
		events := b.watch()
		events.expect(ledger.Event{Kind: ledger.Wake})
		events.settle()
		id := b.submit(tasks("x", 2)...)
		events.expect(ledger.Event{Kind: ledger.Wake})
		events.settle()
		l := b.take(2)
		b.settles("waiting", ledger.Outcome{Kind: ledger.Released}, l[0])
		events.expect(ledger.Event{Kind: ledger.Wake})
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		events.expect(ledger.Event{Kind: ledger.Cancel, Job: id})
	}},
	{name: "a window that grew wakes", fn: func(b *bench) {
		b.window(2)
		events := b.watch()
		events.expect(ledger.Event{Kind: ledger.Wake})
		events.settle()
		b.window(5)
		events.expect(ledger.Event{Kind: ledger.Wake})
	}},
	{name: "redriven tasks and collected results wake", fn: func(b *bench) {
		id := b.submit(tasks("x", 2)...)
		l := b.take(2)
		b.settles("dead", ledger.Outcome{Kind: ledger.Rejected}, l[0])
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, l[1])
		events := b.watch()
		events.expect(ledger.Event{Kind: ledger.Wake})
		events.settle()
		b.must(b.l.Acknowledge(b.ctx, id, false, 2))
		events.expect(ledger.Event{Kind: ledger.Wake})
		events.settle()
		_, err := b.l.Redrive(b.ctx, nil, 1)
		b.must(err)
		events.expect(ledger.Event{Kind: ledger.Wake})
	}},
	{name: "a job's progress", fn: func(b *bench) {
		id := b.submit(task("x"))
		calls := newFeed[struct{}](b)
		calls.run(func(ctx context.Context) error { return b.l.WatchJob(ctx, id, func() { calls.add(struct{}{}) }) })
		calls.expect(struct{}{})
		calls.settle()
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.one())
		calls.expect(struct{}{})
	}},
	{name: "the end of an open job", fn: func(b *bench) {
		sub := ledger.Submission{}
		sub.Job.Open = true
		r, err := b.try(sub, task("x"))
		b.must(err)
		b.settles("done", ledger.Outcome{Kind: ledger.Success}, b.one())
		calls := newFeed[struct{}](b)
		calls.run(func(ctx context.Context) error {
			return b.l.WatchJob(ctx, r.Job.ID, func() { calls.add(struct{}{}) })
		})
		calls.expect(struct{}{})
		calls.settle()
		_, err = b.l.Close(b.ctx, r.Job.ID)
		b.must(err)
		calls.expect(struct{}{})
	}},
	{name: "a cancelled job", fn: func(b *bench) {
		id := b.submit(task("x"))
		calls := newFeed[struct{}](b)
		calls.run(func(ctx context.Context) error { return b.l.WatchJob(ctx, id, func() { calls.add(struct{}{}) }) })
		calls.expect(struct{}{})
		calls.settle()
		_, err := b.l.Cancel(b.ctx, id)
		b.must(err)
		calls.expect(struct{}{})
	}},
	{name: "the roster", fn: func(b *bench) {
		calls := newFeed[struct{}](b)
		calls.run(func(ctx context.Context) error {
			return b.store.WatchRoster(ctx, func() { calls.add(struct{}{}) })
		})
		calls.expect(struct{}{})
		calls.settle()
		b.window(3)
		calls.expect(struct{}{})
	}},
	{name: "watching ends with its context", fn: func(b *bench) {
		ctx, cancel := context.WithCancel(b.ctx)
		ended := make(chan error, 3)
		id := b.submit(task("x"))
		started := make(chan struct{}, 100)
		go func() { ended <- b.l.Watch(ctx, func(ledger.Event) { started <- struct{}{} }) }()
		go func() { ended <- b.l.WatchJob(ctx, id, func() { started <- struct{}{} }) }()
		go func() { ended <- b.store.WatchRoster(ctx, func() {}) }()
		<-started
		<-started
		cancel()
		for range 3 {
			select {
			case err := <-ended:
				b.fails(context.Canceled, err)
			case <-time.After(patience):
				b.Fatal("a watch goes on after its context ended")
			}
		}
	}},
}

// feed collects what a watch reports.
type feed[E comparable] struct {
	b      *bench
	events chan E
}

func newFeed[E comparable](b *bench) *feed[E] {
	return &feed[E]{b: b, events: make(chan E, 4096)}
}

func (b *bench) watch() *feed[ledger.Event] {
	f := newFeed[ledger.Event](b)
	f.run(func(ctx context.Context) error { return b.l.Watch(ctx, f.add) })
	return f
}

// run watches until the test ends.
func (f *feed[E]) run(watch func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { _ = watch(ctx) }) // ends with the context
	f.b.Cleanup(func() { cancel(); work.Wait() })
}

func (f *feed[E]) add(e E) {
	select {
	case f.events <- e:
	default: // enough for any test
	}
}

// expect waits for an event, past others.
func (f *feed[E]) expect(want E) {
	f.b.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e := <-f.events:
			if e == want {
				return
			}
		case <-timeout:
			f.b.Fatalf("no event %v", want)
		}
	}
}

// settle forgets what has arrived so far. An event may be reported twice, so
// what follows proves only that events do arrive.
func (f *feed[E]) settle() {
	for {
		select {
		case <-f.events:
		default:
			return
		}
	}
}
