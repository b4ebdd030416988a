package test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/internal/problem"
)

// Settings that cannot hold are named and refused, the last good value stays, also
// for a controller that begins while the annotation is wrong. A good override holds
// from the next decision on and ends when its time is over. Tasks that run do not
// notice any of it, and no worker is restarted (P20, P59).
func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{slots: 2, farm: map[string]string{"farmhand.target": "0.9"}})
	defer f.explained("worker")
	f.begun()
	api := f.url + "/function/controller"
	runs, gate := f.file("runs"), f.file("gate")
	job := f.submit(2, func(int) task { return task{"file": runs, "gate": gate} })
	until(t, patience, "the tasks run", func() bool { return len(f.notes(runs)) == 2 })
	patch := func(body string) (p problem.Problem, status int) {
		t.Helper()
		status = f.ask(api, http.MethodPatch, "/?farm=worker", body, &p)
		return p, status
	}
	view := func() (v controller.FarmView) {
		t.Helper()
		f.ask(api, http.MethodGet, "/?farm=worker", "", &v)
		return v
	}
	for body, field := range map[string]string{
		`{"slots": "many"}`: "slots", `{"slots": 0}`: "slots", `{"target": 1.5}`: "target", `{"policy": "magic"}`: "policy",
		`{"policy": "staffing:down=-1"}`: "policy", `{"mode": "maybe"}`: "mode", `{"replicas": 3}`: "replicas", `{"slots": 3, "for": "-1s"}`: "for",
		`{"slots": [3]}`: "slots", `{"min": 9}`: "min", `{}`: "body",
	} {
		p, status := patch(body)
		if status != http.StatusUnprocessableEntity || p.Field != field || p.Fix == "" {
			t.Errorf("%s: %d, %+v", body, status, p)
		}
	}
	if s := view().Settings["slots"]; s.Value != "2" || s.Origin != "annotation" {
		t.Errorf("after refused overrides, slots are %+v", s)
	}

	if _, status := patch(`{"target": 0.8, "for": "3s"}`); status != http.StatusOK {
		t.Fatalf("a good override: %d", status)
	}
	begun := time.Now()
	if r := f.more(2, "", nil)[1]; r.Observation.Target != 0.8 {
		t.Errorf("two decisions later the target is %g", r.Observation.Target)
	}
	if s := view().Settings["target"]; s.Value != "0.8" || s.Origin != "override" || s.Until.IsZero() {
		t.Errorf("the override is shown as %+v", s)
	}
	f.more(1, "the override is over", func(r *controller.Receipt) bool { return r.Observation.Target == 0.9 })
	if d := time.Since(begun); d < 2*time.Second {
		t.Errorf("an override for 3 s was over after %s", d)
	}
	if s := view().Settings["target"]; s.Value != "0.9" || s.Origin != "annotation" {
		t.Errorf("after the override, the target is %+v", s)
	}
	f.touch(gate)
	f.unharmed(f.results(job, 2))
	if n := len(f.notes(runs)); n != 2 {
		t.Errorf("the tasks have run %d times", n)
	}

	d := f.deployment()
	for name, value := range map[string]string{"farmhand.slots": "many", "farmhand.policy": "magic", "farmhand.target": "95%", "farmhand.colour": "red"} {
		(*d.Annotations)[name] = value
	}
	if err := f.gateway.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	named := func() bool {
		problems := view().Problems
		for _, name := range []string{"farmhand.slots", "farmhand.policy", "farmhand.target", "farmhand.colour"} {
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, name+": ") && strings.Contains(p, "want") }) {
				return false
			}
		}
		return true
	}
	until(t, patience, "the problems are named", named)
	good := func() {
		t.Helper()
		r := f.more(2, "", nil)[1]
		if r.Observation.Slots != 2 || r.Observation.Target != 0.9 || r.Policy != "staffing:down=5" {
			t.Errorf("slots %d, target %g, policy %s are not the last good ones", r.Observation.Slots, r.Observation.Target, r.Policy)
		}
	}
	good()
	v := view()
	for name, want := range map[string]string{"slots": "2", "target": "0.9", "policy": "staffing:down=5"} {
		if s := v.Settings[name]; s.Value != want {
			t.Errorf("%s is shown as %+v, what holds is %s", name, s, want)
		}
	}
	before := f.last().Controller
	f.signal("controller", syscall.SIGTERM)
	f.more(1, "by another controller", func(r *controller.Receipt) bool { return r.Controller != before })
	good()
	until(t, patience, "the problems are named again", named)
	f.unharmed(f.results(f.submit(20, light), 20))
	f.told("worker")
}

// A paused farm is left alone whatever its load, a farm in a dry run decides and
// is left alone. Both end within a decision, and a controller that is killed then
// does not come back paused (P30, P87).
func TestPausedFarm(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{})
	defer f.explained("worker")
	f.begun()
	api := f.url + "/function/controller"
	mode := func(body string) {
		t.Helper()
		if status := f.ask(api, http.MethodPatch, "/?farm=worker", body, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", body, status)
		}
	}
	mode(`{"mode": "paused"}`)
	f.more(1, "paused", func(r *controller.Receipt) bool { return r.Mode == controller.Paused })
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	f.more(5, "paused, with work", func(r *controller.Receipt) bool { return r.Observation.Waiting > 5 })
	mode(`{"mode": "dry-run"}`)
	for _, r := range f.more(3, "dry run", func(r *controller.Receipt) bool { return r.Mode == controller.DryRun && r.Wish.Replicas > 1 }) {
		if r.Replicas != 1 || r.Acted != nil {
			t.Errorf("receipt %d: %d replicas: %s", r.Seq, r.Replicas, r.Why())
		}
	}
	if n := f.desired("worker"); n != 1 {
		t.Errorf("%d replicas, want the one there was", n)
	}
	var v controller.FarmView
	f.ask(api, http.MethodGet, "/?farm=worker", "", &v)
	if c := v.Conditions[controller.PausedBy]; !c.Status {
		t.Errorf("the condition is %+v", c)
	}
	mode(`{"mode": null}`)
	list := f.more(1, "it acts", func(r *controller.Receipt) bool { return r.Mode == controller.Act })
	if len(list) > 2 {
		t.Errorf("it acts after %d decisions", len(list))
	}
	until(t, patience, "the farm is scaled", func() bool { return f.desired("worker") >= 5 })
	f.signal("controller", syscall.SIGKILL)
	before := list[0].Controller
	r := f.more(1, "by another controller", func(r *controller.Receipt) bool { return r.Controller != before })
	if last := r[len(r)-1]; last.Mode != controller.Act || last.Replicas < 5 {
		t.Errorf("it comes back in mode %s with %d replicas: %s", last.Mode, last.Replicas, last.Why())
	}
	end()
	f.told("worker")
}

// A farm has worker-hours for a few seconds only. The alarm comes before they are
// used up; then the farm drains to its least, spends no more than a decision's
// worth above that, and its queue is kept until there is budget again (P76: 10
// worker-hours are about 20 worker-seconds here).
func TestBudget(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{farm: map[string]string{"farmhand.min": "0"}})
	defer f.explained("worker")
	f.begun()
	api := f.url + "/function/controller"
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	until(t, patience, "the farm is scaled", func() bool { return f.desired("worker") >= 5 })
	budget := f.last().State.Hours()*1.02 + 40.0/3600
	if status := f.ask(api, http.MethodPatch, "/?farm=worker", fmt.Sprintf(`{"budget": %.6f}`, budget), nil); status != http.StatusOK {
		t.Fatalf("the budget: %d", status)
	}
	f.more(1, "the alarm", func(r *controller.Receipt) bool { return r.Outcome.Alarm })
	list := f.more(1, "the budget binds", func(r *controller.Receipt) bool { return r.Outcome.Bound("budget") })
	r := list[len(list)-1]
	if used := controller.Decide(r.Inputs).Next.Hours(); used < budget || used > budget+2*8.0/3600 {
		t.Errorf("%.5f worker-hours are used of %.5f", used, budget)
	}
	until(t, patience, "the farm has gone down", func() bool { return f.desired("worker") == 0 })
	r = f.more(3, "", nil)[2]
	used := controller.Decide(r.Inputs).Next.Hours()
	if t.Logf("%.1f worker-seconds of %.1f", used*3600, budget*3600); used > budget+3*8.0/3600 {
		t.Errorf("%.5f worker-hours are used of %.5f", used, budget)
	}
	if r.Observation.Waiting == 0 {
		t.Error("nothing waits")
	}
	if status := f.ask(api, http.MethodPatch, "/?farm=worker", `{"budget": null}`, nil); status != http.StatusOK {
		t.Fatalf("the budget: %d", status)
	}
	end()
	f.sound()
	f.told("worker")
}
