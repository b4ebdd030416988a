package test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"farmhand/controller"
)

// The controller is killed again and again under a step up and a step down of
// load: as soon as it has decided three times, which is every 13 s, since its lease
// of 10 s outlives it (30 s in P31 and P32). The farm goes up and down all the
// same. No cooldown and no token is forgotten, time without a controller is paid
// from the budget, and nobody begins with an empty past (P31, P32, P76, P81; the
// cooldown, 60 s by default, is 25 s: longer than two leases).
func TestControllerKilled(t *testing.T) {
	t.Parallel()
	const down = 25
	f, _ := steer(t, config{farm: map[string]string{"farmhand.budget": "100", "farmhand.policy": fmt.Sprintf("staffing:drain=0,down=%d", down)}})
	defer f.explained("worker")
	f.begun()
	var owner string
	var seq int64
	kills, decided := 0, 0
	kill := func() {
		r := f.last()
		if r == nil || r.Seq == seq {
			return
		}
		if seq = r.Seq; r.Controller != owner {
			owner, decided = r.Controller, 0
		}
		if decided++; decided == 3 {
			f.signal("controller", syscall.SIGKILL)
			kills++
		}
	}
	until(t, patience, "a controller is killed", func() bool { kill(); return kills == 1 })
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	begun := time.Now()
	until(t, patience, "it has scaled up", func() bool { kill(); return f.desired("worker") >= 5 })
	up := time.Since(begun)
	until(t, patience, "the next one is killed", func() bool { kill(); return kills == 2 })
	end()
	begun = time.Now()
	seq = f.last().Seq
	f.more(1, "a cooldown has begun", func(r *controller.Receipt) bool { return strings.Contains(r.Why(), "was wished within") })
	if n := f.desired("worker"); n < 5 {
		t.Errorf("it has gone down to %d at once", n)
	}
	f.signal("controller", syscall.SIGKILL)
	until(t, patience, "it has scaled down", func() bool { return f.desired("worker") == 1 })
	t.Logf("up after %s, down after %s", up.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))

	list := f.told("worker")
	d := held(t, list, down, seq)
	if t.Logf("cooldowns of %d s have taken %.1f s at most", down, d); d > down+3 {
		t.Errorf("a cooldown of %d s has taken %.1f s", down, d)
	}
	spent := 0.0
	for i := range list[1:] {
		spent += float64(list[i+1].Observation.Desired) * list[i+1].At.Sub(list[i].At).Seconds()
	}
	used := controller.Decide(list[len(list)-1].Inputs).Next.Used - controller.Decide(list[0].Inputs).Next.Used
	if used < 0.9*spent || used > 1.1*spent {
		t.Errorf("%.1f worker-seconds are used of %.1f", used, spent)
	}
}

// held expects that no wish was lowered before the last of its height was so many
// seconds old, and returns the longest time that it took after receipt seq. What
// the farm's most did not allow was no wish.
func held(t *testing.T, list []controller.Receipt, down float64, seq int64) (longest float64) {
	t.Helper()
	wish := func(r *controller.Receipt) int { return min(r.Wish.Replicas, r.Observation.Max) }
	for i := 1; i < len(list); i++ {
		r := &list[i]
		if r.Wish.Hold || wish(r) >= wish(&list[i-1]) {
			continue
		}
		for j := i - 1; j >= 0; j-- {
			w := &list[j]
			if wish(w) > wish(r) && !w.Wish.Hold && !strings.Contains(w.Wish.Reason, "was wished within") {
				d := r.At.Sub(w.At).Seconds()
				if r.Seq > seq {
					longest = max(longest, d)
				}
				if d < down {
					t.Errorf("receipt %d wishes for %d, %.1f s after %d: %s", r.Seq, wish(r), d, wish(w), r.Why())
				}
				break
			}
		}
	}
	return longest
}

// Of two controllers one decides. It is stopped past its lease, the other takes
// over, and what the first does when it wakes is nothing, though it was in the
// middle of a step; then the other way round. At no tick two of them own the farm,
// and fences rise (P64, P65, P78: time is that of Redis alone, whatever the clocks
// of the controllers say).
func TestTwoControllers(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{steered: true})
	defer f.explained("worker")
	a, b := f.front(), f.front()
	first := f.control(a.URL)
	f.begun()
	second := f.control(b.URL)
	f.more(2, "by the first", func(r *controller.Receipt) bool { return r.Controller == first.owner })
	if v := second.view(); v.Owner != first.owner {
		t.Errorf("the second shows the owner %s, want %s", v.Owner, first.owner)
	}

	first.signal(syscall.SIGSTOP)
	calls := len(a.of("worker"))
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	f.more(1, "by the second", func(r *controller.Receipt) bool { return r.Controller == second.owner })
	until(t, patience, "the second has scaled up", func() bool { return f.desired("worker") >= 5 })
	woken := time.Now()
	first.signal(syscall.SIGCONT)
	first.idle(woken, second.owner)
	for _, r := range f.more(5, "", nil) {
		if r.Controller != second.owner {
			t.Errorf("receipt %d is of %s", r.Seq, r.Controller)
		}
	}
	end()
	until(t, patience, "the second has scaled down", func() bool { return f.desired("worker") == 1 })
	if n := len(a.of("worker")); n != calls {
		t.Errorf("the first has called %d times since it was stopped", n-calls)
	}

	second.signal(syscall.SIGSTOP)
	f.more(3, "by the first again", func(r *controller.Receipt) bool { return r.Controller == first.owner })
	woken = time.Now()
	second.signal(syscall.SIGCONT)
	second.idle(woken, first.owner)

	list := f.told("worker")
	for i := 1; i < len(list); i++ {
		r, before := &list[i], &list[i-1]
		if r.Controller == before.Controller {
			continue
		}
		d := r.At.Sub(before.At)
		t.Logf("the farm changed hands after %s, fence %d to %d", d.Round(time.Millisecond), before.Fence, r.Fence)
		if r.Fence <= before.Fence || d < controller.LeaseTime || d > controller.LeaseTime+5*time.Second {
			t.Errorf("a lease of %s ended after %s, fence %d to %d", controller.LeaseTime, d, before.Fence, r.Fence)
		}
	}
}

// idle waits until a controller has gone through a whole pulse since an instant,
// and expects that it takes another for the owner. The first that ends may be one
// it was stopped in the middle of, which shows what it had read before.
func (s *steerer) idle(since time.Time, owner string) {
	s.f.t.Helper()
	for _, what := range []string{"ended the pulse it was in", "looked around"} {
		until(s.f.t, patience, "the woken controller has "+what, func() bool {
			var v controller.Overview
			s.ask(http.MethodGet, "/", "", &v)
			after := v.Updated.After(since)
			if after {
				since = v.Updated
			}
			return after
		})
	}
	if v := s.view(); v.Owner != owner {
		s.f.t.Errorf("it shows the owner %s, want %s", v.Owner, owner)
	}
}

// Redis is killed and comes back under load. Decisions go on where they were, with
// what was kept: state, overrides, the seconds of before (P30, P31, P36).
func TestControllerSurvivesRedis(t *testing.T) {
	t.Parallel()
	f, server := steer(t, config{farm: map[string]string{"farmhand.policy": "staffing:drain=0,down=5"}})
	defer f.explained("worker")
	f.begun()
	api := f.url + "/function/controller"
	if status := f.ask(api, http.MethodPatch, "/?farm=worker", `{"max": 6}`, nil); status != http.StatusOK {
		t.Fatalf("the override: %d", status)
	}
	end := f.stream("worker", 100*time.Millisecond, "600ms")
	until(t, patience, "the farm has its most workers", func() bool { return f.desired("worker") == 6 })
	for range 2 {
		before := f.last()
		server.Kill()
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
		list := f.more(5, "", nil)
		if list[0].Seq <= before.Seq || list[0].State.Used < before.State.Used {
			t.Errorf("receipt %d with %g worker-seconds follows %d with %g", list[0].Seq, list[0].State.Used, before.Seq, before.State.Used)
		}
		for _, r := range list {
			if r.Replicas < 2 || r.Replicas > 6 || r.Observation.Max != 6 {
				t.Errorf("receipt %d: %d replicas, at most %d: %s", r.Seq, r.Replicas, r.Observation.Max, r.Why())
			}
		}
	}
	var v controller.FarmView
	f.ask(api, http.MethodGet, "/?farm=worker", "", &v)
	if s := v.Settings["max"]; s.Value != "6" || s.Origin != "override" {
		t.Errorf("the override is %+v", s)
	}
	end()
	until(t, patience, "it has scaled down", func() bool { return f.desired("worker") == 1 })
	held(t, f.told("worker"), 5, 0)
	f.sound()
}

// The first task of a farm at zero wakes it at once, wherever in an interval it
// comes, and three tasks of a tenth of a second want one worker (P12). A burst at
// one worker is answered within an interval.
func TestWakeFromZero(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{steered: true, farm: map[string]string{"farmhand.min": "0", "farmhand.service": "100ms", "farmhand.deadline": "5s"}})
	defer f.explained("worker")
	g := f.front()
	s := f.control(g.URL)
	f.begun()
	farms := []string{"worker", "second", "third", "fourth"}
	for _, name := range farms[1:] {
		d := f.deployment()
		d.Service = name
		(*d.Labels)["com.openfaas.scale.min"] = "0" // it begins there
		if err := f.gateway.Deploy(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	const interval, slack = time.Second, 1700 * time.Millisecond // 0.3 s on a machine of its own; this one is shared
	for _, name := range farms {
		until(t, patience, "the farm is at zero, and known to be quiet", func() bool {
			r := f.lastOf(name)
			return r != nil && r.Observation.Desired == 0 && r.Observation.Ready == 0 && !r.Observation.Stale()
		})
		calls := len(g.of(name))
		begun := time.Now()
		job := f.submit(3, func(int) task { return task{"sleep": "100ms"} }, "worker", name)
		accepted := time.Since(begun)
		until(t, patience, "it is woken", func() bool { return len(g.of(name)) > calls })
		d := g.of(name)[calls].at.Sub(begun)
		t.Logf("a scale call %s after the submission began, which took %s", d.Round(time.Millisecond), accepted.Round(time.Millisecond))
		if d > 300*time.Millisecond+slack {
			t.Errorf("woken after %s", d)
		}
		if v := f.ended(job); v.Done != 3 {
			t.Errorf("%+v", v)
		}
		for _, a := range g.of(name)[calls:] {
			if a.n > 1 && name == "worker" { // of the others nothing is known, not even that it was quiet
				t.Errorf("%d workers are asked for, for three short tasks", a.n)
			}
		}
	}
	until(t, patience, "there is one worker", func() bool { v := s.view(); return v.Ready == 1 })
	calls := len(g.of("worker"))
	begun := time.Now()
	job := f.submit(60, func(int) task { return task{"sleep": "400ms"} })
	until(t, patience, "it scales up", func() bool { return len(g.of("worker")) > calls })
	d := g.of("worker")[calls].at.Sub(begun)
	t.Logf("a burst at one worker: a scale call to %d after %s", g.of("worker")[calls].n, d.Round(time.Millisecond))
	if d > interval+300*time.Millisecond+slack {
		t.Errorf("a burst at one worker is answered after %s", d)
	}
	f.unharmed(f.results(job, 60))
	f.told("worker")
}
