package metrics_test

import (
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"farmhand/internal/promserve"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/metrics"
	"farmhand/skeleton/signal"
)

// listed are the farms there are; a test changes them.
type listed struct {
	farms []string
	known bool
}

func (l *listed) list() ([]string, bool) { return l.farms, l.known }

func start(t testing.TB, farms ...string) (*metrics.Dispatcher, *listed, *prometheus.Registry) {
	t.Helper()
	l := &listed{farms: farms, known: true}
	d := metrics.New(signal.NewRecorder(time.Now), l.list)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(d)
	return d, l, r
}

// scrape reads the series of a farm, by name and further label.
func scrape(t *testing.T, r prometheus.Gatherer, farm string) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	promserve.Handler(r, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	series := map[string]float64{}
	label := fmt.Sprintf(`{farm="%s"`, farm)
	for line := range strings.Lines(w.Body.String()) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.Contains(name, label) {
			continue
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		series[strings.Replace(strings.Replace(name, label+",", "{", 1), label+"}", "", 1)] = x
	}
	return series
}

// done is a task that waited 0.3 s in the queue and 0.1 s for a worker, which took
// 0.2 s.
func done() ledger.Outcome {
	accepted := time.Unix(1_800_000_000, 0)
	return ledger.Outcome{Kind: ledger.Success, Service: 200 * time.Millisecond, Waited: 100 * time.Millisecond,
		Lease: ledger.Lease{Task: skeleton.Task{Accepted: accepted}, Taken: accepted.Add(300 * time.Millisecond)}}
}

func TestCounts(t *testing.T) {
	d, _, r := start(t, "thumbnail")
	d.Settled("thumbnail", []ledger.Outcome{done(), {Kind: ledger.Failed}, {Kind: ledger.TimedOut}, {Kind: ledger.Lost}, {Kind: ledger.Rejected}, done()},
		[]ledger.Verdict{"done", "delayed", "dead", "waiting", "cancelled", ledger.Refused}, 3)
	d.Answered("thumbnail", skeleton.IsBusy, time.Second)
	d.Answered("thumbnail", skeleton.IsResult, time.Second)
	got := scrape(t, r, "thumbnail")
	for name, want := range map[string]float64{
		`farmhand_attempts_total{outcome="done"}`: 2, `farmhand_attempts_total{outcome="failed"}`: 1, `farmhand_attempts_total{outcome="timeout"}`: 1,
		`farmhand_attempts_total{outcome="lost"}`: 1, `farmhand_attempts_total{outcome="rejected"}`: 1, `farmhand_attempts_total{outcome="released"}`: 0,
		`farmhand_outcomes_total{outcome="done"}`: 1, `farmhand_outcomes_total{outcome="dead"}`: 1, `farmhand_outcomes_total{outcome="cancelled"}`: 1,
		`farmhand_outcomes_total{outcome="waiting"}`: 1, `farmhand_outcomes_total{outcome="delayed"}`: 1, `farmhand_outcomes_total{outcome="refused"}`: 1,
		"farmhand_busy_answers_total": 1,
		// A refused result counts in no histogram: the task's own is yet to come.
		"farmhand_wait_seconds_count": 1, "farmhand_service_seconds_count": 1, "farmhand_sojourn_seconds_count": 1,
		`farmhand_wait_seconds_bucket{le="0.25"}`: 0, `farmhand_wait_seconds_bucket{le="0.5"}`: 1, `farmhand_service_seconds_bucket{le="0.25"}`: 1,
		`farmhand_sojourn_seconds_bucket{le="0.5"}`: 0, `farmhand_sojourn_seconds_bucket{le="+Inf"}`: 1,
		"farmhand_wait_seconds_sum": 0.4, "farmhand_service_seconds_sum": 0.2, "farmhand_sojourn_seconds_sum": 0.6,
	} {
		if x, ok := got[name]; !ok || math.Abs(x-want) > 1e-9 {
			t.Errorf("%s: %g, %v, want %g", name, x, ok, want)
		}
	}
}

// A farm's series begin at 0 before anything happens, and are gone when the farm
// is; while nobody knows which farms there are, all stay.
func TestFarmsComeAndGo(t *testing.T) {
	d, l, r := start(t, "thumbnail")
	quiet := scrape(t, r, "thumbnail")
	if _, ok := quiet["farmhand_busy_answers_total"]; !ok || len(quiet) > 67 {
		t.Errorf("a quiet farm has %d series", len(quiet))
	}
	for name, x := range quiet {
		if x != 0 {
			t.Errorf("%s begins at %g", name, x)
		}
	}
	l.farms = append(l.farms, "montecarlo")
	if n := len(scrape(t, r, "montecarlo")); n != len(quiet) {
		t.Errorf("the second farm has %d series, the first %d", n, len(quiet))
	}
	d.Settled("thumbnail", []ledger.Outcome{done()}, []ledger.Verdict{"done"}, 0)
	l.farms, l.known = nil, false
	if x := scrape(t, r, "thumbnail")["farmhand_wait_seconds_count"]; x != 1 {
		t.Errorf("while the farms are unknown, %g tasks are told of", x)
	}
	l.farms, l.known = []string{"montecarlo"}, true
	if n := len(scrape(t, r, "thumbnail")); n != 0 {
		t.Errorf("of a farm that is gone, %d series are left", n)
	}
	l.farms = []string{"thumbnail"}
	if x, ok := scrape(t, r, "thumbnail")["farmhand_wait_seconds_count"]; x != 0 || !ok {
		t.Errorf("a farm that comes back begins with %g, %v", x, ok)
	}
}

// The observer hands everything on: signals are counted as without it.
func TestHandsOn(t *testing.T) {
	next := signal.NewRecorder(time.Now)
	d := metrics.New(next, func() ([]string, bool) { return nil, false })
	d.Taken("thumbnail", 7)
	d.Answered("thumbnail", skeleton.IsBusy, 0)
	d.Settled("thumbnail", []ledger.Outcome{done()}, []ledger.Verdict{"done"}, 0)
	tally := next.Drain().Of("thumbnail")
	if tally.Starts != 7 || tally.Busy != 1 || tally.Sojourn.N != 1 {
		t.Errorf("got %+v", tally)
	}
}

// What metrics cost a dispatcher, in batches of an exchange: beside the recorder
// of signals, which is there anyhow.
func BenchmarkSettled(b *testing.B) {
	outcomes, verdicts := make([]ledger.Outcome, 100), make([]ledger.Verdict, 100)
	for i := range outcomes {
		outcomes[i], verdicts[i] = done(), "done"
	}
	recorder := signal.NewRecorder(time.Now)
	d := metrics.New(recorder, func() ([]string, bool) { return nil, false })
	for name, o := range map[string]interface {
		Settled(string, []ledger.Outcome, []ledger.Verdict, int)
	}{"signals": recorder, "signals and metrics": d} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				o.Settled("thumbnail", outcomes, verdicts, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(outcomes)), "ns/task")
		})
	}
}
