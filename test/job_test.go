package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
	"farmhand/skeleton/ledger"
)

// task is what the worker is told; see worker/main.go.
type task map[string]any

// light is the usual load: tasks of 10 to 30 ms.
func light(i int) task { return task{"sleep": fmt.Sprintf("%dms", 10+i%21), "answer": fmt.Sprint(i)} }

// submit posts a job of n tasks. Options are pairs.
func (f *farm) submit(n int, of func(i int) task, options ...string) string {
	f.t.Helper()
	s, err := f.client.Submit(f.t.Context(), f.options(options), piece(f, n, of))
	if err != nil {
		f.t.Fatal(err)
	}
	return s.Job.ID
}

func (f *farm) options(pairs []string) jobclient.Options {
	o := jobclient.Options{"worker": "worker"}
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i]] = pairs[i+1]
	}
	return o
}

func piece(f *farm, n int, of func(i int) task) jobclient.Piece {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	for i := range n {
		if err := enc.Encode(of(i)); err != nil {
			f.t.Fatal(err)
		}
	}
	return jobclient.Piece{Type: "application/x-ndjson", Body: body.Bytes()}
}

// view of a job as the API shows it now; a dispatcher that is away is waited
// for.
func (f *farm) view(job string) jobapi.JobView {
	f.t.Helper()
	v, err := f.client.Job(f.t.Context(), job)
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

// reached waits until so many tasks of a job are done.
func (f *farm) reached(job string, n int) {
	f.t.Helper()
	until(f.t, patience, fmt.Sprintf("%d tasks done", n), func() bool { return f.view(job).Done >= n })
}

// ended waits until a job has ended.
func (f *farm) ended(job string) jobapi.JobView {
	f.t.Helper()
	var v jobapi.JobView
	until(f.t, patience, "the job has ended", func() bool {
		v = f.view(job)
		return v.Pending == 0
	})
	return v
}

// results waits until a job of n tasks has ended and reads what became of them,
// by index: every task has exactly one result, in the API and in the ledger, no
// time is negative (P79, on one machine), and the ledger is sound.
func (f *farm) results(job string, n int) []skeleton.Result {
	f.t.Helper()
	f.ended(job)
	seen := map[int]int{}
	_, end, err := f.client.Results(f.t.Context(), job, jobclient.Query{}, func(r jobapi.Result) error {
		seen[r.Index]++
		return nil
	})
	if err != nil || !end {
		f.t.Fatalf("results: the end is %t, %v", end, err)
	}
	list := f.kept(job)
	if len(seen) != n || len(list) != n {
		f.t.Errorf("%d tasks: %d results in the API, %d in the ledger", n, len(seen), len(list))
	}
	for i, r := range list {
		if r.Index != i || seen[i] != 1 {
			f.t.Errorf("result %d is of task %d, and the API shows task %d %d times", i, r.Index, i, seen[i])
		}
		if r.Wait < 0 || r.Service < 0 || r.Sojourn < 0 {
			f.t.Errorf("a negative time: %+v", r)
		}
	}
	f.sound()
	return list
}

// kept reads a job's results from the ledger, by index.
func (f *farm) kept(job string) (list []skeleton.Result) {
	f.t.Helper()
	for q := (ledger.Query{}); ; {
		page, err := f.ledger().Results(context.Background(), job, q)
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, page.Results...)
		if page.End || len(page.Results) == 0 {
			break
		}
		q.Cursor = page.Next
	}
	slices.SortStableFunc(list, func(a, b skeleton.Result) int { return a.Index - b.Index })
	return list
}

func (f *farm) ledger() ledger.Ledger { return f.store.Farm("worker") }

// sound counts every task of the farm in the ledger and compares.
func (f *farm) sound() {
	f.t.Helper()
	a, err := f.ledger().Audit(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	if len(a.Problems) > 0 || a.Counted != a.Counters || !a.Counters.Conserved() {
		f.t.Errorf("the ledger is not sound: %+v", a)
	}
}

// gauges of the farm.
func (f *farm) gauges() ledger.Gauges {
	f.t.Helper()
	g, err := f.ledger().Gauges(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return g
}

// unharmed expects that all tasks are done and that no attempt was charged:
// what the farm's own parts did is not the tasks' fault. Those of light have the
// answer they should have.
func (f *farm) unharmed(list []skeleton.Result) {
	f.t.Helper()
	for _, r := range list {
		if r.State != skeleton.Done || r.Attempt != 1 {
			f.t.Errorf("task %d: %s after %d attempts, %d lost: %s", r.Index, r.State, r.Attempt, r.Lost, r.Reason)
		}
	}
}

// losses adds up the attempts that were lost.
func losses(list []skeleton.Result) (n int) {
	for _, r := range list {
		n += r.Lost
	}
	return n
}

// answered expects the answers of light.
func (f *farm) answered(list []skeleton.Result) {
	f.t.Helper()
	for _, r := range list {
		if string(r.Body) != fmt.Sprint(r.Index) {
			f.t.Errorf("task %d has the answer %q", r.Index, r.Body)
		}
	}
}
