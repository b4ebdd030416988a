package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What could not be kept in memory is refused before it is drawn, whatever the process;
// the error names the field and the limit.
func TestGiantScenariosAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "giant.csv")
	if err := os.WriteFile(file, []byte("seconds_since_start,arrivals,mean_service_s\n0,3e8,1\n60,1,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const horizon, rest = "horizon: 1h\n", "service: 40ms\nfarm: {deadline: 150ms}\n"
	for _, c := range []struct{ text, want string }{
		{horizon + "arrivals: {poisson: {rate: 60000}}\n", "rate 60000 with a horizon of 3600 s means up to 2.16e+08 tasks: want at most 200 million"},
		{horizon + "arrivals: {levels: {of: [{rate: 1, for: 1s}, {rate: 1e6, for: 1s}]}}\n", "rate 1e+06"},
		{horizon + "arrivals: {sinusoid: {mean: 1e6, amplitude: 1, period: 60}}\n", "mean 1e+06"},
		{horizon + "arrivals: {ramp: {low: 1, high: 1e6, period: 60}}\n", "a rate of 1e+06"},
		{horizon + "arrivals: {flash: {base: 1, plateaus: [{rate: 1e6, start: 1, for: 1}]}}\n", "rate 1e+06"},
		{horizon + "arrivals: {selfsimilar: {mean: 1e6, hurst: 0.8, on: 1, off: 1}}\n", "mean 1e+06"},
		{horizon + "arrivals: {phases: {of: [{tasks: 300000000, seconds: 60}]}}\n", "tasks of its phases"},
		{horizon + "arrivals: {trace: {file: giant.csv}}\n", "its recording, as it is scaled, with a horizon of 3600 s"},
		{horizon + "arrivals: {walk: {min: 1, max: 2, start: 1, step: 1, every: 1e-6}}\n", "horizon: 3600 s mean up to 3.6e+09 changes of the rate: want at most 100 million"},
		{"horizon: 1e9\narrivals: {poisson: {rate: 0.001}}\n", "horizon: 1e+09 s at an interval of 2 s are 5e+08 decisions"},
		{horizon + "arrivals: {poisson: {rate: 50000}}\n", ""},
	} {
		path := filepath.Join(filepath.Dir(file), "own.yaml")
		if err := os.WriteFile(path, []byte(c.text+rest), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Find(path, Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s%v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Find(file, Options{Deadline: 1}); err == nil || !strings.Contains(err.Error(), "giant") {
		t.Errorf("%v", err)
	}
	for _, name := range Names() {
		if _, err := Find(name, Options{}); err != nil {
			t.Error(err)
		}
	}
}
