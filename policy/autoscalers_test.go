package policy

import "testing"

func TestHPA(t *testing.T) {
	// 4 slots at work of 0.8: u = 4/(0.8·2) = 2.5, ⌈4/0.8⌉ = 5; at most max(2·2, 4).
	session(t, "defaults", "hpa", []look{
		{0, 2, atWork(4), 4, "4 slots at work at 0.8 a replica: SucceededRescale, ScaleUpLimit"},
		{2, 4, atWork(4), 4, "it looks again in 13 s"},
		{16, 4, atWork(4), 5, ""},
		{30, 5, atWork(4.3), 5, ""}, // u = 1.075, inside of the tolerance
		{46, 5, atWork(4.5), 6, ""}, // u = 1.125, ⌈5.6⌉
		{60, 6, atWork(0.7), 6, "ScaleDownStabilized"},
		{346, 6, atWork(0.7), 6, ""}, // 6 was proposed 300 s ago
		{361, 6, atWork(0.7), 1, ""},
	})
	session(t, "tasks", "hpa:metric=tasks,target=1.5", []look{
		{0, 9, there(20, 9), 18, "ScaleUpLimit"}, // ⌈29/1.5⌉ = 20, at most 2·9
		{15, 18, there(20, 9), 20, ""},
	})
	session(t, "slots", "hpa", []look{
		{0, 4, all(atWork(16), func(o *Observation) { o.Slots = 4 }), 5, "3.2 a replica"}, // u = 1.25
	})
	// A behavior block: pods 2 or ⌈2·1.5⌉ − 2 = 1 in 60 s; the larger.
	session(t, "rules", "hpa:pods=2,percent=50,period=60", []look{
		{0, 2, atWork(8), 4, "ScaleUpLimit"},
		{15, 4, atWork(8), 4, ""}, // 2 were added within the minute
		{46, 4, atWork(8), 4, ""},
		{61, 4, atWork(8), 6, ""}, // exactly a minute ago does not count
	})
	session(t, "slow down", "hpa:window=0,downpercent=10,period=60", []look{
		{0, 20, atWork(4), 18, "ScaleDownLimit"},
		{30, 18, atWork(4), 18, ""},
		{62, 18, atWork(4), 16, ""}, // trunc(18·0.9)
	})
	session(t, "the least of a minute upwards", "hpa:upwindow=60", []look{
		{0, 2, atWork(1.6), 2, ""},
		{15, 2, atWork(4), 2, "ScaleUpStabilized"},
		{60, 2, atWork(4), 5, ""},
	})
	session(t, "bounds", "hpa", []look{
		{0, 70, atWork(4), 64, "SucceededRescale"},
		{15, 0, atWork(4), 0, ""}, // disabled: the least is 1
		{30, 40, atWork(80), 64, "TooManyReplicas"},
	})
}

func TestKEDA(t *testing.T) {
	session(t, "from one up", "keda", []look{
		{0, 2, there(18, 2), 4, "20 tasks in the farm at 5 a replica"}, // u = 20/(5·2) = 2
		{2, 4, there(88, 2), 4, "looks again in 13 s"},
		{16, 4, there(88, 2), 8, "ScaleUpLimit"}, // ⌈90/5⌉ = 18, at most 2·4
	})
	session(t, "waiting alone", "keda:inflight=no", []look{{0, 4, there(18, 4), 4, ""}}) // 18/20 = 0.9, tolerated
	none := func(o *Observation) { o.Min = 0 }
	session(t, "to zero and back", "keda:window=0", []look{
		{0, 2, all(none, there(0, 1)), 2, "ScaleDownStabilized"}, // the count found counts as proposed now
		{30, 2, all(none, there(0, 0)), 1, ""},
		{290, 1, all(none, there(0, 0)), 1, ""},
		{302, 1, all(none, there(0, 0)), 1, "looks again"}, // polls at 30, 290, 320
		{320, 1, all(none, there(0, 0)), 0, "switched to 0"},
		{322, 0, all(none, there(9, 0)), 0, "looks again in 28 s"},
		{350, 0, all(none, there(9, 0)), 1, "9 tasks, active above 0: switched to 1"},
	})
	session(t, "activation", "keda:activation=10", []look{
		{0, 0, all(none, there(10, 0)), 0, ""},
		{30, 0, all(none, there(11, 0)), 1, ""},
		{60, 0, all(there(11, 0), func(o *Observation) { o.Min = 3 }), 3, ""},
	})
}

func TestKPA(t *testing.T) {
	// Mean concurrency over a minute by 0.7: ⌈3.5/0.7⌉ = 5.
	session(t, "mean", "kpa", []look{
		{0, 1, there(0, 3), 5, "3 tasks over 60 s, 3 over 6 s, at 0.7 a replica; it panics"}, // ⌈3/0.7⌉ = 5 ≥ 2·1
		{2, 5, there(1, 3), 5, "3.5 tasks over 60 s"},
		{4, 5, there(0, 3), 5, "3.33 tasks over 60 s"},
	})
	// (4 + 4 + 20)/3 = 9.33 in both windows: ⌈13.3⌉ = 14 ≥ 2·6. Then calm until the minute
	// is over: the last panic is at 6 s, when (4 + 20 + 4)/3 are needed of 14 ready.
	session(t, "panic", "kpa", []look{
		{0, 6, there(0, 4), 6, ""}, // begins in panic at 6: a restart drops nothing
		{2, 6, there(0, 4), 6, ""},
		{4, 6, there(14, 6), 14, "9.33 over 6 s"},
		{6, 14, there(0, 4), 14, "it panics"},
		{8, 14, there(0, 4), 14, ""},
		{64, 14, there(0, 4), 14, "it panics"}, // 4 + 60 is not before 64
		{66, 14, there(0, 4), 7, ""},           // ⌈4/0.7⌉ = 6, not below half of 14
	})
	session(t, "up rate", "kpa:up=1.5", []look{{0, 4, there(96, 4), 6, ""}})
	session(t, "slots", "kpa:target=0.5", []look{{0, 1, all(there(0, 8), func(o *Observation) { o.Slots = 4 }), 4, "2 a replica"}})
	session(t, "activation", "kpa:activation=4", []look{{0, 1, there(0, 1), 4, ""}})
	session(t, "delay", "kpa:delay=10,window=6,panicwindow=1,panic=10", []look{
		{0, 1, there(0, 1), 2, ""},
		{2, 2, there(6, 2), 7, ""}, // mean of 1 and 8
		{4, 7, there(0, 0), 7, ""}, // of 10 s
		{10, 7, there(0, 0), 7, ""},
		{12, 7, there(0, 0), 5, ""}, // ⌈3/0.7⌉ of 4 s
		{14, 5, there(0, 0), 3, ""}, // ⌊7/2⌋ of 10 s
	})
	idle := all(there(0, 0), func(o *Observation) { o.Min = 0 })
	session(t, "grace", "kpa:grace=5", []look{
		{0, 1, idle, 1, "the last one stays a while"},
		{4, 1, idle, 1, ""},
		{6, 1, idle, 0, ""},
		{8, 0, idle, 0, ""},
		{10, 0, all(idle, there(2, 0)), 1, ""}, // 2 of 6 samples: ⌈0.33/0.7⌉
	})
	// Weighted by 1 − 0.0001^(1/30) = 0.264: 0.264·10 = 2.64, ⌈2.64/0.7⌉ = 4.
	session(t, "weighted", "kpa:average=weighted,panicwindow=1", []look{{0, 1, there(0, 10), 4, "2.64 tasks"}})
}

// Where the interval changes the buckets are other ones.
func TestKPAForgetsBucketsOfAnotherWidth(t *testing.T) {
	p, m := make1(t, "kpa"), Memory{}
	p.Decide(farm(steady(20), there(40, 0)), m)
	d := p.Decide(farm(steady(20), there(0, 1), func(o *Observation) { o.Interval = 10 }), m)
	if d.Replicas != 2 || m["width"] != 10 {
		t.Errorf("%+v, remembers %v", d, m)
	}
}

// A decision that was missed has the value of the next; a longer silence is none.
func TestHold(t *testing.T) {
	b, m := bucketsOf("b", 6), Memory{}
	hold(&b, m, 10, 6)
	hold(&b, m, 12, 3)
	near(t, "two of three", b.average(m, 12), 4, 0)
	hold(&b, m, 12, 9)
	near(t, "once a bucket", b.average(m, 12), 4, 0)
	hold(&b, m, 17, 12)
	near(t, "after four missed", b.average(m, 17), 2.5, 0) // (3 + 12)/6
	hold(&b, m, 5, 1)
	near(t, "the clock went back", b.average(m, 5), 1, 0)
}
