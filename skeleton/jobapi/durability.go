package jobapi

import (
	"context"
	"sync"
	"time"
)

const (
	durabilityHolds = 10 * time.Second // how long an answer of the store counts
	durabilityFails = 3 * time.Second  // and that there was none
	durabilityTime  = time.Second      // for the store to answer
	unknown         = "unknown"
)

// durability says how well a write is kept, by asking the store now and then.
// Nobody waits for a store that does not answer longer than durabilityTime.
type durability struct {
	read func(context.Context) (string, error)
	now  func() time.Time

	mu     sync.Mutex
	known  string        // guarded by mu; "" before the first answer
	until  time.Time     // known counts until then; guarded by mu
	asking chan struct{} // closed when the one who asks has the answer; nil: nobody asks; guarded by mu
}

// get returns what is known, or unknown. Of many callers one asks; the others
// make do with what was known before, if anything.
func (d *durability) get(ctx context.Context) string {
	d.mu.Lock()
	for d.known == "" && d.asking != nil {
		asking := d.asking
		d.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return unknown
		}
		d.mu.Lock()
	}
	defer d.mu.Unlock()
	if d.asking != nil || d.now().Before(d.until) {
		return d.known
	}
	d.asking = make(chan struct{})
	d.mu.Unlock()
	v, err := d.ask(ctx)
	d.mu.Lock()
	holds := durabilityHolds
	if err != nil {
		v, holds = unknown, durabilityFails
	}
	d.known, d.until = v, d.now().Add(holds)
	close(d.asking)
	d.asking = nil
	return v
}

// ask does not depend on one caller's patience: others use the answer too.
func (d *durability) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), durabilityTime)
	defer cancel()
	return d.read(ctx)
}
