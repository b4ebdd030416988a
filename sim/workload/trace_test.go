package workload

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadTrace(t *testing.T) {
	trace, err := parseTrace(strings.NewReader("\ufeffseconds_since_start, arrivals\r\n50,3\r\n# quiet\r\n60, 0\r\n70,1.5\r\n"))
	if err != nil || trace.Width != 10 || !slices.Equal(trace.Counts, []float64{3, 0, 1.5}) || trace.Service != nil {
		t.Errorf("%+v, %v", trace, err)
	}
	trace, err = parseTrace(strings.NewReader("time\n3\n3\n4.5\n"))
	if err != nil || !slices.Equal(trace.At, []float64{0, 0, 1.5}) || trace.Durations != nil {
		t.Errorf("%+v, %v", trace, err)
	}
}

func TestWrongTraces(t *testing.T) {
	const counts = "seconds_since_start,arrivals\n"
	for _, c := range []struct{ text, want string }{
		{"", `1: the file is empty: want a header "seconds_since_start,arrivals[,mean_service_s]"`},
		{"at,count\n1,2\n", `1: columns "at,count": want a header`},
		{"1,2\n3,4\n", `1: columns "1,2": want a header`},
		{counts, "1: 0 bins: want two or more"},
		{counts + "0,5\n", "2: 1 bins: want two or more"},
		{counts + "0,5\n60,-1\n", `3: arrivals "-1": want a number, 0 or more`},
		{counts + "0,5\n60,NaN\n", `3: arrivals "NaN": want a number`},
		{counts + "0,5\n60,1e999\n", `3: arrivals "1e999": want a number`},
		{counts + "0,5\n60,\n", `3: arrivals "": want a number`},
		{counts + "0,5\n60,1,2\n", "3: not as many columns as the header has: want seconds_since_start,arrivals"},
		{counts + "0,5\n60,1\n\n180,3\n", "5: seconds_since_start 180 after 60: want 120, as all bins are 60 s wide"},
		{counts + "60,5\n0,1\n", "3: seconds_since_start 0 after 60: want times that rise"},
		{counts + "0,0\n60,0\n", "no arrivals in any bin"},
		{counts + "0,\"5\n", "2: "},
		{"time,duration\n", "1: no tasks: want a line for each"},
		{"time,duration\n5,1\n4,1\n", "3: time 4 after 5: want tasks in the order of their times"},
		{"time,duration\n5,-1\n", `2: duration "-1": want a number, 0 or more`},
		{"time,duration\n5,1\n6,0\n", "3: duration 0: want seconds above 0"},
		{"time,duration\n5\n", "2: not as many columns"},
	} {
		trace, err := parseTrace(strings.NewReader(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), strings.Split(c.want, " ")[0]) && strings.HasPrefix(c.want, "1") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %+v, error %v, want %q", c.text, trace, err, c.want)
		}
	}
	file := filepath.Join(t.TempDir(), "own.csv")
	if err := os.WriteFile(file, []byte("time\n-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrace(file); err == nil || !strings.HasPrefix(err.Error(), file+`:2: time "-1"`) {
		t.Errorf("error %v does not name file and line", err)
	}
	if _, err := ReadQuantiles(file); err == nil || !strings.Contains(err.Error(), `own.csv:1: columns "time": want "quantile,NAME"`) {
		t.Error(err)
	}
}

func FuzzTrace(f *testing.F) {
	f.Add("seconds_since_start,arrivals,mean_service_s\n0,1,2\n1,2,3\n")
	f.Add("time,duration\n0,1\n1,2\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := parseTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		if (trace.Counts == nil) == (trace.At == nil) || !slices.IsSorted(trace.At) || trace.Counts != nil && !(trace.Width > 0) {
			t.Errorf("%+v", trace)
		}
	})
}

// A replay has the mean that it is scaled to, in each bin the share that was
// recorded, and Poisson counts or exact ones.
func TestReplay(t *testing.T) {
	trace := tiny(t)
	p, err := NewReplay(trace, ReplayOptions{Bin: 50, Mean: 2})
	if err != nil {
		t.Fatal(err)
	}
	var counts [4][]float64
	for seed := range uint64(400) {
		at, changes := p.Draw(Stream(seed, StreamArrivals), 1000, nil)
		if want := []Change{{0, 2}, {50, 0}, {100, 4}, {150, 2}, {200, 0}}; !slices.Equal(changes, want) {
			t.Fatalf("changes %v, want %v", changes, want)
		}
		var n [4]float64
		for _, x := range at {
			n[int(x/50)]++
		}
		for i := range n {
			counts[i] = append(counts[i], n[i])
		}
	}
	for i, want := range []float64{100, 0, 200, 100} {
		mean, half := interval(counts[i])
		if math.Abs(mean-want) > half {
			t.Errorf("bin %d: %.2f ± %.2f tasks, want %g", i, mean, half, want)
		}
		if iod := variance(counts[i]) / want; want > 0 && math.Abs(iod-1) > 3.5*math.Sqrt(2./400) {
			t.Errorf("bin %d: index of dispersion %.2f, want 1", i, iod)
		}
	}
	even, err := NewReplay(trace, ReplayOptions{From: 1, Bins: 3, Bin: 10, Scale: 0.25, Even: true})
	if err != nil {
		t.Fatal(err)
	}
	at, _ := even.Draw(nil, 100, nil) // 0, 3 and 1.5 tasks, of which the half is left over
	if want := []float64{10 + 10./6, 15, 20 - 10./6, 25}; !alike(at, want) {
		t.Errorf("evenly at %v, want %v", at, want)
	}
	halves, err := NewReplay(trace, ReplayOptions{Bin: 10, Scale: 0.25, Even: true}) // 1.5, 0, 3 and 1.5 tasks
	if err != nil {
		t.Fatal(err)
	}
	at, _ = halves.Draw(nil, 100, nil) // the half of the first bin is carried to the third, and on
	if want := []float64{5, 20 + 10./6, 25, 30 - 10./6, 32.5, 37.5}; !alike(at, want) {
		t.Errorf("evenly at %v, want %v", at, want)
	}
	if at, _ := even.Draw(nil, 12, nil); len(at) != 1 {
		t.Errorf("%v before 12", at)
	}
}

func TestRecordedServices(t *testing.T) {
	p, err := NewReplay(tiny(t), ReplayOptions{Scale: 50})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewRecorded(Poisson{1}, 0, 0); err == nil {
		t.Error("a Poisson process has recorded services")
	}
	exact, err := NewRecorded(p, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for _, at := range []float64{10, 130, 190} { // the last bin has none: the mean, 6/18
		got = append(got, exact.DrawAt(nil, 0, at))
	}
	if want := []float64{0.5, 0.25, 1. / 3}; !alike(got, want) || math.Abs(exact.Mean()-1./3) > 1e-12 {
		t.Errorf("%v, mean %g; want %v", got, exact.Mean(), want)
	}
	spread, err := NewRecorded(p, 0.7, 3)
	if err != nil {
		t.Fatal(err)
	}
	s := Scenario{Horizon: 240, Arrivals: p, Service: spread}
	drawn := s.Draw(1).Service
	if mean, half := interval(drawn); math.Abs(mean-3) > half {
		t.Errorf("scaled to %.3f ± %.3f, want 3", mean, half)
	}
	x := make([]float64, 20_000)
	r := Stream(1, StreamService)
	for i := range x {
		x[i] = spread.Draw(r)
	}
	if mean, half := interval(x); math.Abs(mean-3) > half {
		t.Errorf("without instants %.3f ± %.3f, want 3", mean, half)
	}
	tasks, err := ReadTrace(filepath.Join("testdata", "tasks.csv"))
	if err != nil {
		t.Fatal(err)
	}
	scaled, err := NewRecorded(&Instants{At: tasks.At, trace: tasks}, 0, 1.75)
	if err != nil || math.Abs(scaled.DrawAt(nil, 2, 0)-0.75) > 1e-12 || scaled.Mean() != 1.75 { // 1.75/3 s in the mean, three times as long
		t.Errorf("%g s, %v", scaled.DrawAt(nil, 2, 0), err)
	}
	if _, err := NewRecorded(&Instants{At: tasks.At, trace: tasks}, 0.5, 0); err == nil {
		t.Error("single durations have a cv")
	}
}

func TestInstants(t *testing.T) {
	p := &Instants{At: []float64{0, 0.5, 7, 11}, Speed: 0.5}
	at, changes := p.Draw(nil, 22, nil)
	if want := []float64{0, 1, 14}; !alike(at, want) {
		t.Errorf("at %v, want %v", at, want)
	}
	if want := []Change{{0, 0.4}, {5, 0}, {10, 0.2}, {15, 0}, {20, 0}}; !slices.Equal(changes, want) {
		t.Errorf("changes %v, want %v", changes, want)
	}
}

func tiny(t *testing.T) *Trace {
	trace, err := ReadTrace(filepath.Join("testdata", "tiny.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func alike(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-9 })
}

func TestFind(t *testing.T) {
	own := Options{Traces: "testdata"}
	s, err := Find("trace:tiny", own)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "trace:tiny" || s.Horizon != 20 || s.Farm.Max != 256 || s.Service != LogNormalOf(0.04, 0.6) {
		t.Errorf("%+v", s)
	}
	if tasks := s.Draw(1); math.Abs(float64(len(tasks.At))-4000) > 3.5*math.Sqrt(4000) {
		t.Errorf("%d tasks in 20 s at 200/s", len(tasks.At))
	}
	// At another mean, over a part of it.
	s, err = Find("trace:tiny", Options{Traces: "testdata", Mean: 40, Length: 8})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Draw(1).At); s.Horizon != 10 || math.Abs(float64(n)-400) > 3.5*math.Sqrt(400) {
		t.Errorf("%d tasks in %g s at 40/s", n, s.Horizon)
	}
	s, err = Find("testdata/tasks.csv", Options{Deadline: 3})
	if err != nil {
		t.Fatal(err)
	}
	if tasks := s.Draw(1); !slices.Equal(tasks.At, []float64{0, 0.5, 2}) || !alike(tasks.Service, []float64{0.5, 1, 0.25}) || s.Farm.Deadline != 3 {
		t.Errorf("%+v of %+v", tasks, s)
	}
	file := filepath.Join(t.TempDir(), "mine.yml")
	if err := os.WriteFile(file, builtin[0].YAML(), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Find(file, Options{}); err != nil || s.Name != builtin[0].Name {
		t.Errorf("%+v, %v", s, err)
	}
	t.Setenv("FARMHAND_TRACES", "testdata")
	if _, err := Find("trace:tiny", Options{}); err != nil {
		t.Error(err)
	}
	t.Setenv("FARMHAND_TRACES", "")
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"burst", own, `no scenario "burst": want one of burst-cron-150ms, burst-150ms, constant, periodic, variable, bursty, ramp, flash, paper-as-run, paper-fixed, trace:NAME, or a .yaml or .csv file`},
		{"constant:shuffled", own, "no scenario"}, {"trace:none", own, `no trace "none" in testdata: want one of quantiles, tasks, tiny`},
		{"trace:none", Options{Traces: "nowhere"}, "nowhere: no such file or directory: want the folder of traces"},
		{"trace:../tiny", own, "is no name of a trace"}, {"trace:tasks", own, "has a line per task: want counts"},
		{"trace:tiny", Options{}, "name it with --traces or FARMHAND_TRACES"},
		{"testdata/tiny.csv", Options{}, "says no deadline: want one with --deadline"},
		{"testdata/quantiles.csv", Options{Deadline: 1}, `quantiles.csv:1: columns "quantile,seconds": want a header`},
	} {
		if s, err := Find(c.name, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, error %v, want %q", c.name, s, err, c.want)
		}
	}
	if _, err := Find("none.csv", Options{Deadline: 1}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// The recorded loads that the general policy meets offer 200/s, and what their
// cap of workers can do is near their peak or above.
func TestTracesOffer200(t *testing.T) {
	folder := tracesFolder(t)
	for _, name := range slices.Concat(Training, Test) {
		s, err := Find(name, Options{Traces: folder})
		if err != nil {
			t.Error(err)
			continue
		}
		p, ok := s.Arrivals.(*Replay)
		if !ok {
			continue
		}
		mean, peak := 0.0, 0.0
		for _, rate := range p.rates {
			mean, peak = mean+rate/float64(len(p.rates)), max(peak, rate)
		}
		if math.Abs(mean-200) > 1e-9 || s.Horizon != 7200 {
			t.Errorf("%s: %g/s for %g s", name, mean, s.Horizon)
		}
		t.Logf("%s: peak %.0f/s, %.1f workers busy", name, peak, peak*s.Service.Mean())
	}
}
