package platform

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"
)

var noon = time.Date(2026, 3, 4, 12, 0, 30, 500, time.UTC) // a Wednesday

func TestPlans(t *testing.T) {
	for text, want := range map[string]string{
		"* * * * *":                    "2026-03-04T12:01:00Z",
		"*/5 * * * *":                  "2026-03-04T12:05:00Z",
		" 0  8 * * mon-fri ":           "2026-03-05T08:00:00Z",
		"30 4 1,15 * 5":                "2026-03-06T04:30:00Z",
		"0 0 29 2 ?":                   "2028-02-29T00:00:00Z",
		"@hourly":                      "2026-03-04T13:00:00Z",
		"@daily":                       "2026-03-05T00:00:00Z",
		"@midnight":                    "2026-03-05T00:00:00Z",
		"@weekly":                      "2026-03-08T00:00:00Z",
		"@monthly":                     "2026-04-01T00:00:00Z",
		"@yearly":                      "2027-01-01T00:00:00Z",
		"@annually":                    "2027-01-01T00:00:00Z",
		"@every 30s":                   "2026-03-04T12:01:00Z",
		"@every 1h30m":                 "2026-03-04T13:30:30Z",
		"@every 1.9s":                  "2026-03-04T12:00:31Z", // whole seconds, as the connector has it
		"TZ=UTC 0 13 * * *":            "2026-03-04T13:00:00Z",
		"CRON_TZ=Etc/GMT-2 0 15 * * *": "2026-03-04T13:00:00Z",
	} {
		p, err := parsePlan(text, noon)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := p.next(noon).UTC().Format(time.RFC3339Nano); got != want {
			t.Errorf("%q: next at %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"":                                      "empty",
		"* * * *":                               "found 4",
		"0 */5 * * * *":                         "seconds",
		"* * * * * * *":                         "found 7",
		"* * * * *; @hourly":                    "without ;",
		"*/0 * * * *":                           "positive",
		"60 * * * *":                            "above maximum",
		"5-1 * * * *":                           "beyond end",
		", * * * *":                             "never comes",
		"0 0 30 2 *":                            "never comes",
		"x * * * *":                             "parse int",
		"@reboot":                               "unrecognized",
		"@every":                                "unrecognized",
		"@every soon":                           "duration",
		"@every 0s":                             "too often",
		"@every -5s":                            "too often",
		"TZ=UTC @every 500ms":                   "too often",
		"TZ=UTC":                                "time zone",
		"TZ=":                                   "time zone",
		"TZ=Nowhere/Town @daily":                "location",
		"TZ=../../x @daily":                     "location",
		strings.Repeat("1,", 100) + "1 * * * *": "characters",
	} {
		if _, err := parsePlan(text, noon); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestScheduleAnnotations(t *testing.T) {
	async := map[string]bool{"": false, "false": false, "true": true}
	for _, c := range []struct {
		annotations map[string]string
		planned     bool
		refused     string
	}{
		{map[string]string{"topic": "cron-function", "schedule": "@hourly", "async": "true"}, true, ""},
		{map[string]string{"topic": "cron-function", "schedule": "@hourly", "async": "false"}, true, ""},
		{map[string]string{"async": "whatever"}, false, ""},
		{map[string]string{"topic": "cron-function", "schedule": "@hourly", "async": "yes"}, false, `annotation async="yes" of f: want "true"`},
		{map[string]string{"topic": "cron-function", "schedule": "@hourly", "async": ""}, false, `annotation async="" of f: want "true"`},
		{map[string]string{"topic": "cron-function", "schedule": "@hourly"}, true, ""},
		{map[string]string{"topic": "orders, cron-function", "schedule": "@hourly"}, true, ""},
		{map[string]string{"topic": "cron-functions", "schedule": "nonsense"}, false, ""},
		{map[string]string{"schedule": "nonsense"}, false, ""},
		{map[string]string{"topic": "cron-function"}, false, "annotation schedule of f: missing"},
		{map[string]string{"topic": "cron-function", "schedule": "0 * * * * *"}, false, `annotation schedule="0 * * * * *" of f: it has six fields; leave out the seconds; want five fields`},
	} {
		s, err := checkDeployment(types.FunctionDeployment{Service: "f", Image: "i", Annotations: &c.annotations}, noon)
		if c.refused != "" {
			r, ok := err.(*refusal)
			if !ok || r.status != http.StatusBadRequest || !strings.Contains(r.text, c.refused) {
				t.Errorf("%v: %v", c.annotations, err)
			}
		} else if err != nil || (s.plan != nil) != c.planned {
			t.Errorf("%v: %+v, %v", c.annotations, s, err)
		} else if c.planned && s.plan.async != async[c.annotations["async"]] {
			t.Errorf("%v: async %v", c.annotations, s.plan.async)
		}
	}
}

// runner is a scheduler under test: each call waits until it is told its status.
type runner struct {
	*scheduler
	t     *testing.T
	clock *FakeClock
	begun chan string
	let   chan int
	over  runsOver
	runs  sync.WaitGroup
}

// runsOver is a log that tells of runs that are over.
type runsOver chan struct{}

func (c runsOver) Write(line []byte) (int, error) {
	if !bytes.Contains(line, []byte("left out")) {
		c <- struct{}{}
	}
	return len(line), nil
}

func newRunner(t *testing.T) *runner {
	r := &runner{t: t, clock: NewFakeClock(noon), begun: make(chan string, 9), let: make(chan int), over: make(runsOver, 9)}
	r.scheduler = newScheduler(r.clock, slog.New(slog.NewTextHandler(r.over, nil)), &r.runs, func(f string, async bool) (int, error) {
		if async {
			f += " async"
		}
		r.begun <- f
		return <-r.let, nil
	})
	r.runs.Go(func() { r.loop(t.Context()) })
	t.Cleanup(func() {
		close(r.let)
		r.runs.Wait()
	})
	return r
}

// plan sets a plan and returns when the scheduler wants to look next.
func (r *runner) plan(function, text string) time.Duration {
	r.t.Helper()
	p, err := parsePlan(text, r.clock.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	r.set(function, p)
	return r.asked()
}

// at sets the clock, and returns when the scheduler wants to look next.
func (r *runner) at(d time.Duration) time.Duration {
	r.t.Helper()
	r.clock.Set(noon.Add(d))
	return r.asked()
}

func (r *runner) asked() time.Duration {
	r.t.Helper()
	select {
	case t := <-r.clock.Asked:
		return t.Sub(noon)
	case <-time.After(20 * time.Second):
		r.t.Fatal("the scheduler does not look at the clock")
		return 0
	}
}

func (r *runner) next(function string) time.Duration { return r.describe(function).NextRun.Sub(noon) }

// end lets the run under way end, and waits until it has.
func (r *runner) end(status int) {
	r.t.Helper()
	r.let <- status
	select {
	case <-r.over:
	case <-time.After(20 * time.Second):
		r.t.Fatal("a run does not end")
	}
}

const sub = 500 * time.Nanosecond // noon is that much after a whole second

func TestScheduler(t *testing.T) {
	r := newRunner(t)
	if r.describe("f") != nil {
		t.Error("a plan of nobody")
	}
	if look := r.plan("f", "@every 20s"); look != 20*time.Second-sub {
		t.Errorf("looks after %s", look)
	}
	// Not before its time; then once.
	r.clock.Set(noon.Add(20*time.Second - sub - 1))
	if look := r.at(20*time.Second - sub); look != 40*time.Second-sub {
		t.Errorf("looks after %s", look)
	}
	if f := <-r.begun; f != "f" {
		t.Errorf("called %s", f)
	}
	if d := r.describe("f"); !d.Running || d.LastRun.Sub(noon) != 20*time.Second-sub || r.next("f") != 40*time.Second-sub {
		t.Errorf("%+v", d)
	}
	// While it runs, its times are left out, whatever is deployed meanwhile.
	r.plan("f", "@every 10s")
	r.at(30*time.Second - sub)
	r.at(40*time.Second - sub)
	if d := r.describe("f"); d.Skipped != 2 || len(r.begun) != 0 {
		t.Errorf("%+v, %d calls", d, len(r.begun))
	}
	r.end(503)
	if d := r.describe("f"); d.LastStatus != 503 || d.Schedule != "@every 10s" {
		t.Errorf("%+v", d)
	}
	// Another function does not wait for it, and time that was slept through
	// counts once.
	r.plan("g", "30 * * * *")
	r.at(time.Hour)
	for range 2 {
		<-r.begun
	}
	if r.next("f") != time.Hour+10*time.Second-sub || r.next("g") != 89*time.Minute+30*time.Second-sub {
		t.Errorf("next after %s and %s", r.next("f"), r.next("g"))
	}
	r.let <- 200
	r.let <- 200
}

// The same plan again does not put off the next run; another does.
func TestSchedulerKeepsItsPlans(t *testing.T) {
	r := newRunner(t)
	r.plan("f", "@every 1h")
	r.at(59 * time.Minute)
	p, _ := parsePlan("@every 1h", r.clock.Now())
	r.set("f", p)
	if d := r.next("f"); d != time.Hour-sub {
		t.Errorf("next after %s", d)
	}
	p, _ = parsePlan("@every 1h", r.clock.Now()) // by the other route from now on
	p.async = true
	r.set("f", p)
	if d := r.describe("f"); r.next("f") != time.Hour-sub || !d.Async {
		t.Errorf("%+v", d)
	}
	r.plan("f", "@every 2h")
	if d := r.next("f"); d != 179*time.Minute-sub {
		t.Errorf("next after %s", d)
	}
	r.set("f", nil)
	if r.describe("f") != nil {
		t.Error("a plan that was taken away is there")
	}
	r.plan("g", "@every 10s")
	r.at(59*time.Minute + 10*time.Second)
	if f := <-r.begun; f != "g" {
		t.Errorf("called %s", f)
	}
	r.end(200)
	p, _ = parsePlan("@every 10s", r.clock.Now())
	p.async = true
	r.set("g", p)
	r.at(59*time.Minute + 20*time.Second)
	if f := <-r.begun; f != "g async" {
		t.Errorf("called %s", f)
	}
	r.end(202)
}

// It looks at the clock each minute, and follows it when it is set.
func TestClockIsSet(t *testing.T) {
	r := newRunner(t)
	if look := r.plan("f", "0 0 * * *"); look != time.Minute {
		t.Errorf("looks after %s", look)
	}
	r.plan("g", "@every 1h")
	r.clock.Set(noon.Add(-48 * time.Hour)) // nobody is told
	r.clock.Set(noon.Add(time.Minute))
	r.asked()
	r.clock.Set(noon.Add(-48 * time.Hour))
	r.plan("h", "@every 2h") // looks anew
	if f, g := r.next("f"), r.next("g"); f != -36*time.Hour-30*time.Second-sub || g != -47*time.Hour-sub {
		t.Errorf("next after %s and %s", f, g)
	}
	r.at(-36 * time.Hour) // forward again: both at once
	for range 3 {
		<-r.begun
	}
	for range 3 {
		r.let <- 200
	}
}
