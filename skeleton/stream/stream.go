// Package stream connects farms with a message broker: what is published to
// farmhand.tasks.WORKER becomes a task of that worker, and its result is
// published to farmhand.results.WORKER.
//
//	broker ─▶ source ─▶ ledger ─▶ (dispatcher, workers) ─▶ ledger ─▶ sink ─▶ broker
//
// The source acknowledges a message once the ledger has its task. What comes
// again, since an acknowledgement was lost or a dispatcher died in between, the
// ledger knows by its key, so each message is accepted once. While the ledger is
// full or away nothing is acknowledged, and the broker waits.
//
// The sink lets the ledger forget a result once the broker has it, so each is
// published at least once.
//
// The core knows the broker as the interfaces below; natsstream implements them.
package stream

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Channels are named after the worker. Nothing else is ever subscribed to or
// published to.
const (
	TasksPrefix   = "farmhand.tasks."
	ResultsPrefix = "farmhand.results."
	DeadPrefix    = "farmhand.dead." // messages that are no task
)

// Message is one message of a channel.
type Message struct {
	Sequence uint64 // its number in the channel
	Stamp    int64  // when the broker stored it, in ns: a channel that was deleted counts anew, but later
	Data     []byte
	Ack      func() error
}

// Receiver is where tasks come from.
type Receiver interface {
	// Subscribe delivers the messages of a channel that nobody has acknowledged,
	// each to one of the receivers there are, until cancel is called; it goes on
	// by itself when the broker was away. What is not acknowledged in time comes
	// again, to whomever.
	Subscribe(channel string, deliver func(Message)) (cancel func())
}

// Publisher is where results go.
type Publisher interface {
	// Publish returns when the broker has stored all messages. After an error it
	// may have stored some.
	Publish(channel string, list [][]byte) error
	// MaxMessage is the largest message that the broker takes; 0 = not known.
	MaxMessage() int
}

// Elected is a Publisher of which one at a time, of all processes, is ready.
type Elected interface {
	Publisher
	// Ready waits for this process's turn, or the end of ctx.
	Ready(ctx context.Context) error
}

// Config of a Stream.
type Config struct {
	Store   ledger.Store
	Source  Receiver
	Letters Publisher // of messages that are no task
	Sink    Elected
	MaxBody int              // bytes of a task's body (16 MiB)
	Span    time.Duration    // how long tasks are collected in one job (1 h)
	Now     func() time.Time // nil: time.Now
	Tick    time.Duration    // how often the sink looks for the job of another process (1 s)
	Log     *slog.Logger     // nil: silent
}

// Stream is what runs, for all workers there are.
type Stream struct {
	cfg    Config
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	farms map[string]*farm // guarded by mu
	stats Stats            // guarded by mu
}

// Stats count what happened since the start.
type Stats struct {
	Accepted   int // messages that became tasks
	Duplicates int // messages that the ledger knew
	Dead       int // messages that were no task
	Published  int // results
}

// farm is the stream of one worker.
type farm struct {
	source *source
	stop   func()
}

// Start runs the stream until Stop.
func Start(c Config) *Stream {
	if c.MaxBody <= 0 {
		c.MaxBody = 16 << 20
	}
	if c.Span <= 0 {
		c.Span = time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Tick <= 0 {
		c.Tick = time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Stream{cfg: c, cancel: cancel, done: make(chan struct{}), farms: map[string]*farm{}}
	go s.run(ctx)
	return s
}

// Stop ends the stream. What is not acknowledged comes again, elsewhere or later.
func (s *Stream) Stop(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("stream: it does not end in time"), ctx.Err())
	}
}

// Stats returns the counts.
func (s *Stream) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

func (s *Stream) count(add func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.stats)
}

// rosterEvery is how often the roster is read although nothing says that it has
// changed.
const rosterEvery = 10 * time.Second

// run keeps one source and one teller for each worker of the roster.
func (s *Stream) run(ctx context.Context) {
	defer close(s.done)
	defer s.reconcile(ctx, skeleton.Roster{})
	changed := make(chan struct{}, 1)
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		for ctx.Err() == nil {
			if err := s.cfg.Store.WatchRoster(ctx, func() { kick(changed) }); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("the list of farms cannot be watched", "error", err)
				sleep(ctx, rosterEvery)
			}
		}
	})
	tick := time.NewTicker(rosterEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
		roster, err := s.cfg.Store.Roster(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("the list of farms cannot be read", "error", err)
			}
			continue
		}
		if !roster.Published.IsZero() {
			s.reconcile(ctx, roster)
		}
	}
}

// reconcile begins and ends farms as the roster says. One whose function is gone
// takes no more: its messages wait in the broker.
func (s *Stream) reconcile(ctx context.Context, roster skeleton.Roster) {
	wanted := map[string]skeleton.Settings{}
	for _, f := range roster.Farms {
		if f.Missing == 0 {
			wanted[f.Name] = f.Settings
		}
	}
	var ended []*farm
	s.mu.Lock()
	for name, f := range s.farms {
		if _, ok := wanted[name]; !ok || ctx.Err() != nil {
			ended = append(ended, f)
			delete(s.farms, name)
		}
	}
	for name, settings := range wanted {
		if ctx.Err() != nil {
			break
		}
		f := s.farms[name]
		if f == nil {
			f = s.begin(ctx, name)
			s.farms[name] = f
		}
		f.source.deadline.Store(int64(settings.EffectiveDeadline()))
		f.source.open()
	}
	s.mu.Unlock()
	for _, f := range ended {
		f.stop()
	}
}

// begin makes the stream of a worker. It takes nothing before source.open.
func (s *Stream) begin(ctx context.Context, name string) *farm {
	ctx, cancel := context.WithCancel(ctx)
	jobs := newJournal(s.cfg, name)
	src := newSource(s, name, jobs)
	tell := &teller{s: s, jobs: jobs, farm: name, following: map[string]bool{}}
	var work sync.WaitGroup
	work.Go(func() { src.run(ctx) })
	work.Go(func() { jobs.run(ctx) })
	work.Go(func() { tell.run(ctx) })
	return &farm{source: src, stop: func() {
		cancel()
		work.Wait()
	}}
}

// kick signals without waiting.
func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits, and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
