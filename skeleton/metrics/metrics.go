// Package metrics counts what one dispatcher sees, for Prometheus. The sum over
// all dispatchers is what the farm did.
//
//	farmhand_attempts_total{farm,outcome}   hand-outs of tasks that ended, by how (ledger.Kind)
//	farmhand_busy_answers_total{farm}       calls that met a busy worker; such a call is no attempt
//	farmhand_outcomes_total{farm,outcome}   what became of tasks with that: done, dead, cancelled,
//	                                        waiting or delayed (tried again), refused (an old fence)
//	farmhand_wait_seconds{farm}             histograms of the tasks whose result was accepted:
//	farmhand_service_seconds{farm}          see signal.Times
//	farmhand_sojourn_seconds{farm}
//
// Every series of a farm begins at 0 when the farm is first listed, and is gone
// when the farm is: 67 for each farm.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/signal"
)

// Buckets are the upper bounds of the histograms, in seconds: from a trivial
// task to one that waited for half an hour.
var Buckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

var (
	kinds    = []ledger.Kind{ledger.Success, ledger.Failed, ledger.TimedOut, ledger.Lost, ledger.Rejected, ledger.Released}
	verdicts = []ledger.Verdict{ledger.Verdict(skeleton.Done), ledger.Verdict(skeleton.Dead), ledger.Verdict(skeleton.Cancelled),
		ledger.Verdict(skeleton.Waiting), ledger.Verdict(skeleton.Delayed), ledger.Refused}
)

// Dispatcher counts what a dispatcher does. It is a dispatch.Observer that hands
// everything on to the next, and a prometheus.Collector.
type Dispatcher struct {
	next  dispatch.Observer
	farms func() ([]string, bool)
	now   func() time.Time

	attempts, busy, outcomes *prometheus.CounterVec
	wait, service, sojourn   *prometheus.HistogramVec

	mu    sync.RWMutex
	known map[string]*farm // guarded by mu
}

// farm holds a farm's series, so that nothing is looked up for each task.
type farm struct {
	attempts               map[ledger.Kind]prometheus.Counter
	busy                   prometheus.Counter
	outcomes               map[ledger.Verdict]prometheus.Counter
	wait, service, sojourn prometheus.Observer
}

// New counts for a dispatcher and hands on to next. farms lists the farms there
// are, or says that it does not know; it is asked at each scrape.
func New(next dispatch.Observer, farms func() ([]string, bool)) *Dispatcher {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"farm"}, labels...))
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: Buckets}, []string{"farm"})
	}
	return &Dispatcher{
		next: next, farms: farms, now: time.Now, known: map[string]*farm{},
		attempts: counter("farmhand_attempts_total", "Hand-outs of tasks that ended, by how.", "outcome"),
		busy:     counter("farmhand_busy_answers_total", "Calls that met a busy worker."),
		outcomes: counter("farmhand_outcomes_total", "What became of tasks when a hand-out ended.", "outcome"),
		wait:     histogram("farmhand_wait_seconds", "Time from a task's acceptance to its last hand-over to a worker."),
		service:  histogram("farmhand_service_seconds", "Time from the hand-over to the worker's answer."),
		sojourn:  histogram("farmhand_sojourn_seconds", "Time from a task's acceptance to its accepted result."),
	}
}

// of returns the farm's series; they begin at 0.
func (d *Dispatcher) of(name string) *farm {
	d.mu.RLock()
	f := d.known[name]
	d.mu.RUnlock()
	if f != nil {
		return f
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if f = d.known[name]; f != nil {
		return f
	}
	f = &farm{
		attempts: map[ledger.Kind]prometheus.Counter{}, outcomes: map[ledger.Verdict]prometheus.Counter{},
		busy: d.busy.WithLabelValues(name), wait: d.wait.WithLabelValues(name),
		service: d.service.WithLabelValues(name), sojourn: d.sojourn.WithLabelValues(name),
	}
	for _, k := range kinds {
		f.attempts[k] = d.attempts.WithLabelValues(name, string(k))
	}
	for _, v := range verdicts {
		f.outcomes[v] = d.outcomes.WithLabelValues(name, string(v))
	}
	d.known[name] = f
	return f
}

// Taken implements dispatch.Observer.
func (d *Dispatcher) Taken(farm string, tasks int) { d.next.Taken(farm, tasks) }

// Answered implements dispatch.Observer.
func (d *Dispatcher) Answered(farm string, m skeleton.Meaning, service time.Duration) {
	d.next.Answered(farm, m, service)
	if m == skeleton.IsBusy {
		d.of(farm).busy.Inc()
	}
}

// Settled implements dispatch.Observer.
func (d *Dispatcher) Settled(farm string, outcomes []ledger.Outcome, verdicts []ledger.Verdict, busy int) {
	d.next.Settled(farm, outcomes, verdicts, busy)
	if len(outcomes) == 0 {
		return
	}
	f, now := d.of(farm), d.now()
	for i := range outcomes {
		f.settle(&outcomes[i], verdicts[i], now)
	}
}

func (f *farm) settle(o *ledger.Outcome, v ledger.Verdict, now time.Time) {
	if c := f.attempts[o.Kind]; c != nil {
		c.Inc()
	}
	if c := f.outcomes[v]; c != nil {
		c.Inc()
	}
	if o.Kind == ledger.Success && v == ledger.Verdict(skeleton.Done) {
		wait, service, sojourn := signal.Times(o, now)
		f.wait.Observe(max(0, wait.Seconds())) // clocks may be set
		f.service.Observe(max(0, service.Seconds()))
		f.sojourn.Observe(max(0, sojourn.Seconds()))
	}
}

func (d *Dispatcher) vecs() []prometheus.Collector {
	return []prometheus.Collector{d.attempts, d.busy, d.outcomes, d.wait, d.service, d.sojourn}
}

// Describe implements prometheus.Collector.
func (d *Dispatcher) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range d.vecs() {
		v.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (d *Dispatcher) Collect(ch chan<- prometheus.Metric) {
	if farms, ok := d.farms(); ok {
		d.keep(farms)
	}
	for _, v := range d.vecs() {
		v.Collect(ch)
	}
}

// keep begins the series of farms that are new and drops those of farms that are
// gone.
func (d *Dispatcher) keep(farms []string) {
	listed := make(map[string]bool, len(farms))
	for _, name := range farms {
		listed[name] = true
		d.of(name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.known {
		if listed[name] {
			continue
		}
		delete(d.known, name)
		labels := prometheus.Labels{"farm": name}
		for _, v := range []*prometheus.CounterVec{d.attempts, d.busy, d.outcomes} {
			v.DeletePartialMatch(labels)
		}
		for _, v := range []*prometheus.HistogramVec{d.wait, d.service, d.sojourn} {
			v.DeletePartialMatch(labels)
		}
	}
}
