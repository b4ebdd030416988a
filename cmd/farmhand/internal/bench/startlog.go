package bench

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// startLog is a slog.Handler that hears the platform say how long each replica
// took from the decision to start it to ready, and drops all else.
type startLog struct {
	mu   sync.Mutex
	took []float64 // seconds; of sleeping workers
}

// Enabled implements slog.Handler.
func (l *startLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l *startLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "replica ready" {
		return nil
	}
	replica, took := "", time.Duration(0)
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "replica":
			replica = a.Value.String()
		case "took":
			took = a.Value.Duration()
		}
		return true
	})
	if strings.HasPrefix(replica, "farm-") {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.took = append(l.took, took.Seconds())
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (l *startLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *startLog) WithGroup(string) slog.Handler { return l }

// seconds that the starts took so far.
func (l *startLog) seconds() []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.took)
}
