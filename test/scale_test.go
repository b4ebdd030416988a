package test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"farmhand/platform"
	"farmhand/skeleton"
)

// scale asks for n workers; the rest is the platform's.
func (f *farm) scale(n int) {
	f.t.Helper()
	if err := f.gateway.Scale(f.t.Context(), "worker", n); err != nil {
		f.t.Fatal(err)
	}
}

// A worker function is deleted with ten tasks queued: they become dead letters
// that say so, and when the function is back they can be redriven (P54; 3 s of
// absence stand for 30).
func TestDeletedWorker(t *testing.T) {
	t.Parallel()
	f := start(t, config{})
	f.unharmed(f.results(f.submit(100, light), 100))
	f.scale(0)
	f.ready(0)
	job := f.submit(10, light)
	if err := f.gateway.Delete(t.Context(), "worker"); err != nil {
		t.Fatal(err)
	}
	if v := f.ended(job); v.Dead != 10 {
		t.Errorf("%+v", v)
	}
	for _, r := range f.results(job, 10) {
		if r.State != skeleton.Dead || r.Reason != "worker deleted" {
			t.Errorf("%+v", r)
		}
	}
	list, err := f.client.Dead(t.Context(), "worker", "", 100)
	if err != nil || len(list.Dead) != 10 || list.Dead[0].Reason != "worker deleted" {
		t.Errorf("dead letters: %+v, %v", list, err)
	}
	if err := f.gateway.Deploy(t.Context(), f.deployment()); err != nil {
		t.Fatal(err)
	}
	f.ready(4)
	if n, err := f.client.Redrive(t.Context(), "worker", nil); err != nil || n != 10 {
		t.Fatalf("redriven: %d, %v", n, err)
	}
	if v := f.ended(job); v.Done != 10 || v.Dead != 0 {
		t.Errorf("%+v", v)
	}
	done := map[int]int{}
	for _, r := range f.kept(job) {
		if r.State == skeleton.Done {
			done[r.Index]++
		}
	}
	for i := range 10 {
		if done[i] != 1 {
			t.Errorf("task %d is done %d times", i, done[i])
		}
	}
	f.sound()
}

// Three of four workers are scaled away while each has a long task: they finish
// it, however long it takes (P55), are seen as draining meanwhile (P56), get
// nothing new (P57) and then end (P58). What is queued starts as slots become
// free; nothing is stranded with them (P60). 1,000 tasks are 200 here.
func TestScaleDown(t *testing.T) {
	t.Parallel()
	f := start(t, config{slots: 2})
	runs, after, gate := f.file("runs"), f.file("after"), f.file("gate")
	long := f.submit(4, func(int) task { return task{"file": runs, "gate": gate} })
	until(t, patience, "the long tasks run", func() bool { return len(f.notes(runs)) == 4 })
	f.scale(1)
	load := f.submit(200, func(i int) task { return task{"file": after, "sleep": "30ms", "answer": fmt.Sprint(i)} })
	f.ready(1)
	if n := f.draining(); n != 3 {
		t.Errorf("%d workers are draining, want 3", n)
	}
	until(t, patience, "the farm shows its four running tasks, and no others", func() bool {
		v, err := f.client.Farm(t.Context(), "worker")
		return err == nil && v.Queue.Live == 4 && len(v.Running) == 4
	})
	f.touch(gate)
	list := f.results(long, 4)
	f.unharmed(list)
	if losses(list) > 0 || len(f.notes(runs)) != 4 {
		t.Errorf("%d losses, %d runs", losses(list), len(f.notes(runs)))
	}
	until(t, patience, "the drained workers have ended", func() bool { return f.draining() == 0 && len(f.processes("worker")) == 1 })
	list = f.results(load, 200)
	f.unharmed(list)
	f.answered(list)
	stays := f.processes("worker")[0]
	for _, pid := range f.notes(after) {
		if pid != stays {
			t.Fatalf("a task went to process %d, which was to end; %d stays", pid, stays)
		}
	}
}

// draining counts the workers that shall end.
func (f *farm) draining() (n int) {
	f.t.Helper()
	info, err := platform.Running(f.state)
	if err != nil {
		f.t.Fatal(err)
	}
	details, err := platform.Functions(context.Background(), info)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, d := range details {
		for _, in := range d.Instances {
			if d.Name == "worker" && in.State == "draining" {
				n++
			}
		}
	}
	return n
}

// The only worker is busy with a long task when three short ones arrive. They
// are not bound to it: as soon as there are more workers they run there (P08,
// P09; the cold start is not injected).
func TestNewWorkersTakeWhatWaits(t *testing.T) {
	t.Parallel()
	f := start(t, config{workers: 1})
	runs, gate := f.file("runs"), f.file("gate")
	long := f.submit(1, func(int) task { return task{"file": runs, "gate": gate} })
	until(t, patience, "the long task runs", func() bool { return len(f.notes(runs)) == 1 })
	short := f.submit(3, light)
	begun := time.Now()
	f.scale(4)
	list := f.results(short, 3)
	if d := time.Since(begun); d > 10*time.Second {
		t.Errorf("they waited %s for workers that start at once", d)
	}
	f.unharmed(list)
	f.touch(gate)
	f.unharmed(f.results(long, 1))
}

// Workers go to zero and come back again and again while tasks arrive: whatever
// the moment, none is lost and none is charged (P16: 50 tries).
func TestAroundZero(t *testing.T) {
	t.Parallel()
	f := start(t, config{workers: 2})
	var jobs []string
	for i := range 50 {
		f.scale(2 * (i % 2))
		jobs = append(jobs, f.submit(4, light))
		if i%10 == 9 { // let the farm see it, and some of them run
			f.ready(2)
			f.reached(jobs[i-1], 1)
		}
	}
	for _, job := range jobs {
		list := f.results(job, 4)
		f.unharmed(list)
		f.answered(list)
	}
}
