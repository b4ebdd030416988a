// Package stanlink keeps a connection to NATS Streaming. A short absence of the
// broker the NATS client bridges by itself; when the broker has forgotten the
// client, or stays away, the link connects afresh with growing pauses and
// subscribes again.
package stanlink

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/stan.go"
)

// ErrDown says that there is no connection right now.
var ErrDown = errors.New("nats: the broker is away")

// Times of a link.
const (
	connectTime = 2 * time.Second
	ackTime     = 5 * time.Second // for the broker to store what is published
	firstPause  = 50 * time.Millisecond
	lastPause   = 5 * time.Second
	pingsOut    = 3 // unanswered pings until the connection counts as lost
)

// Config of a Link.
type Config struct {
	URL     string // such as nats://TOKEN@127.0.0.1:4222
	Cluster string // the broker's cluster id
	Client  string // client id: one connection at a time has it
	// Up is called with each fresh connection: the place to subscribe. After an
	// error the link tries again.
	Up func(stan.Conn) error
	// PingSeconds is how often the broker is asked whether it knows us (5).
	PingSeconds int
	// Quiet tells of failures to connect at debug level: they are expected.
	Quiet bool
	Log   *slog.Logger // nil: silent
}

// Link is a connection that comes back.
type Link struct {
	cfg  Config
	quit chan struct{}
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	conn    stan.Conn     // nil while there is none; guarded by mu
	changed chan struct{} // closed when conn changes; guarded by mu
}

// Open makes a link, which connects in the background until Close.
func Open(c Config) *Link {
	if c.PingSeconds <= 0 {
		c.PingSeconds = 5
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	l := &Link{cfg: c, quit: make(chan struct{}), done: make(chan struct{}), changed: make(chan struct{})}
	go l.run()
	return l
}

var foreign = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// ClientID makes a text a valid client id.
func ClientID(s string) string { return foreign.ReplaceAllString(s, "_") }

// run connects, and connects again whenever the connection is lost.
func (l *Link) run() {
	defer close(l.done)
	for failures := 0; ; {
		conn, lost, err := l.connect()
		switch {
		case err == nil:
			failures = 0
			l.set(conn)
			l.cfg.Log.Debug("connected to NATS Streaming", "client", l.cfg.Client)
			select {
			case <-l.quit:
				l.set(nil)
				l.end(conn)
				return
			case err = <-lost:
				l.set(nil)
				l.cfg.Log.Warn("the connection to NATS Streaming is lost: connecting afresh", "client", l.cfg.Client, "error", err)
			}
		case failures == 0 && !l.cfg.Quiet:
			l.cfg.Log.Warn("no connection to NATS Streaming: trying on", "client", l.cfg.Client, "error", err)
		default:
			l.cfg.Log.Debug("no connection to NATS Streaming", "client", l.cfg.Client, "error", err)
		}
		failures++
		select {
		case <-l.quit:
			return
		case <-time.After(pause(failures)):
		}
	}
}

// pause is how long to wait after n failures: doubling, with a fifth of jitter.
func pause(n int) time.Duration {
	d := min(firstPause<<min(n-1, 10), lastPause)
	return time.Duration((0.8 + 0.4*rand.Float64()) * float64(d))
}

func (l *Link) connect() (stan.Conn, <-chan error, error) {
	lost := make(chan error, 1)
	conn, err := stan.Connect(l.cfg.Cluster, l.cfg.Client,
		stan.NatsURL(l.cfg.URL),
		stan.NatsOptions(nats.Timeout(connectTime), nats.ReconnectWait(firstPause), nats.ReconnectJitter(firstPause, firstPause),
			nats.RetryOnFailedConnect(false), nats.ErrorHandler(l.trouble)),
		stan.ConnectWait(connectTime), stan.PubAckWait(ackTime), stan.Pings(l.cfg.PingSeconds, pingsOut),
		stan.SetConnectionLostHandler(func(_ stan.Conn, err error) { lost <- err }))
	if err != nil {
		return nil, nil, err
	}
	if l.cfg.Up != nil {
		if err := l.cfg.Up(conn); err != nil {
			l.end(conn)
			return nil, nil, err
		}
	}
	return conn, lost, nil
}

// trouble hears what the NATS client would else print.
func (l *Link) trouble(_ *nats.Conn, _ *nats.Subscription, err error) {
	l.cfg.Log.Debug("NATS client", "client", l.cfg.Client, "error", err)
}

func (l *Link) end(conn stan.Conn) {
	if err := conn.Close(); err != nil {
		l.cfg.Log.Debug("the broker was not told that a client goes", "client", l.cfg.Client, "error", err)
	}
}

func (l *Link) set(conn stan.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Link) get() (stan.Conn, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn, l.changed
}

// Ready waits until there is a connection.
func (l *Link) Ready(ctx context.Context) error {
	for {
		conn, changed := l.get()
		if conn != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ErrDown, ctx.Err())
		case <-l.done:
			return ErrDown
		case <-changed:
		}
	}
}

// Up reports whether there is a connection. It may turn out to be lost.
func (l *Link) Up() bool {
	conn, _ := l.get()
	return conn != nil
}

// Publish publishes one message and returns when the broker has stored it. After
// an error it may have stored it all the same.
func (l *Link) Publish(subject string, data []byte) error {
	return l.PublishAll(subject, [][]byte{data})
}

// PublishAll publishes messages in their order and returns when the broker has
// stored all of them. After an error it may have stored some.
func (l *Link) PublishAll(subject string, list [][]byte) error {
	conn, _ := l.get()
	if conn == nil {
		return ErrDown
	}
	acks := make(chan error, len(list)) // as many as are sent
	sent := 0
	var first error
	for _, data := range list {
		if _, first = conn.PublishAsync(subject, data, func(_ string, err error) { acks <- err }); first != nil {
			break
		}
		sent++
	}
	for range sent {
		if err := <-acks; first == nil {
			first = err
		}
	}
	return first
}

// MaxPayload is the largest message that the broker takes; 0 = not known now.
func (l *Link) MaxPayload() int64 {
	conn, _ := l.get()
	if conn == nil || conn.NatsConn() == nil {
		return 0
	}
	return conn.NatsConn().MaxPayload()
}

// Close ends the link. Durable subscriptions stay in the broker. Twice is fine.
func (l *Link) Close() {
	l.once.Do(func() { close(l.quit) })
	<-l.done
}
