package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// aged makes the level so old, after a level of another rate.
func aged(age, before float64) func(*Observation) {
	return func(o *Observation) { o.Level.Age, o.Past = age, []Level{{Rate: before, Age: 30}} }
}

func TestTimer(t *testing.T) {
	// As in TestStaffing: 20/s need 2, 200/s 11.
	for _, c := range []struct {
		name   string
		spec   string
		o      *Observation
		want   int
		reason string
	}{
		{"first row", "timer", farm(steady(20), aged(29, 200)), 2, "0 of the 11 needed before, as the level is 29 s old"},
		{"second row", "timer", farm(steady(20), aged(30, 200)), 11, "1 of the 11"},
		{"third row: 2 + 9/2", "timer", farm(steady(20), aged(150, 200)), 7, "0.5 of the 11"},
		{"another table", "timer:first=5,second=10,begin=0.5,between=0.3,after=0", farm(steady(20), aged(6, 200)), 5, "0.3 of the 11"},
		{"the highest of before", "timer", farm(steady(20), aged(40, 30), func(o *Observation) { o.Past = append(o.Past, Level{Rate: 200}) }), 11, ""},
		{"the upper level", "timer", farm(steady(200), replicas(11), aged(40, 20)), 11, "11 for 95% within 150 ms"},
		{"no level before", "timer", farm(steady(20)), 2, ""},
		{"a backlog", "timer", farm(steady(20), rise(200), queue(300)), 16, "16 to catch up"},
	} {
		d := make1(t, c.spec).Decide(c.o, Memory{})
		if d.Replicas != c.want || d.Hold || !strings.Contains(d.Reason, c.reason) {
			t.Errorf("%s: %+v, want %d for %q", c.name, d, c.want, c.reason)
		}
	}
	// The first interval of a rise shows half of it; 11 are ready.
	half := all(steady(100), func(o *Observation) {
		o.Level.Age, o.Past = 2, []Level{{Rate: 20, Age: 60}, {Rate: 200, Age: 30}}
	})
	session(t, "a rise begins", "timer", []look{
		{0, 11, half, 11, ""},
		{8, 11, all(half, func(o *Observation) { o.Level.Age = 8 }), 6, "load 4.4"},
	})
	// What drains a backlog is held while replicas start, and no longer.
	starting := func(o *Observation) { o.Starting = 5 }
	session(t, "a backlog goes", "timer", []look{
		{0, 2, all(rise(200), queue(300)), 16, "16 to catch up"},
		{2, 11, all(rise(200), starting), 16, "16 was wished"},
		{4, 16, rise(200), 11, ""},
	})
	session(t, "twice the slots for a backlog", "timer:drain=2", []look{{0, 2, all(rise(200), queue(300)), 22, "22 to catch up"}})
}

func TestForecast(t *testing.T) {
	p, m := make1(t, "forecast:alpha=0.5,beta=0.5,quantile=0.9772498680518208,bin=2,headroom=1"), Memory{}
	for i, c := range []struct{ x, l, b, v, ahead float64 }{
		{20, 20, 0, 10, 20 + 2*math.Sqrt(10)},   // the variance of 40 tasks in 2 s
		{30, 25, 2.5, 19, 30 + 2*math.Sqrt(19)}, // 25 + 2·2.5: the second bin from now is the last
		{30, 28.75, 3.125, 17.725, 35 + 2*math.Sqrt(17.725)},
	} {
		o := farm(steady(20), func(o *Observation) { o.Last.Arrivals = 2 * c.x })
		o.At = o.At.Add(time.Duration(2*i) * time.Second)
		d := p.Decide(o, m)
		near(t, "level", m["l"], c.l, 1e-9)
		near(t, "trend", m["b"], c.b, 1e-9)
		near(t, "variance", m["v"], c.v, 1e-9)
		if want := digits(c.ahead) + "/s foreseen within 2.75 s; load " + digits(c.ahead*0.04); !strings.HasPrefix(d.Reason, want) {
			t.Errorf("%s, want %s", d.Reason, want)
		}
	}
}

// A load that comes back each minute is prepared for before it comes.
func TestForecastLearnsTheSeason(t *testing.T) {
	p, m := make1(t, "forecast:season=60,bin=2,alpha=0.05,quantile=0.5,down=0"), Memory{}
	need := map[float64]int{}
	for at := 0.0; at < 1800; at += 2 {
		second := math.Mod(at, 60)
		load := 20.0
		if second > 40 || second == 0 { // of the two seconds before
			load = 200
		}
		o := farm(steady(load), replicas(2))
		o.At = time.Unix(1_800_000_000+int64(at), 0)
		need[second] = p.Decide(o, m).Replicas
	}
	// What is asked for at 36 s works at 38.75 s.
	if need[20] > 3 || need[36] > 3 || need[38] < 10 || need[50] < 10 {
		t.Errorf("20 s: %d, 36 s: %d, 38 s: %d, 50 s: %d", need[20], need[36], need[38], need[50])
	}
}

func TestHalfinWhitt(t *testing.T) {
	for beta, want := range map[float64]float64{0.506: 0.5, 1.062: 0.2, 1.420: 0.1, 1.740: 0.05, 2.375: 0.01} {
		near(t, fmt.Sprint(beta), erlangCHalfinWhitt(beta), want, 0.0006)
	}
}

func TestMPCCost(t *testing.T) {
	p := make1(t, "mpc").(planner)
	cost := func(n float64, change ...func(*Observation)) float64 {
		f := p.model(farm(append([]func(*Observation){steady(100), replicas(8)}, change...)...), 100, 0.04, 0.75)
		return f.cost(n)
	}
	// Two intervals of 2 s, a late task is worth 0.04/0.05 = 0.8. Eight: nobody is late.
	near(t, "8", cost(8), 8*4, 1e-3)
	// Five: β 0.5, C 0.5046; e^(−0.11/(0.04·0.68)) = 0.01753; 400 tasks; three fewer cost
	// half a lag of 0.75 s each.
	near(t, "5", cost(5), 5*4+400*0.5046*0.01753*0.8+0.5*0.75*3, 0.01)
	// A queue of 100: 200 tasks come while it is worked off, 0.25 s of wait in the mean.
	near(t, "8, a queue", cost(8, queue(100)), 8*4+200*0.8, 1e-3)
	// Four more are ready in the first interval's middle (1 s > 0.75 s).
	near(t, "16 of 8, a queue", cost(16, queue(100)), 16*4+0.5*0.75*8, 160)
	// Four do not even do the load: 400 tasks are late, and 0 more at the end.
	near(t, "4", cost(4), 4*4+400*0.8+0.5*0.75*4, 1e-3)
	// Two: 200 pile up in four seconds and take 4 s more; those of the first 0.11 s are in time.
	near(t, "2", cost(2), 2*4+400*0.8+0.5*0.75*6+200*0.8*(1-0.11/4), 1e-3)
}

// The search finds what trying all counts finds.
func TestMPCFindsTheCheapest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	p := make1(t, "mpc").(planner)
	for range 300 {
		o := farm(steady(400*r.Float64()), replicas(1+r.IntN(30)), queue(float64(r.IntN(3)*r.IntN(200))))
		f := p.model(o, o.Level.Rate, 0.04, 4*r.Float64())
		_, got := f.best()
		least := math.Inf(1)
		for n := math.Floor(f.rate * f.service); n <= 64; n++ {
			least = min(least, f.cost(max(1, n)))
		}
		if got > 1.01*least {
			t.Fatalf("cost %g, could be %g: %+v", got, least, f)
		}
	}
}

func TestMPC(t *testing.T) {
	unknown := func(o *Observation) { o.Service = Unknown }
	session(t, "decisions", "mpc", []look{
		{0, 1, all(steady(0), there(0, 0)), 1, "idle"},
		{2, 2, all(unknown, queue(10)), 4, "unknown"}, // twice the slots there are, as staffing
	})
	p, m := make1(t, "mpc"), Memory{}
	lag := func(seconds Maybe) func(*Observation) { return func(o *Observation) { o.StartupLag = seconds } }
	p.Decide(farm(steady(20), lag(1)), m)
	near(t, "first lag", m["lag"], 1, 0)
	p.Decide(farm(steady(20), lag(11)), m)
	near(t, "averaged", m["lag"], 4, 1e-12) // 1 + 0.3·10
	p.Decide(farm(steady(20), lag(Unknown)), m)
	near(t, "unknown: an interval", m["lag"], 3.4, 1e-12)

	few := make1(t, "mpc:late=0.1").Decide(farm(steady(100), replicas(5)), Memory{}).Replicas
	many := make1(t, "mpc:late=10").Decide(farm(steady(100), replicas(5)), Memory{}).Replicas
	if few >= many || few < 4 {
		t.Errorf("%d where lateness weighs little, %d where it weighs much", few, many)
	}
}
