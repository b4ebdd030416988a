package platform_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// While the broker is away calls are refused; then everything goes on by itself.
// What the broker sends before the worker is back, it sends again after ack_wait.
func TestAsyncBrokerAway(t *testing.T) {
	b, r := start(t, allowLocal, func(c *platformConfig) { c.AckWait = time.Second }), newReceiver(t)
	b.deploy(function("echo"))
	b.StopBroker()
	if a := b.queue("echo", ""); a.status != 500 || !strings.HasPrefix(a.body, "Error queuing request: ") {
		t.Errorf("%+v", a)
	}
	if err := b.StartBroker(); err != nil {
		t.Fatal(err)
	}
	until(t, "calls are taken again", func() bool { return b.queue("echo", "", "X-Callback-Url", r.url).status == 202 })
	receive(t, "and made", r.got)
}

// Calls that were accepted are made although the platform is killed, those that
// were under way once more.
func TestAsyncSurvivesKill(t *testing.T) {
	r, g := newReceiver(t), newGate(t)
	c := config(t)
	c.CE, c.CallbackAllow = true, []string{"127.0.0.1"} // one under way, the others wait
	cmd := remote(t, c)
	b := attach(t, running(t, c.State))
	b.deploy(function("echo"))
	ids := map[string]bool{}
	for range 5 {
		ids[b.accepted("echo/"+g.path(), "", "X-Callback-Url", r.url)] = true
	}
	g.begun(1)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	g.open()
	begun := time.Now()
	start(t, allowLocal, func(n *platformConfig) { n.State = c.State })
	for range 5 {
		got := receive(t, "all are told", r.got)
		if id := got.header.Get("X-Call-Id"); !ids[id] || got.header.Get("X-Function-Status") != "200" {
			t.Errorf("told twice, or unknown: %+v", got)
		} else {
			delete(ids, id)
		}
	}
	if d := time.Since(begun); d > 30*time.Second {
		t.Errorf("it took %s: what was under way waited for ack_wait", d)
	}
}

// Calls that wait when the platform is stopped are made by the next one; those
// under way are finished first.
func TestAsyncStop(t *testing.T) {
	b, r, g := start(t, allowLocal, func(c *platformConfig) { c.CE = true }), newReceiver(t), newGate(t)
	b.deploy(function("echo"))
	first := b.accepted("echo/"+g.path(), "", "X-Callback-Url", r.url)
	second := b.accepted("echo", "", "X-Callback-Url", r.url)
	g.begun(1)
	stopped := make(chan error, 1)
	go func() { stopped <- b.Stop(t.Context()) }()
	until(t, "no more calls are begun", b.AsyncDraining)
	g.open()
	if err := receive(t, "it has stopped", stopped); err != nil {
		t.Fatal(err)
	}
	if c := receive(t, "the first is told", r.got); c.header.Get("X-Call-Id") != first || c.header.Get("X-Function-Status") != "200" {
		t.Errorf("%+v", c)
	}
	if len(r.got) != 0 {
		t.Error("the second was made although the platform stops")
	}
	start(t, allowLocal, func(c *platformConfig) { c.State = b.config.State })
	if c := receive(t, "the second is told", r.got); c.header.Get("X-Call-Id") != second {
		t.Errorf("%+v", c)
	}
}

// The broker tells what waits: nothing, before anything was published and when all
// was made; else each call that nobody got, or that was not finished.
func TestAsyncWaiting(t *testing.T) {
	b, g, r := start(t, allowLocal, func(c *platformConfig) { c.CE = true }), newGate(t), newReceiver(t)
	b.deploy(function("echo"))
	waits := func(want int) {
		t.Helper()
		if calls, bytes, err := b.WaitingAtBroker(); err != nil || calls != want || (bytes > 0) != (want > 0) {
			t.Errorf("%d calls, %d bytes, %v; want %d calls", calls, bytes, err, want)
		}
	}
	waits(0)
	for range 3 {
		b.accepted("echo/"+g.path(), "", "X-Callback-Url", r.url)
	}
	g.begun(1)
	waits(3)
	g.open()
	for range 3 {
		receive(t, "all are told", r.got)
	}
	until(t, "nothing waits", func() bool { calls, _, err := b.WaitingAtBroker(); return calls == 0 && err == nil })
}

// A write of the broker that was cut off costs nothing that was acknowledged
// before it, also twice in a row.
func TestAsyncTornWrite(t *testing.T) {
	b := start(t, func(c *platformConfig) { c.CE = true })
	g := newGate(t)
	b.deploy(function("echo"))
	b.accepted("echo/"+g.path(), "")
	g.begun(1)
	r := newReceiver(t)
	b.accepted("echo", "kept", "X-Callback-Url", b.URL()+"/function/echo/"+g.path())
	b.accepted("echo", "torn")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Stop(ctx); err != nil { // without patience: the first is not finished
		t.Fatal(err)
	}
	for range 2 {
		files, err := filepath.Glob(filepath.Join(b.config.State, "nats", "faas-request", "msgs.*.dat"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		st, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(files[0], st.Size()-7); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(strings.TrimSuffix(files[0], ".dat") + ".idx"); err != nil {
			t.Fatal(err)
		}
		var said log
		again := start(t, allowLocal, func(c *platformConfig) { c.State, c.CE, c.Log = b.config.State, true, said.logger() })
		if !strings.Contains(said.String(), "was cut off, by a kill") {
			t.Error("nothing is said")
		}
		again.ready("echo")
		g.begun(1)
		again.accepted("echo", "new", "X-Callback-Url", r.url)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := again.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
