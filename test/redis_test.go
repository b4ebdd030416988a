package test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"farmhand/internal/problem"
	"farmhand/internal/redisproc"
	"farmhand/internal/redistest"
	"farmhand/skeleton/jobapi/jobclient"
)

// onRedis starts a farm on a redis-server of the test's own. It syncs every
// write: with everysec a kill may lose what was acknowledged while an fsync was
// under way (docs/ARCHITECTURE.md).
func onRedis(t *testing.T) (*farm, *redisproc.Server) {
	t.Helper()
	server := redistest.Start(t, "appendfsync always")
	return start(t, config{redis: "redis://" + server.Addr + "/0"}), server
}

// Redis is killed three times under load and comes back after a while: nothing
// that was acknowledged is lost, nothing is accepted twice, nobody is charged.
func TestKilledRedis(t *testing.T) {
	t.Parallel()
	f, server := onRedis(t)
	job := f.submit(500, light)
	for i := range 3 {
		f.reached(job, 120*(i+1))
		server.Kill()
		if i == 2 { // away for so long that the dispatcher has to wait for it
			f.refused()
		}
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
	}
	list := f.results(job, 500)
	f.unharmed(list)
	f.answered(list)
}

// refused expects that a submission is refused with 503 and a time to try again.
func (f *farm) refused() {
	f.t.Helper()
	once, err := jobclient.New(f.url+"/function/dispatcher", f.read("secrets/farmhand-token"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer once.Close()
	once.Patience = time.Nanosecond // else the client tries again, as it should
	_, err = once.Submit(f.t.Context(), f.options(nil), piece(f, 10, light))
	var p *problem.Problem
	if !errors.As(err, &p) || p.Status != http.StatusServiceUnavailable || p.Retry == 0 {
		f.t.Errorf("a submission: %v", err)
	}
}

// Redis has no memory left: submissions are refused with 503, running tasks keep
// their results, and when there is memory again everything goes on.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	job := f.submit(400, light)
	f.reached(job, 100)
	f.set("maxmemory", "1")
	f.refused()
	done := f.gauges().Done
	f.set("maxmemory", "0")
	list := f.results(job, 400)
	f.unharmed(list)
	f.answered(list)
	if done >= 400 {
		t.Error("the job ended while Redis was full")
	}
	f.unharmed(f.results(f.submit(50, light), 50))
	if g := f.gauges(); g.Submitted != 450 {
		t.Errorf("%d tasks were accepted, want 450", g.Submitted)
	}
}

func (f *farm) set(name, value string) {
	f.t.Helper()
	if err := f.rdb.ConfigSet(context.Background(), name, value).Err(); err != nil {
		f.t.Fatal(err)
	}
}

// Redis takes no writes, as a replica whose master is away: the same.
func TestReadOnlyRedis(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	job := f.submit(400, light)
	f.reached(job, 100)
	if err := f.rdb.SlaveOf(context.Background(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	f.refused()
	if err := f.rdb.SlaveOf(context.Background(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	list := f.results(job, 400)
	f.unharmed(list)
	f.answered(list)
	f.unharmed(f.results(f.submit(50, light), 50))
	if g := f.gauges(); g.Submitted != 450 {
		t.Errorf("%d tasks were accepted, want 450", g.Submitted)
	}
}
