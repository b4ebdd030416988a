package platform_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"

	"farmhand/platform"
)

// scheduled is a deployment that the clock calls; what it sees comes to told,
// and it answers when it may.
func scheduled(t *testing.T, schedule string) (d types.FunctionDeployment, told chan string, may chan int) {
	told, may = make(chan string, 9), make(chan int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told <- r.URL.Query().Get("call")
		select {
		case status := <-may:
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	d = function("tick", "tell_url", s.URL)
	(*d.Annotations)["topic"], (*d.Annotations)["schedule"] = "cron-function", schedule
	return d, told, may
}

func onClock(t *testing.T, change ...func(*platformConfig)) (*bench, *platform.FakeClock) {
	clock := platform.NewFakeClock(time.Date(2026, 3, 4, 12, 0, 30, 0, time.UTC))
	return start(t, append(change, clock.Use)...), clock
}

// A function is called at its times, as any other call: counted, by POST, with
// nothing in it; and the status says when next.
func TestCron(t *testing.T) {
	b, clock := onClock(t)
	d, told, may := scheduled(t, "*/5 * * * *")
	b.deploy(d)
	receive(t, "it is planned", clock.Asked)
	at := func(minute int) time.Time { return time.Date(2026, 3, 4, 12, minute, 0, 0, time.UTC) }
	if s := b.detail("tick").Schedule; s == nil || s.Schedule != "*/5 * * * *" || !s.NextRun.Equal(at(5)) || s.Running || s.LastStatus != 0 {
		t.Fatalf("%+v", s)
	}
	clock.Set(at(5))
	if call := receive(t, "it is called", told); call != "POST / 0 bytes from farmhand-cron/dev" {
		t.Errorf("called by %s", call)
	}
	if s := b.detail("tick").Schedule; !s.Running || !s.LastRun.Equal(at(5)) || !s.NextRun.Equal(at(10)) {
		t.Errorf("%+v", s)
	}
	may <- 202
	until(t, "the run is over", func() bool { return !b.detail("tick").Schedule.Running })
	if s := b.detail("tick").Schedule; s.LastStatus != 202 || s.Skipped != 0 {
		t.Errorf("%+v", s)
	}
	if list, err := b.client.GetFunctions(t.Context(), ""); err != nil || list[0].InvocationCount != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	// Without the annotation it is called no more.
	delete(*d.Annotations, "topic")
	b.deploy(d)
	if s := b.detail("tick").Schedule; s != nil {
		t.Errorf("%+v", s)
	}
	clock.Set(at(59))
	if a := b.system("DELETE", "/system/functions", `{"functionName":"tick"}`); a.status != 202 || len(told) != 0 {
		t.Errorf("%+v, %d calls", a, len(told))
	}
}

// An asynchronous run is over once it is queued, so the next comes although the
// call goes on.
func TestCronAsync(t *testing.T) {
	b, clock := onClock(t)
	d, told, may := scheduled(t, "@every 1m")
	(*d.Annotations)["async"] = "true"
	b.deploy(d)
	receive(t, "it is planned", clock.Asked)
	for range 2 {
		clock.Set(clock.Now().Add(time.Minute))
		if call := receive(t, "it is called", told); call != "POST / 0 bytes from openfaas-ce/nats-queue-worker" {
			t.Errorf("called by %s", call)
		}
		until(t, "the run is over", func() bool { return !b.detail("tick").Schedule.Running })
	}
	if s := b.detail("tick").Schedule; !s.Async || s.LastStatus != 202 || s.Skipped != 0 {
		t.Errorf("%+v", s)
	}
	if calls, err := platform.Async(t.Context(), b.Info()); err != nil || *calls != (platform.AsyncCalls{Running: 2, AtOnce: 10}) {
		t.Errorf("%+v, %v", calls, err)
	}
	for range 2 {
		may <- 200
	}
	none := start(t, func(c *platformConfig) { c.NATSListen = "none" })
	if a := none.system("POST", "/system/functions", deployment(d)); a.status != 400 || !strings.Contains(a.body, "--nats-listen") {
		t.Errorf("without a broker: %+v", a)
	}
	if calls, err := platform.Async(t.Context(), none.Info()); err != nil || calls != nil {
		t.Errorf("%+v, %v", calls, err)
	}
}

func TestCronRefused(t *testing.T) {
	b := start(t)
	for schedule, text := range map[string]string{"0 * * * * *": "leave out the seconds", "@hourly; @daily": "without ;", "*/0 * * * *": "positive"} {
		d := function("tick")
		(*d.Annotations)["topic"], (*d.Annotations)["schedule"] = "cron-function", schedule
		code, err := b.client.Deploy(t.Context(), d)
		if code != 400 || err == nil || !strings.Contains(err.Error(), "annotation schedule") || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "@every 30s") {
			t.Errorf("%s: %d %v", schedule, code, err)
		}
	}
}

// A run under way ends as other calls do when the platform stops; then nothing
// is called any more, and the next start goes on with the plan.
func TestCronStops(t *testing.T) {
	var said log
	b, clock := onClock(t, func(c *platformConfig) { c.Log = said.logger() })
	d, told, may := scheduled(t, "@every 1m")
	b.deploy(d)
	receive(t, "it is planned", clock.Asked)
	clock.Set(clock.Now().Add(time.Minute))
	receive(t, "it is called", told)
	receive(t, "the next is planned", clock.Asked)
	stopping, stopped := b.Changed("tick"), make(chan struct{})
	go func() {
		defer close(stopped)
		b.stop()
	}()
	receive(t, "the function is closed", stopping)
	may <- 200
	receive(t, "it has stopped", stopped)
	if !strings.Contains(said.String(), `msg="scheduled run" function=tick status=200`) {
		t.Errorf("said: %s", said.String())
	}
	clock.Set(clock.Now().Add(time.Hour))

	again := start(t, func(c *platformConfig) { c.State, c.Log = b.config.State, said.logger() }, clock.Use)
	if s := again.detail("tick").Schedule; s == nil || s.NextRun.Sub(clock.Now()) != time.Minute || len(told) != 0 {
		t.Errorf("%+v, %d calls", s, len(told))
	}
	again.ready("tick")
	clock.Set(clock.Now().Add(time.Minute))
	receive(t, "it is called again", told)
	may <- 500
	until(t, "the run is over", func() bool { return !again.detail("tick").Schedule.Running })
	if !strings.Contains(said.String(), `msg="a scheduled run failed" function=tick status=500`) {
		t.Errorf("said: %s", said.String())
	}
}

// The key of the schedule is there only for functions that have one.
func TestScheduleInStatus(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	var m map[string]any
	if err := json.Unmarshal([]byte(b.system("GET", "/system/function/echo?usage=1", "").body), &m); err != nil || m["schedule"] != nil {
		t.Errorf("%v, %v", m, err)
	}
}
