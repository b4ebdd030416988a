package skeleton

import (
	"math"
	"time"
)

// Back-off of failed attempts: exponential with full jitter,
// U(0, min(cap, base·2^(n−1))), after M. Brooker, "Exponential Backoff And
// Jitter", 2015.
const (
	BackoffBase = 500 * time.Millisecond
	BackoffCap  = time.Minute
)

// Backoff returns how long to wait after n failed attempts, n ≥ 1. uniform
// draws from [0, 1). It is at least a millisecond.
func Backoff(n int, uniform func() float64) time.Duration {
	bound := math.Min(float64(BackoffCap), float64(BackoffBase)*math.Pow(2, float64(max(1, n)-1)))
	return max(time.Millisecond, time.Duration(uniform()*bound))
}

// BusyWait returns how long to wait before a task is offered again to workers
// that were busy: 2 to 20 ms.
func BusyWait(uniform func() float64) time.Duration {
	return 2*time.Millisecond + time.Duration(uniform()*float64(18*time.Millisecond))
}
