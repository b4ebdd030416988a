// Package bench measures the product: the queue, and the way through gateway
// and workers.
package bench

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Report is what a measuring command prints as JSON.
type Report struct {
	Figures map[string]float64 `json:"figures"` // name → number; the unit stands in the name
	Spread  map[string]Spread  `json:"spread,omitempty"`
	Notes   []string           `json:"notes,omitempty"`
	Machine Machine            `json:"machine"`
	Commit  string             `json:"commit"`
	Seed    uint64             `json:"seed"`
}

// Spread is how a figure varied over the runs.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	Runs   int     `json:"runs"`
}

// Machine is where a figure was measured.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
	Model  string `json:"model,omitempty"`
	Go     string `json:"go"`
	Kernel string `json:"kernel,omitempty"`
}

// NewReport describes this machine and program.
func NewReport(seed uint64) *Report {
	r := &Report{Figures: map[string]float64{}, Spread: map[string]Spread{}, Seed: seed, Commit: "unknown",
		Machine: Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				r.Commit = s.Value
			}
		}
	}
	if raw, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		r.Machine.Kernel = strings.TrimSpace(string(raw))
	}
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				r.Machine.Model = strings.TrimSpace(v)
				break
			}
		}
	}
	return r
}

// Add enters the median of samples as a figure, and how they varied.
func (r *Report) Add(name string, samples []float64) {
	s := spread(samples)
	r.Figures[name], r.Spread[name] = s.Median, s
}

// Names lists the figures.
func (r *Report) Names() []string { return slices.Sorted(maps.Keys(r.Figures)) }

// Note adds a remark, e.g. on what was left out.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func spread(samples []float64) Spread {
	if len(samples) == 0 {
		return Spread{}
	}
	return Spread{Min: slices.Min(samples), Median: quantile(samples, 0.5), Max: slices.Max(samples), Runs: len(samples)}
}

// quantile of samples by linear interpolation; it leaves them as they are.
func quantile[T cmp.Ordered](samples []T, q float64) T {
	var zero T
	if len(samples) == 0 {
		return zero
	}
	s := slices.Sorted(slices.Values(samples))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
