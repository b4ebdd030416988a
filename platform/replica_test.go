package platform_test

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"farmhand/platform"
)

// A server that cannot share the kept port gets one of its own at the second
// try; one that knows nothing of readiness is ready when it answers.
func TestForeignServer(t *testing.T) {
	b := start(t)
	b.deploy(function("echo", "no_reuse", "1", "no_ready", "1"))
	if a := b.call("echo/pid"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

// A replica that is scaled down finishes its call, though its process would end
// at once on SIGTERM, and gets no other.
func TestDrain(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	b.scale("echo", 2)
	b.ready("echo")
	g := newGate(t)
	one, two := b.later("echo/"+g.path()), b.later("echo/"+g.path())
	g.begun(2)
	b.scale("echo", 1)
	d := b.detail("echo")
	count := map[string]int{}
	victim := 0
	for _, in := range d.Instances {
		count[in.State]++
		if in.State == "draining" {
			victim = in.Pid
		}
	}
	if count["draining"] != 1 || count["ready"] != 1 || d.AvailableReplicas != 1 || d.Instances[1].Pid != victim {
		t.Errorf("after the scale-down: %+v", d.Instances)
	}
	for range 20 {
		if pid := b.echoed(b.call("echo")).Pid; pid == victim {
			t.Fatal("a draining replica got a call")
		}
	}
	g.open()
	if x, y := <-one, <-two; x.status != 200 || y.status != 200 {
		t.Errorf("%+v, %+v", x, y)
	}
	b.ready("echo")
	if alive(victim) {
		t.Error("the drained process still runs")
	}
}

// The idle replica goes, not the busy one, and of idle ones the newest.
func TestVictim(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	first := b.detail("echo").Instances[0].Pid
	g := newGate(t)
	busy := b.later("echo/" + g.path())
	g.begun(1)
	b.scale("echo", 2)
	b.ready("echo")
	second := b.detail("echo").Instances[1].Pid
	b.scale("echo", 1)
	gone(t, second)
	g.open()
	if a := <-busy; a.status != 200 || a.body != strconv.Itoa(first) {
		t.Errorf("%+v", a)
	}
}

// A replica that is scaled down is left alone while it has a call, for its time
// to drain; then it is asked to end, and after as long and a second it is killed.
func TestStubbornProcessIsKilled(t *testing.T) {
	const drain = 200 * time.Millisecond
	b := start(t)
	g := newGate(t)
	b.deploy(function("echo", "term_url", g.url+"/term", "write_timeout", drain.String(), "exec_timeout", "0"))
	pid := b.detail("echo").Instances[0].Pid
	held := b.later("echo/" + g.path())
	g.begun(1)
	begun := time.Now()
	b.scale("echo", 0)
	receive(t, "it gets SIGTERM", g.term)
	if d := time.Since(begun); d < drain {
		t.Errorf("SIGTERM after %s, while it had a call and time to drain", d)
	}
	gone(t, pid)
	if d := time.Since(begun); d < 2*drain+time.Second {
		t.Errorf("killed after %s", d)
	}
	if a := <-held; a.status != 502 {
		t.Errorf("%+v", a)
	}
}

// The children of a function's process go with it.
func TestWholeGroupEnds(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	child, err := strconv.Atoi(b.call("echo/spawn").body)
	if err != nil {
		t.Fatal(err)
	}
	b.scale("echo", 0)
	gone(t, child)
}

// A call on a replica that is killed is an empty 502 that does not claim to be
// of the platform; a replacement starts.
func TestKilledReplica(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	pid := b.detail("echo").Instances[0].Pid
	g := newGate(t)
	held := b.later("echo/" + g.path())
	g.begun(1)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if a := <-held; a.status != 502 || a.body != "" || a.header.Get("X-OpenFaaS-Internal") != "" {
		t.Errorf("%+v", a)
	}
	if e := b.echoed(b.call("echo")); e.Pid == pid { // held until the next is ready
		t.Error("answered by the dead")
	}
}

func TestCrashes(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	if a := b.call("echo/crash"); a.status != 502 || a.body != "" {
		t.Errorf("%+v", a)
	}
	if a := b.call("echo"); a.status != 200 { // held until the next replica is ready
		t.Errorf("%+v", a)
	}
	// Half an answer is broken off, so that nobody takes it for a whole one.
	if a := b.call("echo/partial"); a.status != 200 || a.err == nil {
		t.Errorf("%+v", a)
	}
	b.ready("echo")
}

// A program that fails at start is tried less and less often, one replica at a
// time, and calls do not wait for it for ever.
func TestFailingStart(t *testing.T) {
	b := start(t)
	d := function("echo", "fail_start", "1")
	(*d.Labels)["com.openfaas.scale.min"] = "5"
	if a := b.system("POST", "/system/functions", deployment(d)); a.status != 202 {
		t.Fatal(a)
	}
	if a := b.call("echo"); a.status != 503 || a.header.Get("X-OpenFaaS-Internal") != "proxy" || a.header.Get("X-Call-Id") == "" {
		t.Errorf("%+v", a)
	}
	b.await("echo", "one replica at a time is tried", func(d platform.Detail) bool { return len(d.Instances) <= 1 })
	for range 20 { // and it stays so
		if n := len(b.detail("echo").Instances); n > 1 {
			t.Fatalf("%d replicas are tried at a time", n)
		}
	}
	// A better version starts at once.
	b.deploy(function("echo"))
	if a := b.call("echo"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}
