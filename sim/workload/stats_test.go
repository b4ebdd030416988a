package workload

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestStatsOfSmallTraces(t *testing.T) {
	tiny, err := ReadTrace(filepath.Join("testdata", "tiny.csv"))
	if err != nil {
		t.Fatal(err)
	}
	// counts 6 0 12 6: mean 6, variance 18, neighbours 0·−6, −6·6, 6·0 over 72
	want := Stats{Bin: 60, Bins: 4, Hours: 240. / 3600, Arrivals: 24, Rate: 0.1, PeakToMean: 2, IoD: 3, IoDTrend: 3,
		AC1: -0.5, Zero: 0.25, Service: 6. / 18, Load: 0.1 / 3}
	near(t, statsOf(t, tiny, 0), want, 1e-12)
	tasks, err := ReadTrace(filepath.Join("testdata", "tasks.csv"))
	if err != nil {
		t.Fatal(err)
	}
	// counts 2 0 1: mean 1, variance 2/3
	want = Stats{Bin: 1, Bins: 3, Hours: 3. / 3600, Arrivals: 3, Rate: 1, PeakToMean: 2, IoD: 2. / 3, IoDTrend: 2. / 3,
		AC1: -0.5, Zero: 1. / 3, Service: 1.75 / 3, Load: 1.75 / 3}
	near(t, statsOf(t, tasks, 1), want, 1e-12)
}

func statsOf(t *testing.T, trace *Trace, bin float64) Stats {
	t.Helper()
	s, err := trace.Stats(bin)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Bins that are narrower than the memory is wide are refused.
func TestStatsRefuseTooManyBins(t *testing.T) {
	for _, at := range [][]float64{{0, 1}, {0, 1e300}} {
		if _, err := (&Trace{At: at}).Stats(1e-9); err == nil || !strings.Contains(err.Error(), "want wider ones") {
			t.Errorf("%v: error %v", at, err)
		}
	}
}

// A trend that is a straight line is taken out but for the ends.
func TestDetrend(t *testing.T) {
	x := make([]float64, 200)
	for i := range x {
		x[i] = 3 * float64(i)
	}
	for i, v := range detrend(x)[30:170] {
		if math.Abs(v) > 1e-9 {
			t.Fatalf("%g is left at %d", v, i+30)
		}
	}
}

// The traces' own table says the same.
func TestStatsOfTheTraces(t *testing.T) {
	folder := tracesFolder(t)
	f, err := os.Open(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // read only
	found := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), "|")
		if len(cells) != 13 {
			continue
		}
		var x [13]float64
		ok := true
		for i := 1; i < 13; i++ {
			if cells[i] = strings.TrimSpace(cells[i]); cells[i] != "-" {
				var err error
				x[i], err = strconv.ParseFloat(cells[i], 64)
				ok = ok && err == nil
			}
		}
		if !ok {
			continue
		}
		trace, err := Options{Traces: folder}.Trace(strings.TrimSpace(cells[0]))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(trace.Name, func(t *testing.T) {
			near(t, statsOf(t, trace, 0), Stats{Bin: x[1], Bins: int(x[2]), Hours: x[3], Arrivals: x[4], Rate: x[5], PeakToMean: x[6],
				IoD: x[7], IoDTrend: x[8], AC1: x[9], Zero: x[10], Service: x[11], Load: x[12]}, 6e-4)
		})
		found++
	}
	if names, err := (Options{Traces: folder}).List(); err != nil || found != len(names) {
		t.Errorf("%d rows for the traces %v (%v)", found, names, err)
	}
}

// tracesFolder is where the traces are; without it a test is left out, loudly.
func tracesFolder(t *testing.T) string {
	folder := os.Getenv("FARMHAND_TRACES")
	if folder == "" {
		t.Skip("LOUD: FARMHAND_TRACES names no folder of traces: tests on recorded loads are left out")
	}
	return folder
}

// near compares up to a share; what is printed with two decimals up to half of the
// last.
func near(t *testing.T, got, want Stats, share float64) {
	t.Helper()
	for _, c := range []struct {
		name            string
		got, want, last float64
	}{
		{"bin", got.Bin, want.Bin, 0}, {"bins", float64(got.Bins), float64(want.Bins), 0}, {"hours", got.Hours, want.Hours, 0},
		{"arrivals", got.Arrivals, want.Arrivals, 0}, {"rate", got.Rate, want.Rate, 0}, {"peak/mean", got.PeakToMean, want.PeakToMean, 0.005},
		{"iod", got.IoD, want.IoD, 0}, {"iod_d", got.IoDTrend, want.IoDTrend, 0}, {"ac1", got.AC1, want.AC1, 0.005},
		{"zero", got.Zero, want.Zero, 0.005}, {"svc", got.Service, want.Service, 0}, {"load", got.Load, want.Load, 0},
	} {
		if share < 1e-6 {
			c.last = 0
		}
		if !(math.Abs(c.got-c.want) <= share*math.Abs(c.want)+c.last+1e-12) {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
}
