package test

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"farmhand/platform"
)

// The whole platform is killed under load: no process is left of it but what
// ends by itself, and the next start on the same state brings functions and jobs
// back, which end as if nothing had been. Redis is the test's own and lives on;
// the platform's own may lose its last moments (docs/ARCHITECTURE.md).
func TestKilledPlatform(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	job := f.submit(400, light)
	f.reached(job, 100)
	info, err := platform.Running(f.state)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(info.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, patience, "no process is left", func() bool { return len(f.processes("")) == 0 })
	f.up()
	f.connect(f.url + "/function/dispatcher")
	f.ready(4)
	list := f.results(job, 400)
	f.unharmed(list)
	f.answered(list)
}

// The platform goes down with tasks queued and running, and comes up again:
// tasks that ran were finished or given back, none is lost or charged, and
// nothing runs in between (P58).
func TestDownAndUp(t *testing.T) {
	t.Parallel()
	f := start(t, config{})
	job := f.submit(400, light)
	f.reached(job, 100)
	if out, err := exec.Command(filepath.Join(bin, "farmhand"), "down", "--state", f.state).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left := f.processes(""); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	f.up()
	f.connect(f.url + "/function/dispatcher")
	f.ready(4)
	list := f.results(job, 400)
	f.unharmed(list)
	f.answered(list)
	if n := losses(list); n > 0 {
		t.Errorf("%d runs were lost in an orderly end", n)
	}
}
