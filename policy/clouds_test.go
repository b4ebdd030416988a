package policy

import "testing"

// results makes tasks end at a rate over the short window.
func results(rate float64) func(*Observation) {
	return func(o *Observation) { o.Short.Done = rate * o.Short.Covered }
}

func TestOpenFaaSCE(t *testing.T) {
	// Looks at 0, 15, 30 …; above at two of them, told 5 s later, then each 30 s. A step is
	// ⌈5·20/100⌉ = 1.
	session(t, "up and straight back", "openfaas-ce", []look{
		{0, 1, results(9), 1, "9 results/s, alert above 5: as it is"},
		{16, 1, results(9), 1, ""}, // fires now
		{20, 1, results(9), 1, ""},
		{22, 1, results(9), 2, "firing: a step up"},
		{24, 2, results(9), 2, ""},
		{52, 2, results(9), 3, ""},
		{82, 3, results(9), 4, ""},
		{112, 4, results(9), 5, ""},
		{142, 5, results(9), 5, ""},
		{150, 5, results(5), 5, ""},
		{158, 5, results(5), 5, ""}, // the look of 157
		{162, 5, results(5), 5, ""},
		{164, 5, results(5), 1, "resolved: the least"},
		{166, 1, results(5), 1, "as it is"},
	})
	session(t, "half of nine", "openfaas-ce:factor=50,cap=9", []look{
		{0, 2, results(9), 2, ""},
		{15, 2, results(9), 2, ""},
		{20, 2, results(9), 7, ""}, // ⌈9/2⌉ = 5 more
		{50, 7, results(9), 9, ""},
	})
	session(t, "factor 0", "openfaas-ce:factor=0", []look{
		{0, 2, results(9), 2, ""}, {15, 2, results(9), 2, ""}, {20, 2, results(9), 2, ""},
	})
	session(t, "once above", "openfaas-ce", []look{
		{0, 1, results(9), 1, ""}, {15, 1, results(4), 1, ""}, {30, 1, results(9), 1, ""}, {36, 1, results(9), 1, ""},
	})
}

func TestOpenFaaSPro(t *testing.T) {
	none := func(o *Observation) { o.Min = 0 }
	session(t, "rps", "openfaas-pro", []look{
		{0, 1, results(199.2), 5, "200 results/s at 45 a replica"}, // ⌈200/45⌉
		{2, 5, results(20), 5, "looks again in 13 s"},
		{15, 5, results(20), 1, ""},
	})
	session(t, "window", "openfaas-pro:window=60,look=2", []look{
		{0, 1, results(200), 5, ""}, {60, 5, results(20), 5, ""}, {62, 5, results(20), 1, ""},
	})
	session(t, "capacity, the most of 45 s", "openfaas-pro:type=capacity,target=1,look=1", []look{
		{0, 4, there(9, 4), 5, "4 tasks run at 0.9 a replica"}, // ⌈4/0.9⌉
		{10, 5, there(9, 5), 6, ""},
		{55, 6, there(0, 1), 6, ""},
		{56, 6, there(0, 1), 2, ""},
	})
	session(t, "queue", "openfaas-pro:type=queue,target=1,proportion=1", []look{
		{0, 1, there(30, 1), 30, "30 tasks wait at 1 a replica"},
		{15, 30, there(90, 1), 64, ""},
		{30, 64, there(0, 0), 1, ""},
	})
	session(t, "zero", "openfaas-pro:idle=60,look=10", []look{
		{0, 1, all(none, there(0, 1)), 1, ""},
		{50, 1, all(none, there(0, 0)), 1, ""},
		{60, 1, all(none, there(0, 0)), 0, ""},
		{62, 0, all(none, there(0, 0)), 0, "at zero with 0 tasks"},
		{64, 0, all(none, there(1, 0)), 1, "at zero with 1 tasks"},
	})
}

func TestTargetTracking(t *testing.T) {
	// Points of 10 s. 4 slots at work on 4: 1 per slot; ⌈4/0.5⌉ = 8.
	session(t, "out after two points, in after three", "target-tracking:target=0.5,period=10,up=2,down=3,cooldown=30", []look{
		{0, 4, atWork(4), 4, "looks again in 10 s"},
		{10, 4, atWork(4), 4, "1 per slot, target 0.5; above at 1 points"},
		{20, 4, atWork(4), 8, "out"},
		{30, 8, atWork(3.7), 8, ""}, // 0.4625: neither
		{40, 8, atWork(1), 8, "below at 1: as it is"},
		{50, 8, atWork(1), 8, ""},
		{60, 8, atWork(1), 2, "in"},
		{70, 2, atWork(0.1), 2, ""},
		{80, 2, atWork(0.1), 2, ""},
		{88, 2, atWork(0.1), 2, ""},
		{90, 2, atWork(0.1), 1, "in"},
	})
	session(t, "a point is a mean", "target-tracking:target=0.5,period=10,up=1", []look{
		{0, 4, atWork(0), 4, ""}, {5, 4, atWork(1), 4, ""}, {10, 4, atWork(8), 6, "3 slots at work, 0.75 per slot"},
	})
	session(t, "in waits for the cooldown", "target-tracking:period=10,up=1,down=1,cooldown=60", []look{
		{0, 2, atWork(4), 2, ""}, {10, 2, atWork(4), 6, ""}, {20, 6, atWork(1), 6, ""},
		{60, 6, atWork(1), 6, ""}, {70, 6, atWork(1), 2, ""},
	})
	session(t, "what starts is not asked for twice", "target-tracking:period=10,up=1", []look{
		{0, 2, atWork(2), 2, ""},
		{10, 2, atWork(2), 3, ""}, // ⌈2/0.7⌉
		{20, 3, all(atWork(2), func(o *Observation) { o.Ready = 2 }), 3, ""},
	})
}

func TestStepScaling(t *testing.T) {
	// From 0.8 on, a step more each 0.2.
	session(t, "steps", "step-scaling:metric=tasks,period=10,warmup=0,cooldown=20", []look{
		{0, 10, there(0, 8), 10, ""},
		{10, 10, there(0, 8), 11, "0.8 per slot"},
		{20, 10, there(5, 10), 14, ""},   // (1.5 − 0.8)/0.2 = 3.5: the fourth step
		{30, 10, there(900, 10), 20, ""}, // the tenth is the last
		{40, 10, there(0, 5), 10, ""},
		{50, 10, there(0, 1), 8, ""}, // (0.4 − 0.1)/0.2 = 1.5: two
		{60, 8, there(0, 1), 8, ""},  // 10 s after a change
		{70, 8, there(0, 1), 6, ""},
	})
	session(t, "warm-up", "step-scaling:metric=tasks,period=10,warmup=60", []look{
		{0, 10, there(0, 10), 10, ""},
		{10, 10, there(0, 10), 12, ""}, // two
		{20, 12, there(0, 12), 12, ""}, // two more, which are on the way
		{30, 12, there(6, 12), 14, ""}, // 1.5: four, two of them on the way
		{71, 14, there(0, 14), 16, ""}, // 61 s after the first: anew
	})
	session(t, "percent", "step-scaling:metric=tasks,period=10,step=10,change=percent", []look{
		{0, 25, there(0, 25), 25, ""},
		{10, 25, there(0, 25), 30, ""}, // two steps of 10 % of 25
	})
	session(t, "at least one", "step-scaling:metric=tasks,period=10,step=10,change=percent", []look{
		{0, 2, there(0, 2), 2, ""}, {10, 2, there(0, 2), 3, ""},
	})
	session(t, "three points", "step-scaling:metric=tasks,period=10,points=3", []look{
		{0, 2, there(0, 2), 2, ""}, {10, 2, there(0, 2), 2, ""}, {20, 2, there(0, 2), 2, ""}, {30, 2, there(0, 2), 4, ""},
	})
}

func TestDaskAdaptive(t *testing.T) {
	slow := func(o *Observation) { o.Service = 1 }
	session(t, "up at once, down after three votes", "dask-adaptive", []look{
		{0, 2, all(slow, there(18, 2)), 4, "20 tasks of 1 s each in 5 s need 4: at once"},
		{2, 4, all(slow, there(60, 4)), 13, ""}, // ⌈64/5⌉
		{4, 13, all(slow, there(0, 2)), 13, "not yet"},
		{6, 13, all(slow, there(0, 2)), 13, ""},
		{8, 13, all(slow, there(0, 2)), 2, "only idle ones go"}, // ⌈2/5⌉ = 1, but two run
		{10, 2, all(slow, there(3, 2)), 2, ""},                  // one is enough; voted on
	})
	session(t, "votes begin anew", "dask-adaptive:votes=2", []look{
		{0, 4, all(slow, there(0, 1)), 4, ""}, {2, 4, all(slow, there(20, 4)), 5, ""}, {4, 5, all(slow, there(0, 1)), 5, ""}, {6, 5, all(slow, there(0, 1)), 1, ""},
	})
	session(t, "no more than tasks", "dask-adaptive", []look{
		{0, 1, all(there(2, 1), func(o *Observation) { o.Service = 600 }), 3, ""},
	})
	session(t, "slots", "dask-adaptive", []look{
		{0, 1, all(slow, there(20, 0), func(o *Observation) { o.Slots = 4 }), 1, ""}, // 4 slots
	})
	session(t, "durations unknown", "dask-adaptive:duration=1", []look{
		{0, 1, all(there(7, 1), func(o *Observation) { o.Service = Unknown }), 4, "8 tasks of 500 ms"},
	})
	session(t, "from zero", "dask-adaptive", []look{{0, 0, there(1, 0), 1, ""}})
}
