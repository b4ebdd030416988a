package sim

import (
	"math"
	"slices"
	"testing"

	"farmhand/policy"
	"farmhand/sim/workload"
	"farmhand/skeleton"
)

// order is the order in which tasks begin at one replica, told by their services:
// task i takes 1 + i/1000 s.
func beginOrder(t *testing.T, tasks *workload.Tasks, fifo bool) []int32 {
	t.Helper()
	for i := range tasks.At {
		tasks.Service = append(tasks.Service, 1+float64(i)/1000)
	}
	tasks.Horizon = 100
	sc := plain(1)
	sc.Farm.FIFO = fifo
	sc.Farm.Interval = 0.5
	s := begin(t, sc, tasks, 1)
	var list []int32
	for s.Advance() {
		for i := range s.leases {
			if task := s.leases[i].task; task != none && !slices.Contains(list, task) {
				list = append(list, task)
			}
		}
	}
	return list
}

// Classes are strict, tenants take turns, then due, then arrival; one that waited
// ten times its deadline is served next.
func TestOrderOfService(t *testing.T) {
	at := []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5}
	for _, c := range []struct {
		name  string
		tasks workload.Tasks
		fifo  bool
		want  []int32
	}{
		{"arrival", workload.Tasks{At: at}, false, []int32{0, 1, 2, 3, 4, 5}},
		{"classes", workload.Tasks{At: at, Class: []uint8{5, 5, 5, 0, 1, 5}}, false, []int32{0, 3, 4, 1, 2, 5}},
		{"tenants", workload.Tasks{At: at, Tenant: []uint16{7, 7, 7, 7, 2, 2}}, false, []int32{0, 1, 4, 2, 5, 3}},
		{"dues", workload.Tasks{At: at, Deadline: []float64{9, 9, 8, 0, 7, 20}}, false, []int32{0, 4, 2, 1, 5, 3}},
		{"ageing", workload.Tasks{At: at, Class: []uint8{0, 5, 0, 0, 0, 0}, Deadline: []float64{0, 0.15, 0, 0, 0, 0}}, false, []int32{0, 2, 1, 3, 4, 5}},
		{"as they arrive", workload.Tasks{At: at, Class: []uint8{5, 5, 5, 0, 1, 5}, Deadline: []float64{9, 9, 8, 0, 7, 20}}, true, []int32{0, 1, 2, 3, 4, 5}},
	} {
		if got := beginOrder(t, &c.tasks, c.fifo); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Attempts that fail are tried again, each under every platform or none, and after
// so many the task is dead, and late.
func TestFailedAttemptsAreTriedAgain(t *testing.T) {
	var dead, mean sample
	for seed := range uint64(30) {
		sc := plain(50)
		sc.Farm.Failing, sc.Farm.Attempts, sc.Farm.Deadline = 0.5, 3, 1000
		tasks := poisson(seed, 50, exponential(0.1), 300)
		for i := range tasks.At { // the last attempts end before the horizon
			tasks.At[i] *= 0.9
		}
		r := begin(t, sc, tasks, seed).coast()
		if r.Unfinished > 0 || r.Late != r.Dead || r.Decided != r.Tasks || r.Lost > 0 {
			t.Fatalf("%+v", r)
		}
		sc.Platform = workload.Platform{Answer: constant(0.05), Balance: workload.RandomReplica}
		sc.Farm.Start = 60
		if other := begin(t, sc, tasks, seed).coast(); other.Dead != r.Dead {
			t.Fatalf("%d tasks are dead on one platform, %d on another", r.Dead, other.Dead)
		}
		dead = append(dead, float64(r.Dead)/float64(r.Tasks))
		mean = append(mean, r.Wait)
	}
	dead.contains(t, "share dead", 0.125, 0)
	// Back-off is uniform up to 0.5 s, then up to 1 s. Of the done, 4/7 needed one attempt, 2/7 two, 1/7 three.
	mean.contains(t, "mean wait", (2*(0.1+0.25)+1*(0.2+0.25+0.5))/7, 0.01)
}

// An attempt ends at its timeout, and its slot is free.
func TestTimeouts(t *testing.T) {
	sc, tasks := byHand(1, 200, [2]float64{1, 7}, [2]float64{1, 2})
	sc.Farm.Timeout, sc.Farm.Attempts, sc.Farm.Deadline = 3, 2, 100
	s := begin(t, sc, tasks, 1)
	r := script(t, s, nil, func(at float64, o *policy.Observation) {
		if at == 4 && (o.Running != 1 || o.Delayed+o.Waiting != 1) {
			t.Errorf("%g run, %g are delayed, %g wait", o.Running, o.Delayed, o.Waiting)
		}
	})
	if r.Done != 1 || r.Dead != 1 || r.Late != 1 || r.Decided != 2 {
		t.Errorf("%+v", r)
	}
	about(t, "sojourn of the good one", r.MaxSojourn, 3+2)
	about(t, "busy slot-seconds", r.BusyFraction*200, 3+3+2)
	if s.count.actions != 0 || skeleton.DefaultAttempts < 2 {
		t.Error("something was scaled")
	}
}

// A task is late from its due on: at once in Totals, and in the gauge; at its end
// in what the ledger counts.
func TestLatenessIsCountedAtOnce(t *testing.T) {
	sc, tasks := byHand(1, 20, [2]float64{0.5, 10}, [2]float64{0.5, 2.5}, [2]float64{19.5, 0.1})
	sc.Farm.Deadline = 3
	s := begin(t, sc, tasks, 1)
	r := script(t, s, nil, func(at float64, o *policy.Observation) {
		late, overdue := 0, 0
		if at >= 4 {
			late, overdue = 2, 2
		}
		if at >= 12 {
			overdue = 1
		}
		if at >= 14 {
			overdue = 0
		}
		if got := s.Totals(); got.Late != late || got.Decided != late || o.Overdue != policy.Maybe(overdue) {
			t.Errorf("at %g s: %d of %d late, %g overdue", at, got.Late, got.Decided, o.Overdue)
		}
		if at == 14 && (o.Short.Late != 2 || o.Short.Decided != 2) {
			t.Errorf("the ledger counted %g of %g late", o.Short.Late, o.Short.Decided)
		}
		if at == 2 && (math.Abs(float64(o.NextDue)-1.5) > 1e-6 || math.Abs(float64(o.OldestWait)-1.5) > 1e-6 || math.Abs(float64(o.RunningAge)-1.5) > 1e-6) {
			t.Errorf("due in %g s, waits for %g s, runs for %g s", o.NextDue, o.OldestWait, o.RunningAge)
		}
	})
	// Both were decided in the interval of their due, whenever they ended.
	if r.Late != 2 || r.Decided != 3 || r.Windows != 2 || r.Violating != 1 {
		t.Errorf("%+v", r)
	}
}

// What is unfinished at the end, and has a due, is late.
func TestUnfinishedIsLate(t *testing.T) {
	sc, tasks := byHand(1, 10, [2]float64{1, 2}, [2]float64{2, 100}, [2]float64{9.9, 1})
	sc.Farm.Deadline = 50
	r := begin(t, sc, tasks, 1).coast()
	if r.Unfinished != 2 || r.Late != 2 || r.Decided != 3 || r.Done != 1 || math.Abs(float64(r.OnTime())-1/3.0) > 1e-12 {
		t.Errorf("%+v", r)
	}
	sc.Farm.Deadline = 0
	if r := begin(t, sc, tasks, 1).coast(); r.Decided != 0 || r.OnTime().Known() {
		t.Errorf("without a due: %+v", r)
	}
}

// Overhead keeps a slot busy and is part of the service; the way of the answer is
// part of the sojourn alone.
func TestOverheadAndAnswer(t *testing.T) {
	sc, tasks := byHand(1, 10, [2]float64{1, 2}, [2]float64{1, 2})
	sc.Platform = workload.Platform{Overhead: 0.5, Answer: constant(0.25)}
	r := begin(t, sc, tasks, 1).coast()
	about(t, "service", r.Service, 2.5)
	about(t, "longest sojourn", r.MaxSojourn, 2.5+2.5+0.25)
	about(t, "busy", r.BusyFraction, 0.5)
}

// More than the replicas can ever do is marked.
func TestSaturationIsMarked(t *testing.T) {
	sc := plain(2)
	sc.Farm.Max = 4
	if r := begin(t, sc, poisson(1, 30, exponential(0.1), 100), 1).coast(); r.Saturated {
		t.Error("3 Erlangs saturate 4 replicas")
	}
	tasks := poisson(1, 50, exponential(0.1), 100)
	if r := begin(t, sc, tasks, 1).coast(); !r.Saturated {
		t.Error("5 Erlangs do not saturate 4 replicas")
	}
	sc.Farm.Slots = 2
	if r := begin(t, sc, tasks, 1).coast(); r.Saturated {
		t.Error("5 Erlangs saturate 8 slots")
	}
	sc.Platform.Cap = 2
	if r := begin(t, sc, tasks, 1).coast(); !r.Saturated {
		t.Error("5 Erlangs do not saturate the platform's 4 slots")
	}
}

// A result that holds its task's place keeps others waiting until it is accepted.
func TestHeldAnswerKeepsThePlace(t *testing.T) {
	sc, tasks := byHand(1, 20, [2]float64{1, 1}, [2]float64{1, 1}, [2]float64{9, 1})
	sc.Platform = workload.Platform{Answer: workload.Held{Value: 0.25}}
	s := begin(t, sc, tasks, 1)
	r := script(t, s, nil, func(at float64, o *policy.Observation) {
		if want := map[float64]policy.Maybe{2: 1, 4: 0}[at]; (at == 2 || at == 4) && o.Running != want { // until 2, and 2.25; from 2.25 to 3.25, and 3.5
			t.Errorf("at %g s: %g run, want %g", at, o.Running, want)
		}
	})
	about(t, "longest sojourn", r.MaxSojourn, 2.5)
	about(t, "mean wait", r.Wait, 1.25/3)
	about(t, "mean service", r.Service, 1)
}
