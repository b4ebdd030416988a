package jobapi

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// ids makes the ids of jobs. Each is greater than the one before, also when the
// clock goes back, since jobs are listed by them; nobody can guess one.
type ids struct {
	now func() time.Time

	mu      sync.Mutex
	last    uint64                 // ms of the last one; guarded by mu
	entropy *ulid.MonotonicEntropy // guarded by mu
}

func newIDs(now func() time.Time) *ids {
	return &ids{now: now, entropy: ulid.Monotonic(rand.Reader, 0)}
}

// next makes the id of a new job of a farm.
func (i *ids) next(farm string) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = max(i.last, ulid.Timestamp(i.now()))
	u, err := ulid.New(i.last, i.entropy)
	return farm + "~" + u.String(), err
}
