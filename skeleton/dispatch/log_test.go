package dispatch_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"farmhand/skeleton/dispatch"
)

// logged is a log that can be searched.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), what)
}

func (l *logged) use(c *dispatch.Config) { c.Log = slog.New(slog.NewTextHandler(l, nil)) }

// A long outage is complained of now and again, not with every try.
func TestOutageIsComplainedOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStore(1, 1)
		var log logged
		d := start(t, s, takes(time.Second), log.use)
		after(500 * time.Millisecond)
		s.fault(func() { s.down = true })
		after(20 * time.Minute)
		if n := log.count("cannot settle"); n < 5 || n > 30 {
			t.Errorf("%d complaints in 20 minutes", n)
		}
		s.fault(func() { s.down = false })
		after(time.Minute)
		stop(t, d)
	})
}
