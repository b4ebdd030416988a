package natsstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	stand "github.com/nats-io/nats-streaming-server/server"
	"github.com/nats-io/nats-streaming-server/stores"
	"github.com/nats-io/stan.go"
	"go.uber.org/goleak"

	"farmhand/internal/stantest"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/memledger"
	"farmhand/skeleton/stream"
	"farmhand/skeleton/stream/natsstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 30 * time.Second
	tasks    = "farmhand.tasks.echo"
	results  = "farmhand.results.echo"
)

// until polls what tells nobody that it changes: the broker and the ledger.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("in vain waited until %s", what)
		}
	}
}

func unlimited(o *stand.Options) { o.ChannelLimits = stores.ChannelLimits{} }

// bench is a farm whose worker does at once what it gets, and a broker.
type bench struct {
	t     *testing.T
	nats  *stantest.Server
	store ledger.Store
	farm  ledger.Ledger

	mu   sync.Mutex
	done map[string]int // how often each body was a task; guarded by mu
}

func setup(t *testing.T, limits ledger.Limits, change ...func(*stand.Options)) *bench {
	t.Helper()
	b := &bench{t: t, nats: stantest.Start(t, change...), store: memledger.New(memledger.Options{Limits: limits}), done: map[string]int{}}
	b.farm = b.store.Farm("echo")
	settings := skeleton.DefaultSettings()
	settings.Slots = 1000
	if err := ledger.Publish(t.Context(), b.store, skeleton.Roster{Farms: []skeleton.Farm{{Name: "echo", Settings: settings, Ready: 1, Target: 1}}}); err != nil {
		t.Fatal(err)
	}
	return b
}

// replica is a dispatcher's part in it.
type replica struct {
	*stream.Stream
	broker *natsstream.Broker
	sink   *natsstream.Sink
	once   sync.Once
	t      *testing.T
}

func (b *bench) start(client string, change ...func(*natsstream.Config)) *replica {
	b.t.Helper()
	c := natsstream.Config{URL: strings.Replace(b.nats.URL, "s3cret@", "", 1), Token: "s3cret", Cluster: stantest.Cluster, Client: client,
		Monitor: b.nats.Monitor, AckWait: time.Second, PingSeconds: 1}
	for _, f := range change {
		f(&c)
	}
	broker, err := natsstream.Open(c)
	if err != nil {
		b.t.Fatal(err)
	}
	sink, err := natsstream.OpenSink(c)
	if err != nil {
		b.t.Fatal(err)
	}
	r := &replica{broker: broker, sink: sink, t: b.t,
		Stream: stream.Start(stream.Config{Store: b.store, Source: broker, Letters: broker, Sink: sink, Tick: 10 * time.Millisecond})}
	b.t.Cleanup(r.end)
	return r
}

func (r *replica) end() {
	r.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Stop(ctx); err != nil {
			r.t.Error(err)
		}
		r.sink.Close()
		r.broker.Close()
	})
}

// work does what there is and reports how many different bodies were done.
func (b *bench) work() int {
	ctx := b.t.Context()
	taken, err := b.farm.Take(ctx, "test", 500)
	if err != nil {
		b.t.Fatal(err)
	}
	var outcomes []ledger.Outcome
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range taken.Leases {
		b.done[string(l.Body)]++
		outcomes = append(outcomes, ledger.Outcome{Lease: l, Kind: ledger.Success, Status: 200, Type: "application/json", Body: l.Body})
	}
	if _, err := b.farm.Settle(ctx, outcomes, 0); err != nil {
		b.t.Fatal(err)
	}
	return len(b.done)
}

// doneOnce waits until n bodies were done, each once.
func (b *bench) doneOnce(n int) {
	b.t.Helper()
	until(b.t, fmt.Sprintf("%d are done", n), func() bool { return b.work() >= n })
	for body, times := range b.done {
		if times != 1 {
			b.t.Errorf("%s was a task %d times", body, times)
		}
	}
}

// post publishes n tasks with a client of the test's own.
func (b *bench) post(c stan.Conn, first, n int) {
	b.t.Helper()
	for i := range n {
		if err := c.Publish(tasks, fmt.Appendf(nil, `{"body": %d}`, first+i)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// results listens to what is published.
func (b *bench) results(c stan.Conn) func() []stream.Published {
	b.t.Helper()
	var mu sync.Mutex
	var list []stream.Published
	_, err := c.Subscribe(results, func(m *stan.Msg) {
		var p stream.Published
		if err := json.Unmarshal(m.Data, &p); err != nil {
			b.t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, p)
	}, stan.DeliverAllAvailable())
	if err != nil {
		b.t.Fatal(err)
	}
	return func() []stream.Published {
		mu.Lock()
		defer mu.Unlock()
		return append([]stream.Published(nil), list...)
	}
}

// channels names the channels the broker has.
func (b *bench) channels() string {
	b.t.Helper()
	resp, err := http.Get(b.nats.Monitor + "/streaming/channelsz")
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var c stand.Channelsz
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(c.Names, " ")
}

// Two dispatchers: each task is accepted once, each result published by the one
// that is elected, and when that goes the other goes on.
func TestTwoReplicas(t *testing.T) {
	b := setup(t, ledger.Limits{}, unlimited)
	one := b.start("one")
	until(t, "the first is elected", one.sink.Up)
	two := b.start("two")
	c := b.nats.Connect("by-hand")
	got := b.results(c)
	b.post(c, 0, 100)
	b.doneOnce(100)
	until(t, "all results are published", func() bool { return len(got()) >= 100 })
	if two.Stats().Published != 0 || len(got()) != 100 {
		t.Errorf("%d results; %+v, %+v", len(got()), one.Stats(), two.Stats())
	}
	one.end()
	b.post(c, 100, 50)
	b.doneOnce(150)
	seen := map[string]bool{}
	until(t, "the results of the rest are published", func() bool {
		for _, p := range got() {
			seen[string(p.Body)] = true
		}
		return len(seen) == 150
	})
	until(t, "the broker has acknowledged them to the second", func() bool { return two.Stats().Published >= 50 })
	if names := b.channels(); names != results+" "+tasks {
		t.Errorf("channels: %s", names)
	}
}

// The broker restarts, with its data and without: what was acknowledged by it is
// accepted once, and the stream goes on by itself.
func TestBrokerRestart(t *testing.T) {
	for name, change := range map[string]func(*stand.Options){"kept": func(*stand.Options) {}, "lost": func(o *stand.Options) { o.StoreType = stores.TypeMemory }} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, ledger.Limits{}, unlimited, change)
			b.start("one")
			c := b.nats.Connect("by-hand")
			b.post(c, 0, 10)
			b.doneOnce(10)
			_ = c.Close()
			b.nats.Stop()
			b.nats.Again()
			c = b.nats.Connect("by-hand-again")
			b.post(c, 10, 10) // without its data, the broker counts from 1 again
			b.doneOnce(20)
			got := b.results(c)
			seen := map[string]bool{}
			until(t, "the results are published", func() bool {
				for _, p := range got() {
					seen[string(p.Body)] = true
				}
				return seen["10"] && seen["19"]
			})
		})
	}
}

// What a dispatcher got that died comes to another.
func TestDeadReplica(t *testing.T) {
	b := setup(t, ledger.Limits{}, unlimited)
	dead := b.nats.Connect("dead")
	held := make(chan uint64, 1)
	if _, err := dead.QueueSubscribe(tasks, "farmhand", func(m *stan.Msg) { held <- m.Sequence }, stan.DurableName("farmhand"), stan.DeliverAllAvailable(),
		stan.SetManualAckMode(), stan.AckWait(time.Second), stan.MaxInflight(1)); err != nil {
		t.Fatal(err)
	}
	c := b.nats.Connect("by-hand")
	b.post(c, 0, 3)
	select {
	case <-held:
	case <-time.After(patience):
		t.Fatal("nothing came to the dead")
	}
	dead.NatsConn().Close() // without a word
	b.start("one")
	b.doneOnce(3)
}

// While the ledger is full the broker sends again what waits; it is a task once.
func TestFull(t *testing.T) {
	b := setup(t, ledger.Limits{QueueTasks: 2}, unlimited)
	one := b.start("one")
	c := b.nats.Connect("by-hand")
	b.post(c, 0, 6)
	until(t, "the queue is full", func() bool { return one.Stats().Accepted == 2 })
	again := make(chan struct{}, 64) // a member of the group sees what comes again
	other := b.nats.Connect("other")
	if _, err := other.QueueSubscribe(tasks, "farmhand", func(m *stan.Msg) {
		if m.Redelivered {
			again <- struct{}{}
		}
	}, stan.DurableName("farmhand"), stan.SetManualAckMode(), stan.AckWait(time.Second)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-again:
	case <-time.After(patience):
		t.Fatal("nothing comes again")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	b.doneOnce(6)
	if one.Stats().Accepted != 6 {
		t.Errorf("%+v", one.Stats())
	}
}

// Channels that would drop tasks are not taken, unless that is fine.
func TestLimitedChannel(t *testing.T) {
	b := setup(t, ledger.Limits{})
	r := b.start("one")
	if err := r.broker.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := b.nats.Connect("by-hand")
	b.post(c, 0, 1)
	time.Sleep(200 * time.Millisecond) // nothing happens
	if r.Stats().Accepted != 0 {
		t.Errorf("%+v", r.Stats())
	}
	r.end()
	b.start("two", func(c *natsstream.Config) { c.Lossy = true })
	b.doneOnce(1)
}

func TestBadConfig(t *testing.T) {
	for _, bad := range []string{"", "nats", "nats://", "::"} {
		if _, err := natsstream.Open(natsstream.Config{URL: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
		if _, err := natsstream.OpenSink(natsstream.Config{URL: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
