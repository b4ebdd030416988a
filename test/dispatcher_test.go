package test

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
)

// dispatch starts one more dispatcher, which calls workers over the gateway at
// url ("" = the platform's own). It ends with the test.
func (f *farm) dispatch(url string) (base string, cmd *exec.Cmd) {
	f.t.Helper()
	// The token alone: the URL holds the password.
	return f.run("dispatcher", url, "farmhand-token")
}

// run starts one more process of a function, with secrets of the state folder. It
// ends with the test.
func (f *farm) run(function, url string, secrets ...string) (base string, cmd *exec.Cmd) {
	f.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // it only found a free port
	folder := f.file(function + "-secrets")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		f.t.Fatal(err)
	}
	for _, name := range secrets {
		from := "credentials"
		if name == "farmhand-token" {
			from = "secrets"
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(f.read(filepath.Join(from, name))), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	log, err := os.OpenFile(filepath.Join(f.state, "logs", function+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	cmd = exec.Command(filepath.Join(bin, "functions", function))
	cmd.Env = []string{"HOME=" + f.state, "farmhand_listen=" + address, "secret_mount_path=" + folder, "farmhand_redis_url=" + f.read("redis.url"),
		"farmhand_gateway_url=" + cmp.Or(url, f.url), "farmhand_missing=3s", "write_timeout=65s", "read_timeout=65s"}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	base = "http://" + address
	until(f.t, patience, "the "+function+" is ready", func() bool {
		resp, err := http.Get(base + "/_/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return base, cmd
}

// The dispatcher is killed with tasks in its hands, while two others run. What
// it held lapses and is queued again exactly once each, whoever finds it (P47: 3
// dispatchers stand for 20), nothing stays behind (P48), nobody is charged.
func TestKilledDispatcher(t *testing.T) {
	t.Parallel()
	f := start(t, config{slots: 8})
	gate := f.file("gate")
	hung := f.submit(32, func(int) task { return task{"gate": gate} })
	until(t, patience, "32 tasks run", func() bool { return f.gauges().Live == 32 })
	for range 2 {
		f.dispatch("")
	}
	load := f.submit(300, light)
	f.signal("dispatcher", syscall.SIGKILL)
	f.touch(gate)
	first, second := f.results(hung, 32), f.results(load, 300)
	f.unharmed(first)
	f.unharmed(second)
	f.answered(second)
	if lost, g := losses(first)+losses(second), f.gauges(); lost != g.Lapsed || g.Lapsed != 32 || g.Live != 0 {
		t.Errorf("%d losses, %d leases lapsed, %d live: want 32, 32, 0", lost, g.Lapsed, g.Live)
	}
}

// The dispatcher is killed under load, and so is the one that the platform
// starts in its place.
func TestDispatcherKilledUnderLoad(t *testing.T) {
	t.Parallel()
	f := start(t, config{slots: 2})
	job := f.submit(600, light)
	f.reached(job, 200)
	first := f.signal("dispatcher", syscall.SIGKILL)
	until(t, patience, "it has ended", func() bool { return !alive(first) })
	f.signal("dispatcher", syscall.SIGKILL)
	list := f.results(job, 600)
	f.unharmed(list)
	f.answered(list)
	if g := f.gauges(); losses(list) != g.Lapsed || g.Lapsed == 0 {
		t.Errorf("%d losses, %d leases lapsed", losses(list), g.Lapsed)
	}
}

// A dispatcher is stopped past its leases with eight tasks in its hands and runs
// on when another has done them: what it brings is refused and counted, each
// task is accepted once (P43; a lease is 15 s, the tasks take as long as the
// test wants).
func TestStoppedDispatcher(t *testing.T) {
	t.Parallel()
	f := start(t, config{byHand: true, workers: 8})
	base, first := f.dispatch("")
	stopped := base
	f.connect(base)
	f.ready(8)
	runs, gate := f.file("runs"), f.file("gate")
	job := f.submit(8, func(i int) task {
		return task{"file": runs, "gate": gate, "answer": fmt.Sprint(i)}
	})
	until(t, patience, "all tasks run", func() bool { return len(f.notes(runs)) == 8 })
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	base, _ = f.dispatch("")
	f.connect(base)
	f.touch(gate) // the first runs answer a dispatcher that does not read
	list := f.results(job, 8)
	f.unharmed(list)
	f.answered(list)
	if n := len(f.notes(runs)); losses(list) != 8 || n != 16 {
		t.Errorf("%d losses, %d runs: want 8, 16", losses(list), n)
	}
	before := f.gauges().Refused
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// Its renewal may be told that they are lost before their answers are read.
	until(t, patience, "the late outcomes are refused, or given up", func() bool {
		var v jobapi.FarmView
		return f.ask(stopped, http.MethodGet, "/farms/worker", "", &v) == http.StatusOK && len(v.Running) == 0
	})
	if n := f.gauges().Refused - before; n < 0 || n > 8 {
		t.Errorf("%d outcomes were refused", n)
	}
	again := f.results(job, 8)
	for i := range again {
		if again[i].Finished != list[i].Finished || again[i].State != skeleton.Done {
			t.Errorf("task %d was accepted twice: %+v", i, again[i])
		}
	}
	f.unharmed(f.results(f.submit(100, light), 100))
}
