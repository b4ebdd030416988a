package platform_test

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"farmhand/platform"
)

// BenchmarkProxy tells what the gateway adds to a call: sequential calls of one
// function over a kept connection, in turn directly and through the gateway.
func BenchmarkProxy(b *testing.B) {
	p := start(b, quiet)
	p.deploy(function("echo", "max_inflight", "4"))
	direct := "http://" + p.echoed(p.call("echo")).Host + "/pid"
	through := p.base + "/function/echo/pid"
	get := func(url string) time.Duration {
		begun := time.Now()
		resp, err := p.http.Post(url, "text/plain", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return time.Since(begun)
	}
	for range 500 {
		get(direct)
		get(through)
	}
	var near, far []time.Duration
	for b.Loop() {
		near = append(near, get(direct))
		far = append(far, get(through))
	}
	slices.Sort(near)
	slices.Sort(far)
	at := func(s []time.Duration, q float64) float64 {
		return float64(s[int(q*float64(len(s)-1))].Nanoseconds()) / 1e3
	}
	b.ReportMetric(at(near, 0.5), "direct-p50-µs")
	b.ReportMetric(at(far, 0.5)-at(near, 0.5), "added-p50-µs")
	b.ReportMetric(at(far, 0.99)-at(near, 0.99), "added-p99-µs")
}

// BenchmarkProxyParallel tells how many calls a second pass.
func BenchmarkProxyParallel(b *testing.B) {
	p := start(b, quiet)
	p.deploy(function("echo"))
	url := p.base + "/function/echo/pid"
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := p.http.Post(url, "text/plain", http.NoBody)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkStart tells how long a replica takes from the scale call to its first
// answer, and from the decision to readiness, without injected cold start.
func BenchmarkStart(b *testing.B) {
	p := start(b, quiet)
	p.deploy(function("echo"))
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		p.scale("echo", 0)
		p.ready("echo") // that is: gone
		b.StartTimer()
		begun := time.Now()
		if a := p.call("echo/pid"); a.status != 200 {
			b.Fatal(a)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "cold-call-p50-ms")
}

// BenchmarkIdle tells what a platform with ten idle replicas costs.
func BenchmarkIdle(b *testing.B) {
	c := config(b)
	cmd := remote(b, c)
	info := running(b, c.State)
	p := attach(b, info)
	p.deploy(function("echo"))
	p.scale("echo", 10)
	p.ready("echo")
	p.http.CloseIdleConnections()
	before := cpuSeconds(b, cmd.Process.Pid)
	begun := time.Now()
	for b.Loop() {
		time.Sleep(5 * time.Second)
	}
	used := cpuSeconds(b, cmd.Process.Pid) - before
	b.ReportMetric(100*used/time.Since(begun).Seconds(), "%-of-a-core")
}

func running(t testing.TB, state string) platform.Info {
	t.Helper()
	info, err := platform.Running(state)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func cpuSeconds(t testing.TB, pid int) float64 {
	t.Helper()
	p, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	st, err := p.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return st.CPUTime()
}

func quiet(c *platformConfig) { c.Log = slog.New(slog.DiscardHandler) }
