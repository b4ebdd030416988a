package test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"farmhand/controller"
)

// The signals fail in four ways while a farm of five and more has nothing to do and
// would go down at once if that were known: the dispatcher stops, what it said last
// is repeated, what there is is ten minutes old, nothing is there at all. The farm
// never goes down for that and says what is wrong; when signals come again it does
// (P27, P29, P34, P35: 10 minutes are eight decisions here).
func TestSignalsFail(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{byHand: true})
	defer f.explained("worker")
	base, dispatcher := f.dispatch("")
	f.connect(base)
	f.begun()
	api := f.url + "/function/controller"
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	until(t, patience, "the farm is scaled", func() bool { return f.desired("worker") >= 5 })
	end()
	if err := dispatcher.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	snapshot := f.snapshot()
	// What was heard last may be acted on for a few seconds.
	f.more(1, "the dispatcher is silent", func(r *controller.Receipt) bool { return r.Observation.Stale() })
	count := f.desired("worker")
	if count < 2 {
		t.Fatalf("%d replicas when the signals end", count)
	}
	kept := func(what string, old func(r *controller.Receipt) bool) {
		t.Helper()
		for _, r := range f.more(8, what, func(r *controller.Receipt) bool { return r.Observation.Stale() && old(r) }) {
			if r.Replicas < r.Before || r.Before != count {
				t.Errorf("%s: receipt %d, age %v: %d→%d: %s", what, r.Seq, r.Observation.Age, r.Before, r.Replicas, r.Why())
			}
		}
		if n := f.desired("worker"); n != count {
			t.Errorf("%s: %d replicas, want %d", what, n, count)
		}
		var v controller.FarmView
		f.ask(api, "GET", "/?farm=worker", "", &v)
		if c := v.Conditions[controller.Healthy]; c.Status || !strings.Contains(c.Reason, "signals") {
			t.Errorf("%s: the condition is %+v", what, c)
		}
	}
	kept("the dispatcher is stopped", func(r *controller.Receipt) bool { return r.Observation.Age > 5 })

	kept("the last signal is repeated", func(r *controller.Receipt) bool {
		f.second(time.Now().Unix(), snapshot, false)
		return r.Observation.Age > 5
	})

	f.seconds(func() {
		now := time.Now().Unix()
		for sec := now - 730; sec <= now-600; sec++ {
			f.second(sec, snapshot, true)
		}
	})
	kept("all signals are ten minutes old", func(r *controller.Receipt) bool { return r.Observation.Age > 590 })

	f.seconds(func() {})
	kept("there are no signals", func(r *controller.Receipt) bool { return !r.Observation.Age.Known() })

	if err := dispatcher.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	base, _ = f.dispatch("")
	f.connect(base)
	f.more(3, "signals come again", func(r *controller.Receipt) bool { return !r.Observation.Stale() })
	f.seconds(func() { // nothing is scaled down before a long window of them
		for sec := time.Now().Unix() - 130; sec <= time.Now().Unix(); sec++ {
			f.second(sec, snapshot, true)
		}
	})
	until(t, patience, "the farm has gone down", func() bool { return f.desired("worker") == 1 })
	f.told("worker")
}

// snapshot are the counters of the newest second that a dispatcher wrote.
func (f *farm) snapshot() (n string) {
	f.t.Helper()
	until(f.t, patience, "a second", func() bool {
		for back := range int64(10) {
			n = f.rdb.HGet(f.t.Context(), fmt.Sprintf("farmhand:{worker}:sec:%d", time.Now().Unix()-back), "n").Val()
			if n != "" {
				return true
			}
		}
		return false
	})
	return n
}

// second writes the bucket of a second, with a time of its own or that of the
// snapshot.
func (f *farm) second(sec int64, snapshot string, own bool) {
	f.t.Helper()
	if _, counts, ok := strings.Cut(snapshot, ","); ok && own {
		snapshot = fmt.Sprintf("%d,%s", sec*1_000_000, counts)
	}
	if err := f.rdb.HSet(f.t.Context(), fmt.Sprintf("farmhand:{worker}:sec:%d", sec), "n", snapshot).Err(); err != nil {
		f.t.Fatal(err)
	}
}

// seconds takes all seconds away, has others written, and lets a controller begin
// that has never seen the old ones.
func (f *farm) seconds(write func()) {
	f.t.Helper()
	keys, err := f.rdb.Keys(f.t.Context(), "farmhand:{worker}:sec:*").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	if len(keys) > 0 {
		f.rdb.Del(f.t.Context(), keys...)
	}
	write()
	before := f.last().Controller
	f.signal("controller", syscall.SIGTERM)
	f.more(1, "by another controller", func(r *controller.Receipt) bool { return r.Controller != before })
}

// A farm with a running task has work, though nothing waits and nothing arrives:
// the workers stay as long as their tasks, which run once (P21, P22: minutes are
// 15 decisions here, the cooldown is 1 s).
func TestRunningTasksKeepWorkers(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{timeout: "55s", farm: map[string]string{"farmhand.policy": "staffing:down=1", "farmhand.min": "0"}})
	defer f.explained("worker")
	f.begun()
	runs, gate := f.file("runs"), f.file("gate")
	job := f.submit(3, func(int) task { return task{"file": runs, "gate": gate} })
	until(t, patience, "all three run", func() bool { return len(f.notes(runs)) == 3 })
	for _, r := range f.more(15, "", nil) {
		if r.Replicas < 3 || r.Observation.Running != 3 {
			t.Errorf("receipt %d: %d replicas for %v running tasks: %s", r.Seq, r.Replicas, r.Observation.Running, r.Why())
		}
	}
	f.touch(gate)
	f.unharmed(f.results(job, 3))
	if n := len(f.notes(runs)); n != 3 {
		t.Errorf("%d runs", n)
	}
	f.told("worker")
}
