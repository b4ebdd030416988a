package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/ledger"
)

// How much goes into the ledger in one submission, and how many messages a
// receiver should hold at most without acknowledging.
const (
	MaxInflight = ledger.MaxBatch
	batchBytes  = 1 << 20
)

// Pauses while the ledger is full or away.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// source turns the messages of one channel into tasks.
type source struct {
	s        *Stream
	farm     string
	jobs     *journal
	deadline atomic.Int64  // of tasks that name none
	in       chan Message  // never full: held is bounded by the receiver
	opened   chan struct{} // closed when deadline is known
	once     sync.Once

	mu   sync.Mutex
	held map[uint64]bool // messages that came and are not acknowledged; guarded by mu
}

func newSource(s *Stream, name string, jobs *journal) *source {
	return &source{s: s, farm: name, jobs: jobs, in: make(chan Message, 2*MaxInflight), opened: make(chan struct{}), held: map[uint64]bool{}}
}

func (s *source) open() { s.once.Do(func() { close(s.opened) }) }

// run subscribes and moves what comes, in batches of what there is.
func (s *source) run(ctx context.Context) {
	select {
	case <-s.opened:
	case <-ctx.Done():
		return
	}
	cancel := s.s.cfg.Source.Subscribe(TasksPrefix+s.farm, func(m Message) { s.deliver(ctx, m) })
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-s.in:
			s.store(ctx, s.collect(m))
		}
	}
}

// deliver takes a message, unless it is held already: the broker sends again what
// it waits for.
func (s *source) deliver(ctx context.Context, m Message) {
	s.mu.Lock()
	again := s.held[m.Sequence]
	s.held[m.Sequence] = true
	s.mu.Unlock()
	if again {
		return
	}
	select {
	case s.in <- m:
	case <-ctx.Done():
	}
}

// collect takes what else is there.
func (s *source) collect(m Message) []Message {
	list, bytes := []Message{m}, len(m.Data)
	for len(list) < ledger.MaxBatch && bytes < batchBytes {
		select {
		case m := <-s.in:
			list = append(list, m)
			bytes += len(m.Data)
		default:
			return list
		}
	}
	return list
}

// item is a message and the task it means.
type item struct {
	m    Message
	task skeleton.NewTask
}

// store brings messages into the ledger, and those that are no task to the dead
// letters.
func (s *source) store(ctx context.Context, list []Message) {
	items := make([]item, 0, len(list))
	for _, m := range list {
		t, err := s.parse(m)
		if err != nil {
			s.bury(ctx, m, err)
			continue
		}
		items = append(items, item{m, t})
	}
	s.commit(ctx, items)
}

// parse reads a message: an object as those of items in the job API.
func (s *source) parse(m Message) (skeleton.NewTask, error) {
	t, err := jobapi.ParseItem(m.Data, skeleton.NewTask{Class: skeleton.DefaultClass}, s.s.cfg.MaxBody)
	if err != nil {
		return t, err
	}
	if t.Key == "" {
		t.Key = key(m)
	}
	if t.Deadline == 0 && t.Due.IsZero() {
		t.Deadline = time.Duration(s.deadline.Load())
	}
	return t, nil
}

// key names a message among all of the farm, whose channel is the only one: by
// its number, and the time it was stored, since a broker that lost its data
// counts from 1 again.
func key(m Message) string {
	return "stream:" + strconv.FormatUint(m.Sequence, 36) + "@" + strconv.FormatInt(m.Stamp, 36)
}

// commit puts tasks into the ledger and acknowledges their messages. It goes on
// until that is done or ctx ends.
func (s *source) commit(ctx context.Context, items []item) {
	for try := 1; len(items) > 0; try++ {
		tasks := make([]skeleton.NewTask, len(items))
		for i, it := range items {
			tasks[i] = it.task
		}
		r, err := s.jobs.append(ctx, tasks)
		full, large := errors.Is(err, ledger.ErrFull), errors.Is(err, ledger.ErrTooLarge)
		switch {
		case err == nil:
			s.s.count(func(c *Stats) { c.Accepted += r.Tasks; c.Duplicates += r.Duplicates })
			for _, it := range items {
				s.ack(it.m)
			}
			return
		case ctx.Err() != nil:
			return
		case (full || large) && len(items) > 1: // a part may fit
			half := len(items) / 2
			s.commit(ctx, items[:half])
			items, try = items[half:], 0
			continue
		case large:
			s.bury(ctx, items[0].m, err)
			return
		case full:
			s.s.cfg.Log.Debug("the farm's queue is full: its channel waits", "farm", s.farm)
		default:
			s.s.cfg.Log.Warn("tasks of a channel could not be stored: trying on", "farm", s.farm, "tasks", len(items), "error", err)
		}
		if !sleep(ctx, pause(try)) {
			return
		}
	}
}

func pause(n int) time.Duration {
	d := min(firstPause<<min(n-1, 10), lastPause)
	return time.Duration((0.8 + 0.4*rand.Float64()) * float64(d))
}

// ack tells the broker that a message is done. If that is lost it comes again,
// and the ledger knows it.
func (s *source) ack(m Message) {
	if err := m.Ack(); err != nil {
		s.s.cfg.Log.Debug("a message could not be acknowledged: it will come again", "farm", s.farm, "sequence", m.Sequence, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, m.Sequence)
}

// Letter is a message that was no task, as it is published to DeadPrefix+WORKER.
type Letter struct {
	Channel  string    `json:"channel"`
	Sequence uint64    `json:"sequence"`
	Stored   time.Time `json:"stored"`
	Reason   string    `json:"reason"`
	Data     []byte    `json:"data_base64,omitempty"`
	Omitted  int       `json:"omitted_bytes,omitempty"` // the message was too large to be enclosed
}

// bury publishes a dead letter and acknowledges the message, so that it does not
// come for ever. It goes on until that is done or ctx ends.
func (s *source) bury(ctx context.Context, m Message, why error) {
	l := Letter{Channel: TasksPrefix + s.farm, Sequence: m.Sequence, Stored: time.Unix(0, m.Stamp).UTC(), Reason: why.Error(), Data: m.Data}
	for try := 1; ; try++ {
		raw, err := json.Marshal(l)
		if most := s.s.cfg.Letters.MaxMessage(); err == nil && most > 0 && len(raw) > most {
			l.Data, l.Omitted = nil, len(m.Data)
			raw, err = json.Marshal(l)
		}
		if err == nil {
			err = s.s.cfg.Letters.Publish(DeadPrefix+s.farm, [][]byte{raw})
		}
		if err == nil {
			break
		}
		s.s.cfg.Log.Warn("a dead letter could not be published: trying on", "farm", s.farm, "sequence", m.Sequence, "error", err)
		if !sleep(ctx, pause(try)) {
			return
		}
	}
	s.s.cfg.Log.Error("a message is no task: it is a dead letter now", "channel", l.Channel, "sequence", m.Sequence, "letters", DeadPrefix+s.farm, "reason", fmt.Sprint(why))
	s.s.count(func(c *Stats) { c.Dead++ })
	s.ack(m)
}
