package farmenv

import (
	"math"
	"strings"
	"testing"

	"farmhand/env"
	"farmhand/env/envtest"
	"farmhand/sim/workload"
)

func newPaper(t testing.TB, scenario string, cfg PaperConfig) *Paper {
	t.Helper()
	s, err := workload.Find(scenario, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Scenario = s
	p, err := NewPaper(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPaperConforms(t *testing.T) {
	for _, scenario := range []string{"paper-as-run", "paper-fixed", "paper-fixed:shuffled"} {
		for name, cfg := range map[string]PaperConfig{
			"published": {Reward: Published},
			"weighed":   {Reward: Weighed, Jumps: true, MaskClock: true},
		} {
			t.Run(scenario+" "+name, func(t *testing.T) {
				envtest.Check(t, func() env.Env { return newPaper(t, scenario, cfg) })
			})
		}
	}
}

// episode plays an episode and adds up what its steps were.
func episode(p *Paper, seed uint64, act func(step int, obs []float64) int) (sum [MetricStepQoS + 1]float64, parts []float64, steps [][]float64) {
	parts = make([]float64, len(p.spec.Parts))
	obs, _ := p.Reset(seed, nil)
	for over := false; !over; {
		steps = append(steps, append([]float64(nil), obs...))
		var info env.Info
		obs, _, over, _, info = p.Step(act(len(steps)-1, obs))
		for i, x := range info.Metrics {
			sum[i] += x
		}
		for i, x := range info.Parts {
			parts[i] += x
		}
	}
	return sum, parts, append(steps, append([]float64(nil), obs...))
}

// The published row that needs no learner: a farm of twelve whose agent never acts had
// 86.2 ± 5.2 % on time (repository, the checkpoint of episode 30). Episodes usually
// ended with step 26 to 30, all tasks done.
func TestPaperStaticTwelve(t *testing.T) {
	p := newPaper(t, "paper-as-run", PaperConfig{Reward: Published})
	const episodes = 60
	onTime, early := 0.0, 0
	for seed := range uint64(episodes) {
		sum, parts, steps := episode(p, seed, func(int, []float64) int { return p.Hold() })
		if sum[MetricDecided] != 1140 {
			t.Fatalf("%g tasks decided: want all 1140", sum[MetricDecided])
		}
		if w := sum[MetricWorkers] / sum[MetricSeconds]; math.Abs(w-12) > 1e-9 || sum[MetricActions] != 0 {
			t.Fatalf("%g workers, %g actions: want 12 and none", w, sum[MetricActions])
		}
		if n := len(steps) - 1; n < 26 || n > 30 || (parts[7] != 8 && n < 30) {
			t.Errorf("seed %d: %d steps, %g paid at the end: want 26 to 30, as published", seed, n, parts[7])
		}
		if parts[7] == 8 {
			early++
		}
		onTime += 1 - sum[MetricLate]/1140
	}
	if onTime *= 100.0 / episodes; math.Abs(onTime-86.2) > 4 {
		t.Errorf("%.1f %% on time: want the published 86.2 ± 4", onTime)
	}
	if early < episodes*2/3 {
		t.Errorf("%d of %d episodes end with all tasks done: want most", early, episodes)
	}
}

// In calm, holding is paid 36·0.05 + 3.6 = 5.4 (so the repository's logs).
func TestPaperPaysAsPublished(t *testing.T) {
	p := newPaper(t, "paper-fixed", PaperConfig{Reward: Published})
	p.Reset(1, nil)
	if _, r, _, _, _ := p.Step(p.Hold()); math.Abs(r-5.4) > 1e-9 {
		t.Errorf("a calm step is paid %g: want 5.4", r)
	}
	for _, c := range []struct {
		moved, left int
		waiting     int
		workers     int
		qos         float64
		over        bool
		want        float64
	}{
		{moved: 1, waiting: 60, workers: 13, qos: 0.9, left: 500, want: 36*-0.05 - 2.5 - 0.08 + 5.5},
		{moved: -1, waiting: 4, workers: 20, qos: 1, left: 500, want: 1.8 - 0.05*6 - 0.08 + 0.1 + 3.6},
		{moved: -1, waiting: 31, workers: 20, qos: 1, left: 500, want: 1.8 - 2.5/900 - 0.08},
		{waiting: 0, workers: 12, qos: 1, over: true, want: 1.8 + 3.6 + 8},
		{waiting: 0, workers: 12, qos: 1, over: true, left: 7, want: 1.8 + 3.6 - 14},
		{waiting: 0, workers: 12, qos: 1, over: true, left: 70, want: 1.8 + 3.6 - 60},
	} {
		p.before.Waiting, p.o.Desired, p.qos, p.over = c.waiting, c.workers, c.qos, c.over
		p.pay(c.moved, c.left)
		sum := 0.0
		for _, x := range p.parts {
			sum += x
		}
		if math.Abs(sum-c.want) > 1e-9 {
			t.Errorf("%+v is paid %g (%v)", c, sum, p.parts)
		}
	}
}

// The clock: three phases are left at first and none in the end, and where phases are
// a minute long, one fewer each minute. Masked, nothing tells the time.
func TestPaperClock(t *testing.T) {
	hold := func(p *Paper) func(int, []float64) int { return func(int, []float64) int { return p.Hold() } }
	for _, scenario := range []string{"paper-as-run", "paper-fixed", "paper-fixed:shuffled"} {
		p := newPaper(t, scenario, PaperConfig{Reward: Published})
		_, _, steps := episode(p, 3, hold(p))
		if first, last := steps[0], steps[len(steps)-1]; first[0] != 3 || last[0] != 0 || first[3] != 0 || last[3] < 1100 {
			t.Errorf("%s: %g phases and %g tasks done at first, %g and %g in the end", scenario, first[0], first[3], last[0], last[3])
		}
		for i := 1; i < len(steps); i++ {
			if steps[i][0] > steps[i-1][0] || steps[i][3] < steps[i-1][3] {
				t.Errorf("%s: the clock goes back in step %d", scenario, i)
			}
		}
		if strings.HasPrefix(scenario, "paper-fixed") && (steps[7][0] != 3 || steps[8][0] != 2) { // 56 s and 64 s
			t.Errorf("%s: %g and %g phases are left before and after a minute: want 3 and 2", scenario, steps[7][0], steps[8][0])
		}
		p = newPaper(t, scenario, PaperConfig{Reward: Published, MaskClock: true})
		_, _, steps = episode(p, 3, hold(p))
		for _, obs := range steps {
			if obs[0] != 0 || obs[3] != 0 {
				t.Fatalf("%s: the masked clock shows %g and %g", scenario, obs[0], obs[3])
			}
		}
	}
}

// Bounds are kept, moves that they cut are no actions, and starving a farm hides no
// late task.
func TestPaperStarved(t *testing.T) {
	p := newPaper(t, "paper-fixed", PaperConfig{Reward: Published, Jumps: true})
	sum, parts, steps := episode(p, 1, func(int, []float64) int { return 0 })
	if w := steps[len(steps)-1][4]; w != 1 || sum[MetricActions] != 2 {
		t.Errorf("%g workers after %g actions: want 1 after 2 (12, 4, 1)", w, sum[MetricActions])
	}
	if sum[MetricDecided] != 1140 || sum[MetricLate] < 700 || parts[7] != -60 {
		t.Errorf("%g of %g late, %g at the end: want most of 1140 and -60", sum[MetricLate], sum[MetricDecided], parts[7])
	}
	sum, _, steps = episode(p, 1, func(int, []float64) int { return 8 })
	if w := steps[len(steps)-1][4]; w != 32 || sum[MetricActions] != 3 || sum[MetricLate] > 30 {
		t.Errorf("%g workers after %g actions, %g late: want 32 after 3 (20, 28, 32), and few late", w, sum[MetricActions], sum[MetricLate])
	}
}

// The weight on lateness changes what is paid, and nothing else.
func TestPaperWeighLate(t *testing.T) {
	p := newPaper(t, "paper-as-run", PaperConfig{Reward: Weighed})
	hold := func(int, []float64) int { return p.Hold() }
	one, parts, _ := episode(p, 1, hold)
	p.WeighLate(3)
	two, heavier, _ := episode(p, 1, hold)
	if one != two || math.Abs(heavier[0]-10*parts[0]) > 1e-9 || heavier[1] != parts[1] || parts[0] == 0 {
		t.Errorf("%v with %v, at ten times the weight %v with %v", one, parts, two, heavier)
	}
	// as a farm of the mean load, and as late as the target allows: its late share
	// costs the weight a step, its workers one
	if want := -0.3 * 30 * one[MetricLate] / (0.05 * 1140); math.Abs(parts[0]-want) > 1e-9 {
		t.Errorf("%g late cost %g: want %g", one[MetricLate], parts[0], want)
	}
}

func TestPaperRefuses(t *testing.T) {
	s, _ := workload.Find("paper-fixed", workload.Options{})
	other, _ := workload.Find("constant", workload.Options{})
	for want, cfg := range map[string]PaperConfig{
		"no Scenario": {Reward: Published},
		"constant":    {Scenario: other, Reward: Published},
		`Reward`:      {Scenario: s, Reward: "much"},
	} {
		if _, err := NewPaper(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want one about %s", err, want)
		}
	}
}
