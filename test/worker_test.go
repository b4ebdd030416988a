package test

import (
	"fmt"
	"syscall"
	"testing"
)

// Workers are killed again and again while they work: nothing is lost, nothing
// is accepted twice, no attempt is charged (P46, P61).
func TestKilledWorkers(t *testing.T) {
	t.Parallel()
	f := start(t, config{})
	job := f.submit(400, light)
	for i := range 5 {
		f.reached(job, 60*(i+1))
		f.signal("worker", syscall.SIGKILL)
	}
	list := f.results(job, 400)
	f.unharmed(list)
	f.answered(list)
	t.Logf("%d runs were lost with their workers", losses(list))
}

// A healthy task whose worker is killed five times completes, and none of its
// attempts is used up (P68: budget 3).
func TestHealthyTaskSurvivesFiveKills(t *testing.T) {
	t.Parallel()
	f := start(t, config{workers: 7})
	runs, gate := f.file("runs"), f.file("gate")
	job := f.submit(100, func(i int) task {
		if i == 0 {
			return task{"file": runs, "gate": gate}
		}
		return light(i)
	}, "attempts", "3")
	for i := range 5 {
		until(t, patience, fmt.Sprintf("run %d of the task", i+1), func() bool { return len(f.notes(runs)) > i })
		if err := syscall.Kill(f.notes(runs)[i], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	f.touch(gate)
	list := f.results(job, 100)
	f.unharmed(list)
	if n := len(f.notes(runs)); list[0].Lost != 5 || n != 6 {
		t.Errorf("lost %d runs of %d, want 5 of 6", list[0].Lost, n)
	}
}
