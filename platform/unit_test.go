package platform

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"
)

func TestColdStartLaw(t *testing.T) {
	c, err := parseColdStart(DefaultColdStart, 1)
	if err != nil {
		t.Fatal(err)
	}
	var logs []float64
	mean, square := 0.0, 0.0
	const n = 4000
	for i := range uint64(n) {
		logs = append(logs, math.Log(c.delay("f", i).Seconds()))
	}
	for _, x := range logs {
		mean += x / n
	}
	for _, x := range logs {
		square += (x - mean) * (x - mean) / n
	}
	if math.Abs(mean-0.74) > 0.01 || math.Abs(math.Sqrt(square)-0.16) > 0.01 { // 4 standard errors
		t.Errorf("LN(%.3f, %.3f), want LN(0.74, 0.16)", mean, math.Sqrt(square))
	}
	again, _ := parseColdStart(DefaultColdStart, 1)
	other, _ := parseColdStart(DefaultColdStart, 2)
	if again.delay("f", 7) != c.delay("f", 7) || other.delay("f", 7) == c.delay("f", 7) || c.delay("g", 7) == c.delay("f", 7) {
		t.Error("delays do not depend on seed, name and number alone")
	}
	for s, want := range map[string]time.Duration{"none": 0, "constant:1500ms": 1500 * time.Millisecond, "lognormal:0,0": time.Second} {
		if c, err := parseColdStart(s, 1); err != nil || c.delay("f", 0) != want {
			t.Errorf("%s: %v, %v", s, c.delay("f", 0), err)
		}
	}
	for _, s := range []string{"", "some", "none:1", "constant:", "constant:-1s", "lognormal:1", "lognormal:NaN,1", "lognormal:1,NaN", "lognormal:1,-1", "lognormal:99,1"} {
		if _, err := parseColdStart(s, 1); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for n := range 9 {
		got = append(got, backoff(n))
	}
	want := []time.Duration{0, 0, time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second, 256 * time.Second, maxBackoff, maxBackoff}
	if !slices.Equal(got, want) || backoff(1000) != maxBackoff {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMeter(t *testing.T) {
	t0 := time.Unix(1000, 0)
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	var m meter
	for _, r := range []struct{ at, used, want float64 }{
		{0.5, 0.5, 1000}, // young: since its start
		{1.0, 0.5, 500},
		{1.1, 0.6, 600 / 1.1}, // just asked: the same base
		{2.0, 0.5 + 1, 1000},  // one core since second 1
		{2.0, 0.5 + 1, 1000},  // another reader
		{9.0, 1.5, 0},
		{9.5, 1.5, 0},
	} {
		if got := m.rate(t0, at(r.at), r.used); math.Abs(got-r.want) > 100 {
			t.Errorf("second %.1f: %.0f millicores, want about %.0f", r.at, got, r.want)
		}
	}
}

func TestVictimOrder(t *testing.T) {
	r := func(s replicaState, inflight int) *replica { return &replica{state: s, inflight: inflight} }
	for _, c := range []struct {
		list []*replica
		want int
	}{
		{[]*replica{r(ready, 0), r(ready, 0)}, 1},
		{[]*replica{r(ready, 0), r(ready, 1)}, 0},
		{[]*replica{r(ready, 2), r(ready, 1), r(ready, 1)}, 2},
		{[]*replica{r(starting, 0), r(ready, 0)}, 0},
		{[]*replica{r(starting, 0), r(starting, 0), r(ready, 0)}, 1},
	} {
		if got := victim(c.list); got != c.want {
			t.Errorf("%v: %d, want %d", c.list, got, c.want)
		}
	}
}

func TestTimeouts(t *testing.T) {
	d := types.FunctionDeployment{Service: "f", Image: "i", EnvVars: map[string]string{"write_timeout": "20", "exec_timeout": "10s", "healthcheck_interval": "2s"}}
	s, err := checkDeployment(d, time.Now())
	if err != nil || s.execTimeout != 10*time.Second || s.writeTimeout != 20*time.Second || s.drainTime() != 22*time.Second {
		t.Fatalf("%+v, %v", s, err)
	}
	for x, want := range map[string]time.Duration{"": 10 * time.Second, "1s": time.Second, "20s": 10 * time.Second, "-1s": 10 * time.Second, "x": 10 * time.Second} {
		if got := s.timeout(x); got != want {
			t.Errorf("X-Timeout %q: %s, want %s", x, got, want)
		}
	}
	if s, err = checkDeployment(types.FunctionDeployment{Service: "f", Image: "i"}, time.Now()); err != nil || s.drainTime() != defaultWriteTimeout || s.min != 1 {
		t.Errorf("defaults: %+v, %v", s, err)
	}
	d.EnvVars = map[string]string{"write_timeout": "24h", "healthcheck_interval": "86400"}
	if s, err = checkDeployment(d, time.Now()); err != nil || s.drainTime() != 48*time.Hour {
		t.Errorf("the longest: %+v, %v", s, err)
	}
	d.EnvVars = map[string]string{"exec_timeout": "0"}
	if s, err = checkDeployment(d, time.Now()); err != nil || s.timeout("") != 0 || s.timeout("1h") != time.Hour {
		t.Errorf("no limit: %+v, %v", s, err)
	}
}

func FuzzSplitFunctionPath(f *testing.F) {
	for _, s := range []string{"/function/a", "/function/a/", "/function/a.b/c%2Fd", "/function/", "/function//x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, rest := splitFunctionPath("/function/"+s, "/function/")
		if rest == "" || rest[0] != '/' || name+rest != s && name+rest != s+"/" {
			t.Errorf("%q: %q, %q", s, name, rest)
		}
	})
}
