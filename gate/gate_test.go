package gate

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"farmhand/evaluate"
	"farmhand/registry"
	"farmhand/registry/registrytest"
)

func verdict(t testing.TB, g *Gate) registry.Verdict {
	t.Helper()
	v, err := g.Verdict()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Checks {
		t.Logf("%-22s %-18s against %-24.24s %8.4f (%8.4f to %8.4f) limit %7.4f n %d: %s", c.Metric, c.Work, c.Against, float64(c.Value), float64(c.Lo), float64(c.Hi), c.Limit, c.N, c.Outcome)
	}
	return v
}

// The seeds of the gate decide nothing else.
func TestSeedsAreUnseen(t *testing.T) {
	for _, seed := range Seeds() {
		if slices.Contains(evaluate.TrainingSeeds(), seed) || slices.Contains(evaluate.EvaluationSeeds(), seed) {
			t.Errorf("seed %d is used elsewhere", seed)
		}
	}
}

// Cheaper at the target is promoted, late is rejected, and equal is inconclusive.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    Config
		want   registry.Outcome
		metric string // of the first check with that outcome
	}{
		"cheaper":                 {config(t, asPeak, twenty), registry.Promoted, OverTarget},
		"late":                    {config(t, least, twenty), registry.Rejected, OverTarget},
		"equal":                   {config(t, asRule, registrytest.Rule), registry.Rejected, CostRatio}, // for sure not 1 % cheaper
		"dearer than the rule is": {config(t, asPeak, "static:n=9"), registry.Rejected, CostRatio},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdict(t, ran(t, c.cfg))
			i := slices.IndexFunc(v.Checks, func(k registry.Check) bool { return k.Outcome == c.want })
			if v.Outcome != c.want || i < 0 || v.Checks[i].Metric != c.metric {
				t.Errorf("%s, want %s by %s", v.Outcome, c.want, c.metric)
			}
			if v.Rule != c.cfg.Rule || v.Champion != "" || v.Checks[0].N != len(c.cfg.Seeds) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// With a champion there are two to beat. One that is late is beaten by being on time,
// and one that is as good is not.
func TestChampionHasToBeBeaten(t *testing.T) {
	cfg := config(t, asPeak, twenty)
	cfg.Champion = registrytest.Always(t, asRule)
	v := verdict(t, ran(t, cfg))
	if v.Champion != registry.VersionOf(cfg.Champion) || len(v.Checks) != 3 || v.Outcome != registry.Promoted {
		t.Errorf("late champion: %+v", v)
	}
	cfg.Challenger, cfg.Champion = cfg.Champion, cfg.Challenger
	if v := verdict(t, ran(t, cfg)); v.Outcome != registry.Rejected {
		t.Errorf("late challenger: %+v", v)
	}
	cfg.Challenger = cfg.Champion
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "the champion already") {
		t.Errorf("against itself: %v", err)
	}
}

// Where a rule is late, being on time may cost something.
func TestLatenessIsMended(t *testing.T) {
	theirs, mine := make([]Score, 8), make([]Score, 8)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range theirs {
		n := 1000 + 100*r.Float64()
		theirs[i] = Score{n, 0.08 * n * (1 + 0.1*r.Float64()), 100}
		mine[i] = Score{n, 0.03 * n * (1 + 0.1*r.Float64()), 110}
	}
	g := &Gate{field: make([]evaluate.Contender, 2)}
	var runs [][]Score
	for i := range mine {
		runs = append(runs, []Score{mine[i], theirs[i]})
	}
	for target, want := range map[float64]registry.Outcome{0.95: registry.Promoted, 0.9: registry.Rejected, 0.99: registry.Rejected} {
		v := registry.Verdict{Checks: g.checks("x", target, runs, DefaultLimits())}
		if v.Conclude(); v.Outcome != want {
			t.Errorf("target %g: %s, want %s: %+v", target, v.Outcome, want, v.Checks)
		}
	}
}

// Tasks without a due say nothing about lateness, and the verdict says what to do.
func TestNoDeadlineIsInconclusive(t *testing.T) {
	cfg := config(t, least, twenty)
	s := *cfg.Scenarios[0]
	s.Farm.Deadline = 0
	cfg.Scenarios[0] = &s
	if v := verdict(t, ran(t, cfg)); v.Outcome != registry.Inconclusive || !strings.Contains(strings.Join(v.Notes, " "), "set farm.deadline") {
		t.Errorf("%s, %q", v.Outcome, v.Notes)
	}
}

// The verdict does not depend on where slices end, or on trials that were interrupted.
func TestCutsChangeNothing(t *testing.T) {
	cfg := config(t, asPeak, twenty)
	cfg.Seeds = cfg.Seeds[:4]
	cfg.Traffic = traffic(t, rows(t, burst(t), 4*1800+60, "staffing"), burst(t).Farm)
	whole := ran(t, cfg)
	want, err := whole.Verdict()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := whole.State()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		var state []byte
		for done := false; !done; {
			g, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if state != nil {
				if err := g.Restore(state); err != nil {
					t.Fatal(err)
				}
			}
			if r.IntN(3) == 0 { // killed in the middle of a trial
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := g.Run(ctx, forever); !errors.Is(err, context.Canceled) {
					t.Fatalf("interrupted: %v", err)
				}
				if _, err := g.Verdict(); err == nil {
					t.Fatal("a verdict before all is done")
				}
			} else {
				left := r.IntN(5)
				before := g.Done()
				if done, err = g.Run(t.Context(), func() bool { left--; return left >= 0 }); err != nil || g.Done() <= before {
					t.Fatalf("%d trials after %d, %v", g.Done(), before, err)
				}
			}
			if r.IntN(3) > 0 || done { // else killed before it was kept
				if state, err = g.State(); err != nil {
					t.Fatal(err)
				}
			} else {
				done = false
			}
			if done {
				if got, err := g.Verdict(); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("cuts %d: %+v, want %+v", seed, got, want)
				}
			}
		}
		if string(state) != string(kept) {
			t.Errorf("cuts %d: the state differs", seed)
		}
	}
}

// A state of another comparison is refused, and nothing is taken from it.
func TestForeignStates(t *testing.T) {
	cfg := config(t, asRule, twenty)
	g := ran(t, cfg)
	kept, err := g.State()
	if err != nil {
		t.Fatal(err)
	}
	other := config(t, asRule, "static:n=21")
	fewer := config(t, asRule, twenty)
	fewer.Seeds = Seeds()[:5]
	more := config(t, asRule, twenty)
	more.Champion = registrytest.File(t, 1)
	for name, c := range map[string]Config{"rule": other, "seeds": fewer, "champion": more} {
		g, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Restore(kept); !errors.Is(err, ErrOther) || g.Done() != 0 {
			t.Errorf("%s: %v, %d trials done", name, err, g.Done())
		}
	}
	fresh, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var s state
	if err := json.Unmarshal(kept, &s); err != nil {
		t.Fatal(err)
	}
	s.Done[2] = s.Done[2][:1]
	short, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", "[]", string(kept[:len(kept)/2]), string(short)} {
		if err := fresh.Restore([]byte(bad)); !errors.Is(err, ErrOther) || fresh.Done() != 0 {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
}

func TestBadConfig(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"Challenger":  func(c *Config) { c.Challenger = []byte("x") },
		"Champion":    func(c *Config) { c.Champion = c.Challenger[:100] },
		"Rule":        func(c *Config) { c.Rule = "magic" },
		"0 Scenarios": func(c *Config) { c.Scenarios = nil },
		"and 1 Seeds": func(c *Config) { c.Seeds = c.Seeds[:1] },
		"lasts 60 s":  func(c *Config) { c.Scenarios[0].Horizon = 60 },
	} {
		c := config(t, asRule, twenty)
		spoil(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v: want one with %q", err, want)
		}
	}
}
