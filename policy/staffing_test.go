package policy

import (
	"strings"
	"testing"
	"time"
)

func TestStaffing(t *testing.T) {
	set := func(f func(o *Observation)) func(*Observation) { return f }
	patient := set(func(o *Observation) { o.Deadline = 0 })
	blind := set(func(o *Observation) { o.Service = Unknown })
	for _, c := range []struct {
		name   string
		spec   string
		o      *Observation
		want   int
		reason string
	}{
		// Shares on time by summing Erlang's series and 20,000 lognormal services:
		// load 4.4: 5 → 0.923, 6 → 0.993. Load 4: 5 → 0.9802. Load 8.8: 10 → 0.986.
		{"100/s", "staffing", farm(steady(100), replicas(6)), 6, "load 4.4 of 100/s at 40 ms; 6 for 95% within 150 ms"},
		{"100/s as they are", "staffing:headroom=1", farm(steady(100), replicas(5)), 5, "load 4"},
		{"the same at 99 %", "staffing:headroom=1", farm(steady(100), replicas(5), set(func(o *Observation) { o.Target = 0.99 })), 6, "99%"},
		{"20/s", "staffing", farm(steady(20)), 2, "load 0.88"},
		// Services within 150 ms: 0.9961, less a tenth of 0.001: 0.9960, so 8, not 64.
		{"a target out of reach", "staffing:headroom=1", farm(steady(100), replicas(7), set(func(o *Observation) { o.Target = 0.999 })), 8, "99.6%"},
		// A deadline of an eighth of the service: 4.4 + 0.5·√4.4 = 5.45.
		{"a deadline out of reach", "staffing", farm(steady(100), replicas(6), set(func(o *Observation) { o.Deadline = 0.005 })), 6, "6 for the load, as services take longer than 5 ms"},
		{"four slots each", "staffing", farm(steady(100), replicas(2), set(func(o *Observation) { o.Slots = 4 })), 2, "2 for 95%"},

		// No deadline: 4.4 + 0.5·2.098 = 5.45; with β 2: 8.6.
		{"no deadline", "staffing", farm(steady(100), replicas(6), patient), 6, "6 for the load"},
		{"no deadline, β 2", "staffing:beta=2", farm(steady(100), replicas(6), patient), 9, "9 for the load"},

		// 300·0.04 + (8.8 − 2)·0.75 = 17.1 slot-seconds in 0.75 + 2 s: 8.8 + 6.2 = 15.02.
		{"a burst", "staffing", farm(steady(20), rise(200), queue(300)), 16, "16 to catch up with 300 waiting in 2.75 s"},
		{"a burst, steady load only", "staffing:drain=0", farm(steady(20), rise(200), queue(300)), 11, "11 for 95%"},
		{"a burst, capped", "staffing:cap=9", farm(steady(20), rise(200), queue(300)), 9, "bounded to 9"},
		// Four that start count as two: (8.8 − 4)·0.75, 15.6 in all, 8.8 + 5.67 = 14.47.
		{"a burst, some start", "staffing", farm(steady(20), rise(200), queue(300), set(func(o *Observation) { o.Desired, o.Starting = 6, 4 })), 15, ""},
		// A job of 580 tasks of 1 s: 580 − 2·0.75 = 578.5 in 60 − 0.75 s: 9.76.
		{"a job without deadline", "staffing", farm(steady(0), queue(580), patient, set(func(o *Observation) {
			o.Service, o.NextDue, o.Last.Arrivals, o.Short.Arrivals, o.Long.Arrivals = 1, Unknown, 580, 580, 580
		})), 10, "10 to catch up with 580 waiting in 59.2 s"},
		// The same, due in 30 s: 578.5/29.25 = 19.8.
		{"a job with its own due", "staffing", farm(steady(0), queue(580), patient, set(func(o *Observation) {
			o.Service, o.NextDue, o.Last.Arrivals, o.Short.Arrivals, o.Long.Arrivals = 1, 30, 580, 580, 580
		})), 20, "in 29.2 s"},

		{"idle", "staffing", farm(steady(0), replicas(5)), 1, "idle: the least is 1"},
		{"idle, may be none", "staffing", farm(steady(0), replicas(5), set(func(o *Observation) { o.Min = 0 })), 0, "idle: the least is 0"},
		{"idle with a floor", "staffing:floor=3", farm(steady(0), replicas(5)), 3, "bounded to 3"},
		{"no arrivals, one runs", "staffing", farm(steady(0), set(func(o *Observation) { o.Min, o.Running = 0, 1 })), 1, "load 0"},
		// 20 tasks of ten minutes; one comes each ten seconds, so none until a replica works: 20 + 0.5·√20 = 22.2 is
		// more than there are tasks for.
		{"long tasks", "staffing", farm(steady(0), replicas(20), patient, set(func(o *Observation) { o.Service, o.Running = 600, 20 })), 20, "load 20 of running tasks"},
		{"long tasks, some wait", "staffing", farm(steady(0.1), replicas(20), patient, queue(5), set(func(o *Observation) { o.Service = 600 })), 25, "load 25 of 0.1/s"},
		// Starts of 100 s, looks each 30 s, tasks of ten minutes: no backlog is gone before.
		{"as many as tasks", "staffing", farm(steady(0), replicas(0), patient, queue(100), set(func(o *Observation) { o.Service, o.StartupLag, o.Interval = 600, 100, 30 })), 100, "in 600 s"},
		// Two slots; a job of 100 tasks of 0.5 s is due in 20 s: (50 − 2·2)/(20 − 2) = 2.6 slots.
		{"a job that has time", "staffing", farm(steady(0), replicas(1), set(func(o *Observation) {
			o.Deadline, o.NextDue, o.Slots, o.Service, o.StartupLag, o.Waiting, o.Running = 20, 20, 2, 0.5, 2, 100, 2
			o.Last.Arrivals, o.Short.Arrivals, o.Long.Arrivals = 100, 100, 100
		})), 2, "2 to catch up with 100 waiting in 18 s"},
		// 900 tasks of 1 s wait, 30 s old: 30 replicas are done in time, and fewer are not.
		{"half of a job", "staffing", farm(steady(0), replicas(30), patient, queue(900), set(func(o *Observation) { o.Service, o.StartupLag, o.OldestWait = 1, 25, 30 })), 30, ""},

		// Service unknown: 2 busy, 10 wait: twice the slots there are.
		{"no service, a queue", "staffing", farm(steady(5), blind, queue(10)), 4, "service time unknown: 2 tasks run, 10 wait"},
		{"no service, one waits", "staffing", farm(steady(5), blind, queue(1)), 3, ""},
		{"no service, from zero", "staffing", farm(steady(5), blind, replicas(0), queue(10)), 2, ""},
		{"no service, all slots busy: 4 + 0.5·2", "staffing", farm(steady(5), blind, replicas(4), set(func(o *Observation) { o.Busy = 1 })), 5, ""},
		{"no arrival rate", "staffing", farm(queue(10)), 4, "arrival rate unknown"},
	} {
		d := make1(t, c.spec).Decide(c.o, Memory{})
		if d.Replicas != c.want || d.Hold || !strings.Contains(d.Reason, c.reason) {
			t.Errorf("%s: %+v, want %d for %q", c.name, d, c.want, c.reason)
		}
	}
	if d := make1(t, "staffing").Decide(farm(), Memory{}); !d.Hold || d.Replicas != 2 {
		t.Errorf("knowing nothing: %+v", d)
	}
}

// After a burst what its load needs is held for a minute, then dropped; what its
// backlog needs only until it can have been worked off.
func TestStaffingHolds(t *testing.T) {
	p, m := make1(t, "staffing"), Memory{}
	if d := p.Decide(farm(steady(20), rise(200), queue(300)), m); d.Replicas != 16 {
		t.Fatalf("%+v", d)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{2, 16}, {5, 11}, {30, 11}, {60, 11}, {61, 2}, {62, 2}} {
		o := farm(steady(20), replicas(16))
		o.At = o.At.Add(c.after * time.Second)
		if d := p.Decide(o, m); d.Replicas != c.want {
			t.Errorf("after %d s: %+v, want %d", c.after, d, c.want)
		}
	}
	stale := farm(steady(20))
	stale.Age = Unknown
	if d := p.Decide(stale, m); !d.Hold {
		t.Errorf("%+v", d)
	}
}

// More load, a longer queue or a tighter target never wish for fewer replicas.
func TestStaffingIsMonotone(t *testing.T) {
	p := make1(t, "staffing")
	decide := func(change ...func(*Observation)) int { return p.Decide(farm(change...), Memory{}).Replicas }
	last := [3]int{}
	for i := 1; i <= 400; i++ {
		now := [3]int{
			decide(steady(float64(i)), replicas(64)),
			decide(steady(50), queue(float64(i))),
			decide(steady(50), replicas(64), func(o *Observation) { o.Target = float64(i) / 400 }),
		}
		for k := range now {
			if now[k] < last[k] {
				t.Fatalf("step %d: %v after %v", i, now, last)
			}
		}
		last = now
	}
}

func BenchmarkStaffing(b *testing.B) {
	p, o, m := make1(b, "staffing"), farm(steady(100)), Memory{}
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(o, m)
	}
}

func BenchmarkVector(b *testing.B) {
	o := farm(steady(100))
	v := o.Vector()
	b.ReportAllocs()
	for b.Loop() {
		v = o.AppendVector(v[:0])
	}
}

// What is off by default.
func TestStaffingTuned(t *testing.T) {
	// Short 120/s, long 100/s: 20/55 more a second; ten times that by 2.75 s is 10/s.
	growing := all(steady(100), func(o *Observation) { o.Short.Arrivals = 1200 })
	session(t, "trend", "staffing:trend=10", []look{{0, 6, growing, 7, "of 130/s"}})
	// 20 + 180·e^(−4/10) = 140.7, then 20 + 180·e^(−8/10).
	session(t, "window", "staffing:window=10,down=0", []look{
		{0, 11, steady(200), 11, "of 200/s"}, {4, 11, steady(20), 8, "of 141/s"}, {8, 8, steady(20), 6, "of 101/s"}, {12, 6, steady(200), 11, "of 200/s"},
	})
	session(t, "cooldown", "staffing:cooldown=30,down=0,drain=0", []look{
		{0, 2, steady(200), 11, ""},
		{10, 11, steady(20), 11, "the last change was too short ago"},
		{26, 11, steady(200), 11, ""},
		{30, 11, steady(20), 2, ""},
		{32, 2, steady(200), 11, ""},
	})
	// Up at once; down where a fifth more load would not need as many. 11 are for 185 to 207/s.
	session(t, "band", "staffing:band=0.2,down=0,drain=0", []look{
		{0, 10, steady(200), 11, ""}, {10, 11, steady(180), 11, "; 11 is near enough"}, {20, 11, steady(170), 11, "; 11 is near enough"}, {30, 11, steady(150), 8, ""},
	})
	session(t, "no band", "staffing:band=0,down=0,drain=0", []look{{0, 11, steady(180), 10, ""}})
	burst := all(steady(20), rise(200), queue(300))
	session(t, "boost", "staffing:boost=0.5", []look{{0, 2, burst, 24, "16 to catch up with 300 waiting in 2.75 s; a burst: 24"}})
	session(t, "boost, too late", "staffing:boost=0.5,hold=1", []look{{0, 2, burst, 16, ""}})
	session(t, "boost, no burst", "staffing:boost=0.5", []look{{0, 2, steady(100), 6, ""}})
}

// Replicas that never become ready are no reason to ask for ever more of them, as a
// backlog grows.
func TestStaffingInVain(t *testing.T) {
	growing := func(waiting float64, ready, starting int) func(*Observation) {
		return all(queue(waiting), func(o *Observation) {
			o.Deadline, o.NextDue, o.Service, o.Ready, o.Starting = 0, Unknown, 1, ready, starting
		})
	}
	// 20/s of 1 s are 22 Erlangs, and 1100 + (22 − 2 − 26/2)·0.75 slot-seconds in 59.25 s 18.7 more.
	session(t, "none comes", "staffing", []look{
		{0, 28, growing(100, 2, 26), 25, ""}, {58, 28, growing(1100, 2, 26), 41, ""}, {60, 41, growing(1100, 2, 39), 41, ""},
		{62, 41, growing(2000, 2, 39), 41, "; no more, as none has become ready"},
		{64, 41, growing(2000, 20, 21), 56, ""}, // some come: there is hope
	})
	session(t, "most are there", "staffing", []look{
		{0, 28, growing(100, 27, 1), 25, ""}, {62, 28, growing(2000, 27, 1), 54, ""},
	})
}
