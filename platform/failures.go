package platform

import "time"

// A replica that was ready for stableAfter has shown that its program works.
const stableAfter = 5 * time.Second

// maxBackoff bounds the pause between failing starts.
const maxBackoff = 5 * time.Minute

// backoff is the pause after n failures in a row: none, 1 s, 4 s, 16 s …
func backoff(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	return min(time.Second<<min(2*(n-2), 20), maxBackoff)
}

// failed counts a failure and sets the pause that follows from it.
func (f *function) failed(r *replica) {
	if !r.readyAt.IsZero() && time.Since(r.readyAt) >= stableAfter {
		f.failures, f.probing = 0, false
		return
	}
	f.failures++
	f.probing = f.probing || r.readyAt.IsZero()
	pause := backoff(f.failures)
	if pause == 0 || f.retry != nil {
		return
	}
	f.retry = time.AfterFunc(pause, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.retry = nil
		f.reconcile()
	})
}

func (f *function) pauseOver() {
	if f.retry != nil {
		f.retry.Stop()
		f.retry = nil
	}
}
