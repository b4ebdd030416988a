package jobapi

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"farmhand/internal/problem"
)

// budget bounds the bytes that all requests together hold in memory: bodies
// that are decoded, and results that are written to clients. Who waits is
// served in turn, so that small requests do not starve a large one.
type budget struct {
	total int64
	wait  time.Duration // for room, before a request is refused

	mu    sync.Mutex
	used  int64       // guarded by mu
	queue []*claimant // guarded by mu
}

type claimant struct {
	n     int64
	ready chan struct{} // closed when it has them
}

// take takes n bytes; it reports false when they were not free in time.
func (b *budget) take(ctx context.Context, n int64) bool {
	b.mu.Lock()
	if len(b.queue) == 0 && b.used+n <= b.total {
		b.used += n
		b.mu.Unlock()
		return true
	}
	c := &claimant{n: n, ready: make(chan struct{})}
	b.queue = append(b.queue, c)
	b.mu.Unlock()
	timer := time.NewTimer(b.wait)
	defer timer.Stop()
	select {
	case <-c.ready:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.queue {
		if b.queue[i] == c {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			b.serve() // those behind may fit
			return false
		}
	}
	return true // served in that very moment
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.serve()
}

// serve gives those in front of the queue what they wait for. mu is held.
func (b *budget) serve() {
	for len(b.queue) > 0 && b.used+b.queue[0].n <= b.total {
		b.used += b.queue[0].n
		close(b.queue[0].ready)
		b.queue = b.queue[1:]
	}
}

// share is what one request holds of the budget.
type share struct {
	*budget
	held int64
	last int64 // what the last page of results took
}

// grow sees to it that the request holds n bytes, or all there are if n is
// more.
func (s *share) grow(ctx context.Context, n int64) error {
	n = min(n, s.total)
	if n <= s.held {
		return nil
	}
	if !s.take(ctx, n-s.held) {
		if err := ctx.Err(); err != nil {
			return err
		}
		return problem.New(http.StatusTooManyRequests, "busy", "the dispatcher has too many bodies and results in its memory; nothing was accepted").
			At("body", "send the same again later").After(time.Second)
	}
	s.held = n
	return nil
}

// shrink gives back all but n bytes.
func (s *share) shrink(n int64) {
	if n < s.held {
		s.give(s.held - n)
		s.held = n
	}
}

// meter reads a body within the budget: what was read since the last call of
// passed is in memory twice, as it came and decoded, and so may as much be of what
// came before, since decoders keep their buffers. The share never shrinks while
// the body comes.
type meter struct {
	r     io.Reader
	ctx   context.Context
	share *share
	since int64
}

const (
	copiesRead = 2
	meterStep  = 64 << 10 // saves the budget most of the calls
)

// Read implements io.Reader.
func (m *meter) Read(b []byte) (int, error) {
	if want := copiesRead * (m.since + int64(len(b))); want > m.share.held {
		if err := m.share.grow(m.ctx, (want+meterStep-1)/meterStep*meterStep); err != nil {
			return 0, err
		}
	}
	n, err := m.r.Read(b)
	m.since += int64(n)
	return n, err
}

// passed says that what was read so far is out of our hands.
func (m *meter) passed() { m.since = 0 }
