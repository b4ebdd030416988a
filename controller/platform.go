package controller

import "context"

// Worker is a function of the platform that is labelled as a worker.
type Worker struct {
	Name        string // name, or name.namespace outside the default namespace
	Labels      map[string]string
	Annotations map[string]string
	Env         map[string]string
	Desired     int // replicas asked for
	Ready       int // replicas that serve
}

// Usage is what a worker's replicas use together.
type Usage struct {
	CPU    float64 // cores
	Memory float64 // bytes
}

// Platform is where workers run.
type Platform interface {
	// Workers lists all functions labelled as workers. An error means that
	// nothing is known, never that there are none.
	Workers(ctx context.Context) ([]Worker, error)
	// Replicas reads back how many replicas of a worker are desired and ready.
	// What it says is authoritative, whatever was asked for.
	Replicas(ctx context.Context, name string) (desired, ready int, err error)
	// Scale asks for n replicas.
	Scale(ctx context.Context, name string, n int) error
	// Usage tells what the replicas use; ok is false where the platform does not
	// tell.
	Usage(ctx context.Context, name string) (u Usage, ok bool, err error)
}
