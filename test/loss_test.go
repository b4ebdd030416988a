package test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/skeleton"
)

// A task that crashes every worker it meets becomes a dead letter after its
// budget of losses; the other 99 are done, and no more workers are started than
// were lost (P53; the waits in between, up to a minute, are cut to nothing).
func TestPoisonTask(t *testing.T) {
	t.Parallel()
	const workers, poison = 10, 7
	f := start(t, config{workers: workers})
	runs := f.file("runs")
	job := f.submit(100, func(i int) task {
		if i == poison {
			return task{"file": runs, "crash": true}
		}
		return light(i)
	})
	f.reached(job, 99)
	until(t, patience, "the poison task has ended", func() bool {
		f.hurry()
		return f.view(job).Pending == 0
	})
	list := f.results(job, 100)
	bad := list[poison]
	if bad.State != skeleton.Dead || bad.Lost <= skeleton.LostBudget || len(f.notes(runs)) != bad.Lost {
		t.Errorf("the poison task: %+v after %d runs", bad, len(f.notes(runs)))
	}
	f.unharmed(append(list[:poison:poison], list[poison+1:]...))
	if n := len(f.notes(f.starts)); n > workers+bad.Lost {
		t.Errorf("%d workers were started, %d of %d were lost", n, bad.Lost, workers)
	}
}

// hurry ends the back-off of every task: it moves the end of the delay to the
// past and wakes the dispatcher with a task.
func (f *farm) hurry() {
	f.t.Helper()
	const delayed = "farmhand:{worker}:delayed" // ref → end of delay
	ctx := f.t.Context()
	refs, err := f.rdb.ZRange(ctx, delayed, 0, -1).Result()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, ref := range refs {
		if err := f.rdb.ZAddXX(ctx, delayed, redis.Z{Score: 1, Member: ref}).Err(); err != nil {
			f.t.Fatal(err)
		}
	}
	if len(refs) > 0 {
		f.submit(1, light)
	}
}

// A task that must not run twice is not repeated when its worker is killed: it
// ends with an unknown outcome, for the user to resolve (P52).
func TestNoRetry(t *testing.T) {
	t.Parallel()
	f := start(t, config{})
	runs, gate := f.file("runs"), f.file("gate")
	job := f.submit(1, func(int) task { return task{"file": runs, "gate": gate} }, "retry", "never")
	load := f.submit(200, light)
	until(t, patience, "the task runs", func() bool { return len(f.notes(runs)) == 1 })
	if err := syscall.Kill(f.notes(runs)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := f.results(job, 1)[0]
	if r.State != skeleton.Dead || !strings.Contains(r.Reason, "unknown outcome") {
		t.Errorf("%+v", r)
	}
	f.unharmed(f.results(load, 200))
	if n := len(f.notes(runs)); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// A worker that hangs with its tasks is given up at the attempt's timeout; its
// slots serve no more, the tasks run elsewhere, and while they hang the farm
// names them (P49, P74: 2 s stand for 60).
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	f := start(t, config{slots: 2, timeout: "2s"})
	job := f.submit(300, light)
	f.reached(job, 50)
	pid := f.signal("worker", syscall.SIGSTOP)
	named := false
	until(t, patience, "the job has ended", func() bool {
		v, err := f.client.Farm(t.Context(), "worker")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range v.Running {
			named = named || (r.Job == job && r.For > 0.5)
		}
		return f.view(job).Pending == 0
	})
	list := f.results(job, 300)
	charged := 0
	for _, r := range list {
		if r.State != skeleton.Done {
			t.Errorf("task %d: %s: %s", r.Index, r.State, r.Reason)
		}
		charged += r.Attempt - 1
	}
	if !named {
		t.Error("the farm never named a task that hung")
	}
	if charged == 0 {
		t.Error("no attempt timed out: the worker had no task")
	}
	t.Logf("%d attempts timed out", charged)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, patience, "all workers serve again", func() bool {
		d, err := f.gateway.Function(t.Context(), "worker", false)
		return err == nil && d.AvailableReplicas == 4
	})
	f.unharmed(f.results(f.submit(40, light), 40))
}

// A task that hangs for ever does not hold its slot: the call ends at its timeout,
// and the task dies after its attempts (P49: 2 s stand for 60).
func TestHangingTask(t *testing.T) {
	t.Parallel()
	f := start(t, config{timeout: "2s"})
	job := f.submit(50, func(i int) task {
		if i == 0 {
			return task{"gate": f.file("never")}
		}
		return light(i)
	}, "attempts", "2")
	begun := time.Now()
	list := f.results(job, 50)
	if r := list[0]; r.State != skeleton.Dead || r.Attempt != 2 || time.Since(begun) > 20*time.Second {
		t.Errorf("%+v after %s", r, time.Since(begun))
	}
	f.unharmed(list[1:])
	if g := f.gauges(); g.Live != 0 {
		t.Errorf("slots are not free: %+v", g)
	}
}
