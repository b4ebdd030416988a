package policy

import "context"

// Estimate is what a policy would have come to on a stretch of a farm's past.
type Estimate struct {
	Seconds       float64 `json:"seconds"` // of the past that was judged
	Tasks         float64 `json:"tasks"`   // that arrived in them
	OnTime        Maybe   `json:"on_time"` // share of the decided tasks; unknown where none has a due
	WorkerSeconds float64 `json:"worker_seconds"`
}

// Estimator says what a policy would have cost, and how late work would have been,
// on the recent past of a live farm: it plays the same arrivals again in a model of
// the farm. It is asked by whoever decides whether a learned policy may stay.
type Estimator interface {
	// Estimate judges a policy on observations of one farm, the oldest first, one
	// for each decision. The error says what of the past is unknown.
	Estimate(ctx context.Context, past []Observation, p Policy) (Estimate, error)
}
