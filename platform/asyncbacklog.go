package platform

import "sync"

// How much may wait to be called. The broker keeps a little more of its channel
// than that (see limits), and drops the oldest beyond, also what nobody has got
// yet: so no more is taken.
const (
	maxWaitingCalls = 100_000
	maxWaitingBytes = 256 << 20
)

// backlog counts what the broker has stored and the worker has not got yet. It
// may count too much, never too little, but for messages that somebody else
// publishes.
type backlog struct {
	mu    sync.Mutex // guards the rest
	calls int
	bytes int
	seen  uint64 // the highest sequence number that came to the worker
}

// restore begins with what waited when the platform started.
func (b *backlog) restore(calls, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls += calls
	b.bytes += bytes
}

// enter counts a message that is about to be published, if it may.
func (b *backlog) enter(size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls >= maxWaitingCalls || b.bytes+size > maxWaitingBytes {
		return false
	}
	b.calls++
	b.bytes += size
	return true
}

// waiting is how many calls nobody has begun.
func (b *backlog) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// leave takes back what enter counted.
func (b *backlog) leave(size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sub(size)
}

// came notes that the worker has got a message, perhaps once more.
func (b *backlog) came(sequence uint64, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sequence > b.seen {
		b.seen = sequence
		b.sub(size)
	}
}

func (b *backlog) sub(size int) {
	b.calls, b.bytes = max(0, b.calls-1), max(0, b.bytes-size)
	if b.calls == 0 {
		b.bytes = 0 // the count of a restart is a guess
	}
}
