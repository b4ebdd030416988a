package dispatch

import (
	"context"
	"log/slog"
	"time"

	"farmhand/skeleton"
)

// backoff of the loops against a store that is away: full jitter, 10 ms to 2 s,
// for ever.
type backoff struct {
	n       int
	uniform func() float64
}

func (b *backoff) reset() { b.n = 0 }

// complainEvery is about once a minute.
const complainEvery = 60

// complain logs the first error of a row, and then one now and again.
func (b *backoff) complain(log *slog.Logger, msg string, err error, args ...any) {
	if b.n%complainEvery == 0 {
		log.Warn(msg, append(args, "error", err)...)
	}
}

// wait returns false when done was closed.
func (b *backoff) wait(done <-chan struct{}) bool {
	b.n++
	t := time.NewTimer(min(2*time.Second, 10*time.Millisecond+skeleton.Backoff(min(b.n, 3), b.uniform)))
	defer t.Stop()
	select {
	case <-done:
		return false
	case <-t.C:
		return true
	}
}

// persist calls watch again and again until ctx ends.
func persist(ctx context.Context, cfg Config, msg string, watch func() error) {
	retry := backoff{uniform: cfg.Uniform}
	for {
		err := watch()
		if ctx.Err() != nil {
			return
		}
		retry.complain(cfg.Log, msg, err)
		if !retry.wait(ctx.Done()) {
			return
		}
	}
}

// poke signals a channel of capacity one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
