package memledger

import (
	"context"
	"sync"
	"sync/atomic"

	"farmhand/skeleton/ledger"
)

// hub passes events on to watchers. Callbacks run under its lock: they must not
// block, nor call what raises events.
type hub struct {
	n        atomic.Int32 // watchers
	mu       sync.Mutex
	watchers map[string]map[*watcher]struct{} // guarded by mu; by key
}

type watcher struct{ fn func(ledger.Event) }

// watch calls fn with a Wake, then with every event of a key until ctx ends.
func (h *hub) watch(ctx context.Context, key string, fn func(ledger.Event)) error {
	w := &watcher{fn}
	h.mu.Lock()
	if h.watchers == nil {
		h.watchers = map[string]map[*watcher]struct{}{}
	}
	if h.watchers[key] == nil {
		h.watchers[key] = map[*watcher]struct{}{}
	}
	h.watchers[key][w] = struct{}{}
	h.n.Add(1)
	fn(ledger.Event{Kind: ledger.Wake})
	h.mu.Unlock()

	<-ctx.Done()

	h.mu.Lock()
	defer h.mu.Unlock()
	h.n.Add(-1)
	delete(h.watchers[key], w)
	if len(h.watchers[key]) == 0 {
		delete(h.watchers, key)
	}
	return ctx.Err()
}

func (h *hub) watched() bool { return h.n.Load() > 0 }

func (h *hub) call(key string, e ledger.Event) {
	if !h.watched() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[key] {
		w.fn(e)
	}
}
