package test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"farmhand/skeleton"
)

// 500 tasks for three slots, at most three attempts each: no more is handed out
// than there are slots, no surplus is refused into the dead letters, and every
// task runs once (P71; P44 with 500 tasks of 20 ms for 10 of 5 s).
func TestCap(t *testing.T) {
	t.Parallel()
	f := start(t, config{workers: 3})
	runs := f.file("runs")
	job := f.submit(500, func(i int) task { return task{"sleep": "20ms", "file": runs, "answer": fmt.Sprint(i)} }, "attempts", "3")
	until(t, patience, "the job has ended", func() bool {
		if g := f.gauges(); g.Live > 3 || g.Dead > 0 {
			t.Fatalf("%d leases, %d dead letters", g.Live, g.Dead)
		}
		return f.view(job).Pending == 0
	})
	list := f.results(job, 500)
	f.unharmed(list)
	f.answered(list)
	if n := len(f.notes(runs)); n != 500 {
		t.Errorf("%d runs", n)
	}
}

// The workers refuse half of what the farm could send them, all the time. The
// oldest task is offered first, so none waits much longer than in a queue (P69:
// 50 tasks, 5 single-slot workers), and none is charged.
func TestBusyWorkers(t *testing.T) {
	t.Parallel()
	f := start(t, config{workers: 5, slots: 2, inflight: 1})
	const service = 100 * time.Millisecond
	list := f.results(f.submit(50, func(int) task { return task{"sleep": service.String()} }), 50)
	f.unharmed(list)
	// The last of 50 waits for nine rounds; a round takes what it really took.
	var mean, worst time.Duration
	for _, r := range list {
		mean += r.Service / 50
		worst = max(worst, r.Wait)
	}
	if bound := 2 * 9 * mean; worst > bound {
		t.Errorf("a task waited %s, want at most %s", worst, bound)
	}
	t.Logf("longest wait %s, mean service %s", worst, mean)
}

// One task in ten asks to be tried again later. That is no overload: the window
// stays as it is (P72).
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	f := start(t, config{})
	job := f.submit(300, func(i int) task {
		if i%10 == 0 {
			return task{"status": 503, "until": 2, "retry": "1", "answer": fmt.Sprint(i)}
		}
		return light(i)
	})
	until(t, patience, "the job has ended", func() bool {
		if g := f.gauges(); g.Factor < 1 || g.Window != 4 {
			t.Fatalf("the window is %d, its factor %g", g.Window, g.Factor)
		}
		return f.view(job).Pending == 0
	})
	list := f.results(job, 300)
	for i, r := range list {
		if want := 1 + (10-i%10)/10; r.State != skeleton.Done || r.Attempt != want {
			t.Errorf("task %d: %s after %d attempts, want %d", i, r.State, r.Attempt, want)
		}
	}
	f.answered(list)
}

// One tenant's 1,000 tasks do not keep another's one waiting: it is served
// within two rounds of the four workers, what they hold already beside (P75).
func TestFairness(t *testing.T) {
	t.Parallel()
	f := start(t, config{})
	many := f.submit(1000, func(i int) task { return task{"sleep": "5ms"} }, "tenant", "a")
	f.reached(many, 50)
	one := f.results(f.submit(1, light, "tenant", "b"), 1)
	list := f.results(many, 1000)
	f.unharmed(one)
	f.unharmed(list)
	accepted, before := one[0].Finished.Add(-one[0].Sojourn), 0
	for _, r := range list {
		if begun := r.Finished.Add(-r.Service); begun.After(accepted) && begun.Before(one[0].Finished.Add(-one[0].Service)) {
			before++
		}
	}
	if before > 4+2*4 {
		t.Errorf("%d tasks of the other tenant began first", before)
	}
	t.Logf("%d tasks of the other tenant began first", before)
}

// A job is cancelled under load: its waiting tasks never run, its running ones
// end at once, every task is done or cancelled, and the job beside it does not
// notice.
func TestCancel(t *testing.T) {
	t.Parallel()
	f := start(t, config{slots: 2})
	job := f.submit(400, func(i int) task {
		if i%50 == 49 {
			return task{"gate": f.file("never")}
		}
		return light(i)
	})
	beside := f.submit(200, light)
	f.reached(job, 100)
	if _, err := f.client.Cancel(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	v := f.ended(job)
	if v.State != "cancelled" || v.Cancelled == 0 || v.Dead != 0 || v.Done+v.Cancelled != 400 {
		t.Errorf("%+v", v)
	}
	list := f.results(beside, 200)
	f.unharmed(list)
	f.answered(list)
	seen := map[int]bool{}
	for _, r := range f.kept(job) {
		if seen[r.Index] || r.State != skeleton.Done {
			t.Errorf("%+v", r)
		}
		seen[r.Index] = true
	}
	if len(seen) != v.Done {
		t.Errorf("%d results, %d tasks are done", len(seen), v.Done)
	}
	until(t, patience, "its leases are over", func() bool { return f.gauges().Live == 0 })
	f.sound()
}

// A task that takes longer than its lease runs once, while it and others leave
// the dispatcher's one processor no time (P45, P50). It takes 16 s, a lease and a
// bit; with FARMHAND_LONG=1 three leases and a bit.
func TestLongTask(t *testing.T) {
	t.Parallel()
	length := 16 * time.Second
	if os.Getenv("FARMHAND_LONG") == "1" {
		length = 46 * time.Second
	}
	f := start(t, config{timeout: "55s", dispatcher: map[string]string{"GOMAXPROCS": "1"}})
	runs := f.file("runs")
	long := f.submit(3, func(int) task { return task{"file": runs, "burn": length.String()} })
	load := f.submit(200, light)
	f.unharmed(f.results(long, 3))
	f.unharmed(f.results(load, 200))
	if n, g := len(f.notes(runs)), f.gauges(); n != 3 || g.Lapsed != 0 || g.Refused != 0 {
		t.Errorf("%d runs, %d leases lapsed, %d outcomes refused", n, g.Lapsed, g.Refused)
	}
}
