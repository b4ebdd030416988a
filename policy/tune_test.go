package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever calibration tries, New takes, and it tries what is sensible.
func TestTunables(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, law := range Laws() {
		free, err := Tunables(law.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range free {
			i := slices.IndexFunc(law.Params, func(q Param) bool { return q.Name == f.Name })
			q := law.Params[i]
			if len(q.Choices) > 0 || f.Min >= f.Max || f.Min < q.Min || f.Max > q.Max || f.Log && f.Min <= 0 {
				t.Errorf("%s of %s: searched in %+v, may be %+v", f.Name, law.Name, f, q)
			}
		}
		for range 200 {
			values := make([]float64, len(free))
			for i := range values {
				values[i] = wild(r)
			}
			spec, err := Tune(law.Name, values)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := New(spec); err != nil || p.Name() != spec {
				t.Errorf("%s: %v, %v", spec, p, err)
			}
		}
	}
}

func TestTune(t *testing.T) {
	for _, c := range []struct {
		spec   string
		values []float64
		want   string
	}{
		{"static", []float64{7.4}, "static:n=7"},
		{"static:n=3", nil, "static:n=3"},
		{"manual", nil, "manual"},
		{"threshold", []float64{0.123456, -1, 2.6, 1e9}, "threshold:up=0.1235,down=0,step=3,cooldown=600"},
		{"threshold:up=5,step=1", []float64{0.1, math.NaN()}, "threshold:up=5,cooldown=2"},
	} {
		if got, err := Tune(c.spec, c.values); err != nil || got != c.want {
			t.Errorf("%s %v: %q, %v; want %q", c.spec, c.values, got, err, c.want)
		}
	}
	for spec, want := range map[string]string{
		"static:m=3": `policy: "m=3" is no parameter of static: want n=0…10000`,
		"threshold":  `policy: threshold: 0 values for 4 free parameters`,
	} {
		if _, err := Tune(spec, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
	if _, err := Tunables("magic"); err == nil {
		t.Error("magic is a law")
	}
}
