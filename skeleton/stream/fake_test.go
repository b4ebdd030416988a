package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/memledger"
	"farmhand/skeleton/stream"
)

// patience bounds every wait of a test.
const patience = 20 * time.Second

// broker is a broker in memory. Like the real one it sends again what is not
// acknowledged, but only when it is told to.
type broker struct {
	mu       sync.Mutex
	channels map[string]*channel
	down     bool // publishing fails
	lost     bool // acknowledgements get lost
	most     int
	changed  chan struct{} // closed with every change
}

type channel struct {
	list  [][]byte
	acked map[int]bool
	sent  int // to somebody
	subs  []*func(stream.Message)
}

func newBroker() *broker {
	return &broker{channels: map[string]*channel{}, changed: make(chan struct{})}
}

func (b *broker) channel(name string) *channel {
	c := b.channels[name]
	if c == nil {
		c = &channel{acked: map[int]bool{}}
		b.channels[name] = c
	}
	return c
}

func (b *broker) touch() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Subscribe implements stream.Receiver.
func (b *broker) Subscribe(name string, deliver func(stream.Message)) func() {
	b.mu.Lock()
	c := b.channel(name)
	sub := &deliver
	c.subs = append(c.subs, sub)
	b.touch()
	b.mu.Unlock()
	b.send(name)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, s := range c.subs {
			if s == sub {
				c.subs = append(c.subs[:i:i], c.subs[i+1:]...)
			}
		}
		b.touch()
	}
}

// send delivers what was not delivered yet, to one receiver after the other.
func (b *broker) send(name string) {
	for {
		b.mu.Lock()
		c := b.channel(name)
		if c.sent >= len(c.list) || len(c.subs) == 0 {
			b.mu.Unlock()
			return
		}
		i := c.sent
		c.sent++
		deliver := *c.subs[i%len(c.subs)]
		m := stream.Message{Sequence: uint64(i + 1), Stamp: int64(1000 + i), Data: c.list[i], Ack: func() error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.lost {
				return errors.New("lost")
			}
			c.acked[i] = true
			b.touch()
			return nil
		}}
		b.mu.Unlock()
		deliver(m)
	}
}

// again sends once more what is not acknowledged, or everything.
func (b *broker) again(name string, all bool) {
	b.mu.Lock()
	c := b.channel(name)
	unsent := c.sent
	b.mu.Unlock()
	for i := range unsent {
		b.mu.Lock()
		if all || !c.acked[i] {
			c.sent = i
			data := c.list
			c.list = c.list[:i+1]
			b.mu.Unlock()
			b.send(name)
			b.mu.Lock()
			c.list, c.sent = data, unsent
		}
		b.mu.Unlock()
	}
}

// Publish implements stream.Publisher.
func (b *broker) Publish(name string, list [][]byte) error {
	b.mu.Lock()
	if b.down {
		b.mu.Unlock()
		return errors.New("the broker is away")
	}
	c := b.channel(name)
	c.list = append(c.list, list...)
	b.touch()
	b.mu.Unlock()
	b.send(name)
	return nil
}

// MaxMessage implements stream.Publisher.
func (b *broker) MaxMessage() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

// Ready implements stream.Elected.
func (b *broker) Ready(ctx context.Context) error { return ctx.Err() }

// set changes the broker.
func (b *broker) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	b.touch()
}

// until waits for a state of the broker.
func (b *broker) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		b.mu.Lock()
		met, changed := ok(), b.changed
		b.mu.Unlock()
		if met {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("in vain waited until %s", what)
		}
	}
}

func (b *broker) acked(name string, n int) func() bool {
	return func() bool { return len(b.channel(name).acked) == n }
}

func (b *broker) holds(name string, n int) func() bool {
	return func() bool { return len(b.channel(name).list) >= n }
}

// bench is a farm "echo" with its stream on a broker in memory.
type bench struct {
	t      *testing.T
	broker *broker
	store  ledger.Store
	farm   ledger.Ledger
	cfg    stream.Config
}

const (
	tasks   = "farmhand.tasks.echo"
	results = "farmhand.results.echo"
	dead    = "farmhand.dead.echo"
)

func setup(t *testing.T, limits ledger.Limits) *bench {
	t.Helper()
	b := &bench{t: t, broker: newBroker(), store: memledger.New(memledger.Options{Limits: limits})}
	b.farm = b.store.Farm("echo")
	b.roster(0)
	b.cfg = stream.Config{Store: b.store, Source: b.broker, Letters: b.broker, Sink: b.broker, Tick: 10 * time.Millisecond}
	return b
}

// roster publishes the farm, which may be missing.
func (b *bench) roster(missing time.Duration) {
	b.t.Helper()
	settings := skeleton.DefaultSettings()
	settings.Slots, settings.Deadline = 1000, time.Minute
	r := skeleton.Roster{Farms: []skeleton.Farm{{Name: "echo", Settings: settings, Ready: 1, Target: 1, Missing: missing}}}
	if err := ledger.Publish(b.t.Context(), b.store, r); err != nil {
		b.t.Fatal(err)
	}
}

// start runs a stream until the test ends.
func (b *bench) start() *stream.Stream {
	s := stream.Start(b.cfg)
	b.t.Cleanup(func() { b.stop(s) })
	return s
}

func (b *bench) stop(s *stream.Stream) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		b.t.Error(err)
	}
}

// post publishes n tasks, numbered from first on.
func (b *bench) post(first, n int) {
	b.t.Helper()
	for i := range n {
		if err := b.broker.Publish(tasks, [][]byte{fmt.Appendf(nil, `{"body": %d}`, first+i)}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// work does up to n of the tasks there are, and returns their bodies.
func (b *bench) work(n int) (bodies []string) {
	b.t.Helper()
	ctx := b.t.Context()
	taken, err := b.farm.Take(ctx, "test", n)
	if err != nil {
		b.t.Fatal(err)
	}
	var outcomes []ledger.Outcome
	for _, l := range taken.Leases {
		body := l.Body
		if l.Locator != "" {
			if body, err = b.farm.Body(ctx, l); err != nil {
				b.t.Fatal(err)
			}
		}
		bodies = append(bodies, string(body))
		outcomes = append(outcomes, ledger.Outcome{Lease: l, Kind: ledger.Success, Status: 200, Type: "application/json", Body: body})
	}
	if _, err := b.farm.Settle(ctx, outcomes, 0); err != nil {
		b.t.Fatal(err)
	}
	return bodies
}

// published reads the results that the broker has.
func (b *bench) published() (list []stream.Published) {
	b.t.Helper()
	b.broker.mu.Lock()
	defer b.broker.mu.Unlock()
	for _, raw := range b.broker.channel(results).list {
		var p stream.Published
		if err := json.Unmarshal(raw, &p); err != nil {
			b.t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func (b *bench) jobs() []skeleton.Job {
	b.t.Helper()
	list, err := b.farm.Jobs(b.t.Context(), "", 100)
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// until polls what tells nobody that it changes.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("in vain waited until %s", what)
		}
	}
}
