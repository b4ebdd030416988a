// Package natsstream is the broker of a stream: NATS Streaming, which OpenFaaS CE
// itself runs.
//
// The receivers of a channel are one durable queue group. Each process is a
// client of its own name; results are published by a client of a fixed name,
// which the broker lets in once: whoever has it is elected.
package natsstream

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/stan.go"

	"farmhand/internal/stanlink"
	"farmhand/skeleton/stream"
)

const (
	group      = "farmhand"
	durable    = "farmhand"
	sinkClient = "farmhand-sink"
	// retryEvery is how often a channel that was refused is looked at again.
	retryEvery = 30 * time.Second
)

// Config of a connection.
type Config struct {
	URL     string // such as nats://nats.openfaas:4222
	Token   string // "" = none
	Cluster string // such as faas-cluster
	Client  string // names this process among all that connect
	// Monitor is the address of the broker's monitoring, such as
	// http://nats.openfaas:8222; "" leaves the limits of channels unknown.
	Monitor string
	// Lossy takes channels that drop messages nobody has got yet.
	Lossy bool
	// AckWait is how long a message may be on its way into the ledger until the
	// broker sends it again (30 s).
	AckWait     time.Duration
	PingSeconds int          // how often the broker is asked whether it knows us (5)
	Log         *slog.Logger // nil: silent
}

func (c Config) address() (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" {
		return "", errors.New("not a valid address; want nats://HOST:4222") // not repeated: it may hold a token
	}
	if c.Token != "" {
		u.User = url.User(c.Token)
	}
	return u.String(), nil
}

// Broker receives tasks and publishes.
type Broker struct {
	cfg    Config
	limits limits
	link   *stanlink.Link
	retry  chan struct{}
	quit   context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	conn stan.Conn                // guarded by mu
	subs map[string]*subscription // by channel; guarded by mu
}

type subscription struct {
	channel string
	deliver func(stream.Message)
	sub     stan.Subscription // nil while it is not in force
	told    string            // why it was refused
}

var (
	_ stream.Receiver  = (*Broker)(nil)
	_ stream.Publisher = (*Broker)(nil)
	_ stream.Elected   = (*Sink)(nil)
)

// Open connects in the background.
func Open(c Config) (*Broker, error) {
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	if c.AckWait <= 0 {
		c.AckWait = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ctx, quit := context.WithCancel(context.Background())
	b := &Broker{cfg: c, limits: newLimits(c.Monitor), retry: make(chan struct{}, 1), quit: quit, done: make(chan struct{}), subs: map[string]*subscription{}}
	b.link = stanlink.Open(stanlink.Config{URL: address, Cluster: c.Cluster, Client: stanlink.ClientID(c.Client), PingSeconds: c.PingSeconds, Log: c.Log, Up: b.up})
	go b.attach(ctx)
	if c.Monitor == "" {
		c.Log.Warn("the limits of the broker's channels cannot be read (farmhand_nats_monitor_url): if it has any, it drops messages without a word")
	}
	return b, nil
}

// up begins anew on a fresh connection.
func (b *Broker) up(conn stan.Conn) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = conn
	for _, s := range b.subs {
		s.sub = nil
	}
	b.kick()
	return nil
}

func (b *Broker) kick() {
	select {
	case b.retry <- struct{}{}:
	default:
	}
}

// Subscribe implements stream.Receiver.
func (b *Broker) Subscribe(channel string, deliver func(stream.Message)) (cancel func()) {
	s := &subscription{channel: channel, deliver: deliver}
	b.mu.Lock()
	b.subs[channel] = s
	b.mu.Unlock()
	b.kick()
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.subs[channel] == s {
			delete(b.subs, channel)
		}
		if s.sub != nil {
			if err := s.sub.Close(); err != nil { // the durable stays
				b.cfg.Log.Debug("a subscription was not closed", "channel", channel, "error", err)
			}
			s.sub = nil
		}
	}
}

// attach puts subscriptions in force that are not.
func (b *Broker) attach(ctx context.Context) {
	defer close(b.done)
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.retry:
		case <-tick.C:
		}
		for _, channel := range b.missing() {
			if err := b.limits.check(ctx, channel); err != nil && !b.cfg.Lossy {
				b.refuse(channel, err)
				continue
			}
			b.subscribe(channel)
		}
	}
}

func (b *Broker) missing() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for channel, s := range b.subs {
		if s.sub == nil && b.conn != nil {
			list = append(list, channel)
		}
	}
	return list
}

// refuse says why a channel is not taken, once for each reason.
func (b *Broker) refuse(channel string, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.subs[channel]; s != nil && s.told != why.Error() {
		s.told = why.Error()
		b.cfg.Log.Error("a channel is not taken", "channel", channel, "reason", why)
	}
}

func (b *Broker) subscribe(channel string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.subs[channel]
	if s == nil || s.sub != nil || b.conn == nil {
		return
	}
	sub, err := b.conn.QueueSubscribe(channel, group, func(m *stan.Msg) {
		s.deliver(stream.Message{Sequence: m.Sequence, Stamp: m.Timestamp, Data: m.Data, Ack: m.Ack})
	}, stan.DurableName(durable), stan.DeliverAllAvailable(), stan.SetManualAckMode(), stan.MaxInflight(stream.MaxInflight), stan.AckWait(b.cfg.AckWait))
	if err != nil {
		b.cfg.Log.Warn("a channel cannot be subscribed to: trying on", "channel", channel, "error", err)
		time.AfterFunc(time.Second, b.kick)
		return
	}
	s.sub, s.told = sub, ""
	b.cfg.Log.Debug("subscribed", "channel", channel)
}

// Publish implements stream.Publisher.
func (b *Broker) Publish(channel string, list [][]byte) error {
	return b.link.PublishAll(channel, list)
}

// MaxMessage implements stream.Publisher.
func (b *Broker) MaxMessage() int { return maxMessage(b.link) }

// overhead is what the protocol adds to a message.
const overhead = 1 << 10

func maxMessage(l *stanlink.Link) int { return max(0, int(l.MaxPayload())-overhead) }

// Ready waits for the connection.
func (b *Broker) Ready(ctx context.Context) error { return b.link.Ready(ctx) }

// Close ends the connection; what is not acknowledged comes to another.
func (b *Broker) Close() {
	b.quit()
	<-b.done
	b.link.Close()
}

// Sink publishes while it is elected.
type Sink struct{ link *stanlink.Link }

// OpenSink stands for election in the background.
func OpenSink(c Config) (*Sink, error) {
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	return &Sink{stanlink.Open(stanlink.Config{URL: address, Cluster: c.Cluster, Client: sinkClient, PingSeconds: c.PingSeconds, Quiet: true, Log: c.Log})}, nil
}

// Ready implements stream.Elected.
func (s *Sink) Ready(ctx context.Context) error { return s.link.Ready(ctx) }

// Up reports whether it is elected.
func (s *Sink) Up() bool { return s.link.Up() }

// Publish implements stream.Publisher.
func (s *Sink) Publish(channel string, list [][]byte) error { return s.link.PublishAll(channel, list) }

// MaxMessage implements stream.Publisher.
func (s *Sink) MaxMessage() int { return maxMessage(s.link) }

// Close leaves the place to another.
func (s *Sink) Close() { s.link.Close() }
