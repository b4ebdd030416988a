package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"farmhand/controller"
	"farmhand/skeleton"
)

// roster is what the dispatchers read.
func (w *world) roster() skeleton.Roster {
	w.t.Helper()
	r, err := w.ledgers.Store.Roster(background)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// step lets a controller without a loop look once.
func step(t *testing.T, c *controller.Controller) {
	t.Helper()
	if err := c.Step(background); err != nil {
		t.Fatal(err)
	}
}

func (p *platform) remove(name string) {
	p.set(func() { delete(p.by, name) })
}

func TestRosterIsWhatThePlatformShows(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := w.add("b", 1, "slots", "4", "min", "2")
		b.resize(2)
		w.add("a.dev", 0, "min", "0")
		step(t, w.create(w.config("A")))
		r := w.roster()
		if len(r.Farms) != 2 || r.Farms[0].Name != "a.dev" || r.Farms[1].Name != "b" {
			t.Fatalf("%+v", r)
		}
		if f := r.Farms[1]; f.Settings.Slots != 4 || f.Ready != 1 || f.Target != 2 || len(f.Problems) > 0 || f.Missing != 0 {
			t.Errorf("%+v", f)
		}
		if g, err := w.ledgers.Store.Farm("b").Gauges(background); err != nil || g.Window != 4 {
			t.Errorf("window %d, %v", g.Window, err)
		}
	})
}

// The platform has no workers, or no more: that is known, and no error.
func TestEmptyPlatform(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.start("A")
		w.after(time.Minute)
		if s := c.Status(); s.Error != "" || len(w.roster().Farms) > 0 {
			t.Errorf("%+v", s)
		}
		w.platform.listed()
		w.after(time.Minute)
		if n := w.platform.listed(); n < 25 || n > 65 {
			t.Errorf("%d lists a minute", n)
		}
		w.add("f", 1)
		w.after(2100 * time.Millisecond)
		if len(w.roster().Farms) != 1 {
			t.Error("the new farm is not in the roster")
		}
	})
}

// A worker that left the list stays in the roster for an hour, with the time it
// has been gone, also over restarts of the controller.
func TestMissingWorker(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("a", 1, "interval", "60s")
		f := w.add("f", 1, "slots", "3")
		w.set(func() { w.pace = 20 * time.Second })
		c := w.start("A")
		w.platform.remove("f")
		gone := time.Now()
		missing := func(slack time.Duration) {
			t.Helper()
			f, ok := w.roster().Find("f")
			if !ok || f.Ready != 0 || f.Target != 0 || f.Settings.Slots != 3 {
				t.Fatalf("%v %+v", ok, f)
			}
			if d := time.Since(gone); f.Missing <= 0 || f.Missing > d || f.Missing < d-slack {
				t.Errorf("missing for %s, and said to be for %s", d, f.Missing)
			}
		}
		w.after(3 * time.Second)
		missing(3 * time.Second)
		w.after(31 * time.Second)
		missing(13 * time.Second)
		c.Stop()
		w.start("B")
		missing(13 * time.Second)
		w.after(50 * time.Second)
		missing(13 * time.Second)

		w.platform.set(func() { w.platform.by["f"] = f })
		w.after(2100 * time.Millisecond)
		if f, _ := w.roster().Find("f"); f.Missing != 0 || f.Ready != 1 {
			t.Errorf("back: %+v", f)
		}
		w.platform.remove("f")
		gone = time.Now()
		w.after(59 * time.Minute)
		missing(13 * time.Second)
		w.after(2 * time.Minute)
		if r := w.roster(); len(r.Farms) != 1 || r.Farms[0].Name != "a" {
			t.Errorf("after an hour: %+v", r)
		}
	})
}

// The list of who takes over is as long as that of who led: what was gone before
// is gone for as long, and what came and went meanwhile is known.
func TestMissingWorkersSurviveTheLeader(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("a", 1)
		w.add("old", 1)
		a := w.start("A")
		w.start("B") // it has read the roster now
		w.after(5 * time.Second)
		w.add("new", 1)
		w.after(5 * time.Second)
		w.platform.remove("old")
		w.platform.remove("new")
		gone := time.Now()
		w.after(2 * time.Minute)
		a.Stop()
		w.after(30 * time.Second)
		for _, name := range []string{"old", "new"} {
			if f, ok := w.roster().Find(name); !ok || f.Missing < time.Since(gone)-25*time.Second {
				t.Errorf("%s: %v %+v", name, ok, f)
			}
		}
	})
}

// Timeouts of the watchdog that are shorter than the farm's are named.
func TestTimeoutsMustFit(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "timeout", "55s").Env = map[string]string{"exec_timeout": "30s", "write_timeout": "60"}
		w.add("g", 1, "timeout", "20s").Env = map[string]string{"exec_timeout": "soon"}
		c := w.start("A")
		for name, want := range map[string]string{"f": "exec_timeout: 30s", "g": `exec_timeout: "soon"`} {
			r, _ := w.roster().Find(name)
			if v := farm(t, c, name); len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], want) || len(v.Problems) != 1 {
				t.Errorf("%s: %q, %q", name, r.Problems, v.Problems)
			}
		}
	})
}

// An invalid annotation is named, and that setting keeps its last good value,
// also over a restart of the controller. The others follow.
func TestInvalidAnnotation(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		f := w.add("f", 1, "slots", "4", "deadline", "2x", "service", "1s", "policy", "static:n=2")
		a := w.start("A")
		w.platform.set(func() {
			f.Annotations = map[string]string{"farmhand.slots": "none", "farmhand.deadline": "soon", "farmhand.policy": "magic", "farmhand.target": "0.7", "farmhand.slot": "5"}
		})
		look := func() {
			t.Helper()
			w.after(interval + 100*time.Millisecond)
			f := w.roster().Farms[0]
			if s := f.Settings; s.Slots != 4 || s.DeadlineFactor != 2 || s.Policy != "static:n=2" {
				t.Errorf("what was good is gone: %+v", s)
			}
			if s := f.Settings; s.Target != 0.7 || s.Service != 0 {
				t.Errorf("what is good now does not hold: %+v", s)
			}
			all := strings.Join(f.Problems, "\n")
			for _, name := range []string{"farmhand.slots: ", "farmhand.deadline: ", "farmhand.policy: ", "farmhand.slot: "} {
				if !strings.Contains(all, name) {
					t.Errorf("%sis not in %q", name, f.Problems)
				}
			}
			if len(f.Problems) != 4 {
				t.Errorf("%q", f.Problems)
			}
		}
		look()
		a.Stop()
		b := w.start("B")
		look()
		w.override(b, "f", "slots", "7", "min", "3") // what is wrong below does not matter
		w.after(time.Second)
		if s := w.roster().Farms[0].Settings; s.Slots != 7 || s.Min != 3 {
			t.Errorf("overrides do not hold: %+v", s)
		}
		w.override(b, "f", "slots", "") // which lets the annotation count again
	})
}

// All settings do so.
func TestEverySettingKeepsItsLastGood(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		good := map[string]string{"slots": "4", "deadline": "3s", "target": "0.9", "timeout": "9s", "service": "1s", "policy": "static:n=2",
			"interval": "3s", "min": "2", "max": "7", "budget": "12"}
		pairs := []string{}
		for name, v := range good {
			pairs = append(pairs, name, v)
		}
		f := w.add("f", 2, pairs...)
		c := w.start("A")
		w.settle()
		before := w.roster().Farms[0]
		if len(before.Problems) > 0 {
			t.Fatal(before.Problems)
		}
		w.platform.set(func() {
			for name := range good {
				f.Annotations["farmhand."+name] = "x"
			}
		})
		w.settle()
		now := w.roster().Farms[0]
		if d := cmp.Diff(before.Settings, now.Settings); d != "" || len(now.Problems) != len(good) {
			t.Errorf("%s %q", d, now.Problems)
		}
		_, shown := ask(t, c.Handler(), "GET", "/?farm=f", "")
		for name, v := range good {
			if got := shown["settings"].(map[string]any)[name].(map[string]any)["value"]; got != v {
				t.Errorf("%s is shown as %v", name, got)
			}
		}
		w.platform.set(func() { f.Annotations["farmhand.max"] = "1" }) // below the last good minimum
		w.settle()
		if s := w.roster().Farms[0].Settings; s.Max != 1 || s.Min > 1 {
			t.Errorf("%d…%d", s.Min, s.Max)
		}
	})
}

// Where nothing was ever good, there is the default.
func TestInvalidAnnotationFromTheBegin(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.add("f", 1, "slots", "none", "max", "many", "policy", "magic")
		c := w.start("A")
		w.settle()
		f := w.roster().Farms[0]
		if s := f.Settings; s.Slots != 1 || s.Max != skeleton.DefaultSettings().Max || len(f.Problems) != 3 {
			t.Errorf("%+v", f)
		}
		if v := farm(t, c, "f"); v.Policy != controller.DefaultPolicy || len(v.Problems) != 3 {
			t.Errorf("%+v", v)
		}
	})
}
