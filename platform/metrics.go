package platform

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are those of an OpenFaaS gateway, under its names.
type metrics struct {
	registry *prometheus.Registry
	started  *prometheus.CounterVec
	total    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(p *Platform) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		started: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_function_invocation_started", Help: "Function invocations begun."}, []string{"function_name"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_function_invocation_total", Help: "Function invocations finished, by status."}, []string{"function_name", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gateway_functions_seconds", Help: "Time of function invocations."}, []string{"function_name", "code"}),
	}
	m.registry.MustRegister(m.started, m.total, m.seconds, &serviceCount{p, prometheus.NewDesc(
		"gateway_service_count", "Wanted replicas.", []string{"function_name"}, nil)})
	return m
}

func (m *metrics) begin(function string) { m.started.WithLabelValues(function).Inc() }

func (m *metrics) finish(function string, status int, d time.Duration) {
	code := strconv.Itoa(status)
	m.total.WithLabelValues(function, code).Inc()
	m.seconds.WithLabelValues(function, code).Observe(d.Seconds())
}

// forget drops what was counted for a deleted function.
func (m *metrics) forget(function string) {
	labels := prometheus.Labels{"function_name": function}
	m.started.DeletePartialMatch(labels)
	m.total.DeletePartialMatch(labels)
	m.seconds.DeletePartialMatch(labels)
}

func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return localOnly(mux)
}

// serviceCount reads the wanted replicas when asked.
type serviceCount struct {
	p    *Platform
	desc *prometheus.Desc
}

func (c *serviceCount) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

func (c *serviceCount) Collect(ch chan<- prometheus.Metric) {
	for _, f := range c.p.list() {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(f.status().Replicas), f.name+"."+Namespace)
	}
}
