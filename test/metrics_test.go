package test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Dispatcher and controller tell Prometheus what happened, without a token, in the
// words of the ledger; they show no secret, and take nothing but a GET.
func TestMetrics(t *testing.T) {
	t.Parallel()
	f := start(t, config{})
	job := f.submit(60, func(i int) task {
		if i < 6 {
			return task{"status": 422}
		}
		return light(i)
	})
	f.reached(job, 20)
	f.signal("worker", syscall.SIGKILL)
	f.ended(job)
	until(t, patience, "both tell of all tasks", func() bool {
		told := f.scraped()
		return told[`farmhand_outcomes_total{farm="worker",outcome="done"}`] == 54 && told[`farmhand_tasks{farm="worker",state="done"}`] == 54
	})
	told, g := f.scraped(), f.gauges()
	for name, want := range map[string]int{
		`farmhand_tasks{farm="worker",state="dead"}`: g.Dead, `farmhand_tasks{farm="worker",state="waiting"}`: 0,
		`farmhand_outcomes_total{farm="worker",outcome="dead"}`: 6, `farmhand_attempts_total{farm="worker",outcome="rejected"}`: 6,
		`farmhand_attempts_total{farm="worker",outcome="done"}`: 54, `farmhand_sojourn_seconds_count{farm="worker"}`: 54,
		`farmhand_refused_results_total{farm="worker"}`: g.Refused, `farmhand_lapsed_leases_total{farm="worker"}`: g.Lapsed,
		`farmhand_replicas{farm="worker",state="desired"}`: 4, `farmhand_late_tasks_total{farm="worker"}`: g.Late,
	} {
		if x, ok := told[name]; !ok || int(x) != want {
			t.Errorf("%s: %g, %v, want %d", name, x, ok, want)
		}
	}
	if age, ok := told[`farmhand_signal_age_seconds{farm="worker"}`]; !ok || age > 5 {
		t.Errorf("signals are %g s old", age)
	}

	for _, url := range f.metrics() {
		resp, err := http.Post(url, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("a POST: %s", resp.Status)
		}
		text := f.get(url)
		for _, name := range []string{"secrets/farmhand-token", "secrets/farmhand-redis", "credentials/basic-auth-password"} {
			if strings.Contains(text, f.read(name)) {
				t.Errorf("%s tells %s", url, name)
			}
		}
		if strings.Contains(text, job) {
			t.Errorf("%s tells of a job", url)
		}
	}
}

// metrics are the addresses at which the newest dispatcher and controller are
// scraped; their logs have them.
func (f *farm) metrics() (urls []string) {
	f.t.Helper()
	for _, name := range []string{"dispatcher", "controller"} {
		raw, err := os.ReadFile(filepath.Join(f.state, "logs", name+".ndjson"))
		if err != nil {
			f.t.Fatal(err)
		}
		all := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindAllString(string(raw), -1)
		if len(all) == 0 {
			f.t.Fatalf("the %s serves no metrics", name)
		}
		urls = append(urls, all[len(all)-1])
	}
	return urls
}

func (f *farm) get(url string) string {
	f.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		f.t.Fatal(fmt.Sprint(url, resp.Status, err))
	}
	return string(raw)
}

// scraped is what both tell, by series.
func (f *farm) scraped() map[string]float64 {
	f.t.Helper()
	told := map[string]float64{}
	for _, url := range f.metrics() {
		for line := range strings.Lines(f.get(url)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if x, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(name, "farmhand_") {
				told[name] = x
			}
		}
	}
	return told
}
