package controller_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"farmhand/controller"
	"farmhand/controller/metrics"
	"farmhand/internal/promserve"
	"farmhand/skeleton/ledger"
)

// measured makes a controller whose metrics a test can scrape.
func (w *world) measured(cfg controller.Config) (c *controller.Controller, scrape func() map[string]float64) {
	w.t.Helper()
	m := metrics.New(func() controller.Status { return c.Status() }, time.Now)
	cfg.Looked = m.Looked
	c = w.create(cfg)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	h := promserve.Handler(r, slog.New(slog.DiscardHandler))
	return c, func() map[string]float64 {
		w.t.Helper()
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		if answer.Code != 200 {
			w.t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		series := map[string]float64{}
		for line := range strings.Lines(answer.Body.String()) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if x, err := strconv.ParseFloat(value, 64); err == nil {
				series[strings.TrimPrefix(name, "farmhand_")] = x
			}
		}
		return series
	}
}

// expect compares some series; what has no value must not be there.
func expect(t *testing.T, got map[string]float64, want map[string]any) {
	t.Helper()
	for name, x := range want {
		v, ok := got[name]
		if x == nil && ok || x != nil && fmt.Sprint(v) != fmt.Sprint(x) {
			t.Errorf("%s: %g, %v, want %v", name, v, ok, x)
		}
	}
}

// sum adds all series that begin so.
func sum(series map[string]float64, prefix string) (x float64) {
	for name, v := range series {
		if strings.HasPrefix(name, prefix) {
			x += v
		}
	}
	return x
}

// A farm is scaled up to its most by a load, and its metrics say what happened, as
// its receipts do.
func TestMetricsOfAScaledFarm(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "max", "4", "budget", "100", "deadline", "2s")
		c, scrape := w.measured(w.config("A"))
		expect(t, scrape(), map[string]any{"pulse_age_seconds": "+Inf", `replicas{farm="f",state="desired"}`: nil})
		c.Start()
		w.after(10 * time.Millisecond)
		quiet := scrape()
		expect(t, quiet, map[string]any{
			`tasks{farm="f",state="waiting"}`: 0, `tasks{farm="f",state="leased"}`: 0, `tasks{farm="f",state="done"}`: 0,
			`replicas{farm="f",state="desired"}`: 1, `replicas{farm="f",state="ready"}`: 1, `replicas{farm="f",state="starting"}`: 0,
			`oldest_wait_seconds{farm="f"}`: 0, `lapsed_leases_total{farm="f"}`: 0, `refused_results_total{farm="f"}`: 0,
			`actions_total{farm="f",outcome="up",reason="max"}`: 0, `scale_calls_total{farm="f",outcome="failed"}`: 0,
			`foreign_changes_total{farm="f"}`: 0, `decisions_total{farm="f",policy="staffing"}`: 1, `conditions{farm="f",state="healthy"}`: 1,
		})
		if n := len(quiet); n > 63 {
			t.Errorf("a farm has %d series", n)
		}
		stop := w.stream("f", 3)
		w.after(10 * interval)
		stop()
		w.after(interval + 10*time.Millisecond) // the last call has been told of
		series := scrape()
		var limited, decided float64
		for _, r := range w.log.of(t, "f") {
			decided++
			if r.Outcome.Bound("max") {
				limited++
			}
		}
		calls := w.platform.made()
		expect(t, series, map[string]any{
			`replicas{farm="f",state="desired"}`: 4, `replicas{farm="f",state="ready"}`: 4,
			`decisions_total{farm="f",policy="staffing"}`:            decided,
			`limited_decisions_total{farm="f",reason="max"}`:         limited,
			`actions_total{farm="f",outcome="up",reason="max"}`:      1,
			`scale_calls_total{farm="f",outcome="kept"}`:             len(calls),
			`conditions{farm="f",state="limited"}`:                   1,
			`limited_decisions_total{farm="f",reason="capacity"}`:    0,
			`tasks{farm="f",state="leased"}`:                         4,
			`scale_calls_total{farm="f",outcome="clamped"}`:          0,
			`actions_total{farm="f",outcome="down",reason="policy"}`: 0,
		})
		if limited == 0 || len(calls) == 0 || sum(series, `actions_total{farm="f"`) != float64(len(calls)) {
			t.Errorf("%g limited decisions, %d calls, %g actions", limited, len(calls), sum(series, `actions_total{farm="f"`))
		}
		if used := series[`budget_used_ratio{farm="f"}`]; used <= 0 || used > 0.01 {
			t.Errorf("%g of the budget is used", used)
		}
		if wait := series[`oldest_wait_seconds{farm="f"}`]; wait < 1 {
			t.Errorf("the oldest task has waited %g s", wait)
		}
	})
}

// Calls that the platform clamps or refuses, and changes by somebody else, are told
// apart.
func TestMetricsOfAForeignPlatform(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1, "policy", "static:n=7", "max", "20")
		f.most = 5
		c, scrape := w.measured(w.config("A"))
		c.Start()
		w.after(2*interval + 10*time.Millisecond)
		// It asks a second time before it believes the bound; that changes nothing, so it is no action.
		expect(t, scrape(), map[string]any{`scale_calls_total{farm="f",outcome="clamped"}`: 2, `scale_calls_total{farm="f",outcome="kept"}`: 0,
			`actions_total{farm="f",outcome="up",reason="policy"}`: 1, `decisions_total{farm="f",policy="static"}`: 3})
		w.override(c, "f", "mode", "shadow") // then the rule's decision counts
		w.after(2*interval + 10*time.Millisecond)
		if n := scrape()[`decisions_total{farm="f",policy="staffing"}`]; n < 1 {
			t.Errorf("in shadow mode the rule has made %g decisions", n)
		}
		w.override(c, "f", "mode", "")
		w.platform.set(func() { f.resize(2); f.err = errAway })
		w.after(2*interval + 10*time.Millisecond)
		series := scrape()
		expect(t, series, map[string]any{`foreign_changes_total{farm="f"}`: 1, `actions_total{farm="f",outcome="up",reason="policy"}`: 1})
		if series[`scale_calls_total{farm="f",outcome="failed"}`] == 0 {
			t.Error("no failed call is told of")
		}
	})
}

// While signals are missing their age grows; while Redis is away the farm is left
// out, and only the age of the pulse is told; so is a farm that is removed.
func TestMetricsOfWhatIsUnknown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		w.platform.add("new", 1) // no dispatcher has been heard of
		w.set(func() { w.silent = true })
		c, scrape := w.measured(w.config("A"))
		c.Start()
		w.after(20*time.Second + 10*time.Millisecond)
		series := scrape()
		if age := series[`signal_age_seconds{farm="f"}`]; age < 20 || age > 22 {
			t.Errorf("signals are %g s old", age)
		}
		expect(t, series, map[string]any{`signal_age_seconds{farm="new"}`: "+Inf", `conditions{farm="f",state="healthy"}`: 0})
		w.away(errAway)
		w.after(time.Minute)
		series = scrape()
		if age := series["pulse_age_seconds"]; age < 59 || age > 61 || len(series) != 1 {
			t.Errorf("the last pulse is %g s old; %d series", age, len(series))
		}
		w.away(nil)
		w.after(10 * time.Second)
		w.platform.remove("new")
		w.after(time.Minute)
		expect(t, scrape(), map[string]any{`replicas{farm="f",state="ready"}`: 1, `replicas{farm="new",state="ready"}`: nil})
	})
}

// Each farm is told of by the controller that decides for it alone.
func TestMetricsOfTwoControllers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1)
		a, first := w.measured(w.config("A"))
		a.Start()
		w.after(time.Second)
		b, second := w.measured(w.config("B"))
		b.Start()
		w.after(10 * time.Second)
		expect(t, first(), map[string]any{`replicas{farm="f",state="ready"}`: 1})
		expect(t, second(), map[string]any{`replicas{farm="f",state="ready"}`: nil})
		a.Stop()
		w.after(2 * controller.LeaseTime)
		expect(t, first(), map[string]any{`replicas{farm="f",state="ready"}`: nil})
		expect(t, second(), map[string]any{`replicas{farm="f",state="ready"}`: 1})
	})
}

// A farm whose ledger cannot be read has replicas, and no tasks: not 0 of them.
func TestMetricsWithoutALedger(t *testing.T) {
	m := metrics.New(func() controller.Status { return controller.Status{} }, time.Now)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	count := func(name string) (n int) {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == name {
				n = len(f.GetMetric())
			}
		}
		return n
	}
	m.Looked(controller.Look{Farm: "f", Interval: time.Second, Desired: 3, Ready: 1})
	if count("farmhand_replicas") != 3 || count("farmhand_tasks") != 0 {
		t.Errorf("%d counts of replicas, %d of tasks", count("farmhand_replicas"), count("farmhand_tasks"))
	}
	m.Looked(controller.Look{Farm: "f", Gauges: &ledger.Gauges{}})
	if count("farmhand_tasks") != 6 {
		t.Errorf("%d counts of tasks", count("farmhand_tasks"))
	}
}
