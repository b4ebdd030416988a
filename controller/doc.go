// Package controller scales farms: it observes, asks a policy, guards its wish
// and calls the platform, for each farm once an interval.
//
// One tick of a farm, from signal to receipt:
//
//	look     the platform's list: workers, annotations, replicas        pulse.go
//	claim    the farm's lease, its state, its overrides                 pulse.go
//	observe  gauges, seconds, windows → policy.Observation              farm.go
//	decide   policy and rule wish, the guard limits (pure)              decide.go
//	allot    the sum of all farms fits into the capacity (pure)         allocate.go
//	save     state and spent token, under the lease's fence             tick.go
//	act      window first, then the scale call, then the read-back      act.go
//	receipt  inputs, wishes, limits, count: decide again gives the same receipt.go
//
// Several controllers may run: a farm is decided for by the one that holds its
// lease, and the list of farms is published by the one that holds the lease of
// the roster. The package knows no network: Platform and Store are adapters.
package controller
