// Package redistest gives tests real redis-servers.
package redistest

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/redisproc"
)

// Start runs a redis-server until the test ends. Without redis-server on PATH
// the test is skipped, loudly; make test and .ci/run see to it that it is there.
func Start(t testing.TB, conf ...string) *redisproc.Server {
	t.Helper()
	s, err := redisproc.Start(t.TempDir(), conf...)
	if errors.Is(err, redisproc.ErrMissing) {
		t.Skipf("SKIPPED, UNPROVEN: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Client returns a client of the server that is closed when the test ends.
func Client(t testing.TB, s *redisproc.Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
