package redisledger

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// resync is what a watcher gets when messages may have been missed: at the
// start and after each reconnection.
const resync = ""

// hub shares one subscriber connection among all watchers of a process.
type hub struct {
	rdb redis.UniversalClient

	mu       sync.Mutex
	closed   bool
	ps       *redis.PubSub
	done     chan struct{} // closed when the reading loop has ended
	watchers map[string]map[*watcher]struct{}
}

type watcher struct{ fn func(payload string) }

var errHubClosed = errors.New("redisledger: store closed")

func newHub(rdb redis.UniversalClient) *hub {
	return &hub{rdb: rdb, watchers: map[string]map[*watcher]struct{}{}}
}

// watch calls fn with every message of a channel until ctx ends. fn must not
// block.
func (h *hub) watch(ctx context.Context, channel string, fn func(payload string)) error {
	w := &watcher{fn}
	if err := h.add(ctx, channel, w); err != nil {
		return err
	}
	defer h.remove(channel, w)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-h.done:
		return errHubClosed
	}
}

func (h *hub) add(ctx context.Context, channel string, w *watcher) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errHubClosed
	}
	if h.ps == nil {
		h.ps = h.rdb.Subscribe(context.WithoutCancel(ctx))
		h.done = make(chan struct{})
		go h.read(h.ps.ChannelWithSubscriptions(redis.WithChannelSize(1024)), h.done)
	}
	first := len(h.watchers[channel]) == 0
	if first {
		h.watchers[channel] = map[*watcher]struct{}{}
	}
	h.watchers[channel][w] = struct{}{}
	if first {
		// An error means that the server is away: go-redis remembers the channel
		// and subscribes when it is back.
		_ = h.ps.Subscribe(context.WithoutCancel(ctx), channel)
	}
	w.fn(resync)
	return nil
}

func (h *hub) remove(channel string, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers[channel], w)
	if len(h.watchers[channel]) > 0 {
		return
	}
	delete(h.watchers, channel)
	if !h.closed {
		_ = h.ps.Unsubscribe(context.Background(), channel) // a server that is away forgot it anyway
	}
}

// read passes messages on until the subscriber is closed.
func (h *hub) read(messages <-chan any, done chan struct{}) {
	defer close(done)
	for m := range messages {
		switch m := m.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				h.call(m.Channel, resync)
			}
		case *redis.Message:
			h.call(m.Channel, m.Payload)
		}
	}
}

func (h *hub) call(channel, payload string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[channel] {
		w.fn(payload)
	}
}

func (h *hub) close() {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.closed = true
	ps, done := h.ps, h.done
	h.mu.Unlock()
	if ps != nil {
		_ = ps.Close() // ends the reading loop; there is nothing to lose
		<-done
	}
}
