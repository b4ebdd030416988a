package trainer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Poster posts tickets; a Queue is one.
type Poster interface {
	Post(ctx context.Context, t Ticket) error
}

// Watch posts the next slice of runs again that nobody works at: the one who did was
// killed, or the post was lost. Any number of them may run.
type Watch struct {
	store Store
	queue Poster
	key   Key
	log   *slog.Logger

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// WatchEvery is how often a Watch looks.
const WatchEvery = 5 * time.Second

// StartWatch looks whenever tick says so, until Stop.
func StartWatch(store Store, queue Poster, key Key, tick <-chan time.Time, log *slog.Logger) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{store: store, queue: queue, key: key, log: log, cancel: cancel}
	w.done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				w.look(ctx)
			}
		}
	})
	return w
}

// look once.
func (w *Watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	overdue, err := w.store.Overdue(ctx)
	switch {
	case errors.Is(err, ErrDamaged):
		w.log.Error("a training is given up, the others are watched", "error", err)
	case err != nil && ctx.Err() == nil:
		w.log.Warn("trainings cannot be watched", "error", err)
	}
	for _, t := range overdue {
		w.log.Info("a training stands still: its slice is posted again", "run", t.Run, "slice", t.Slice)
		if err := w.queue.Post(ctx, w.key.Ticket(t.Run, t.Slice)); err != nil {
			w.log.Warn("a slice could not be posted", "run", t.Run, "slice", t.Slice, "error", err)
		}
	}
}

// Stop looking, and wait until that is over.
func (w *Watch) Stop() {
	w.cancel()
	w.done.Wait()
}
