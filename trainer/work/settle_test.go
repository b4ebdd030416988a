package work

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"farmhand/gate"
	"farmhand/gate/gatetest"
	"farmhand/registry"
	"farmhand/sim/workload"
	"farmhand/trainer"
)

var errKilled = errors.New("killed")

// deadly is a registry that does what it is asked for, and then, once for each kind of
// change, its caller is killed.
type deadly struct {
	registry.Registry
	killed []string
}

func (d *deadly) kill(change string, err error) error {
	if err != nil || slices.Contains(d.killed, change) {
		return err
	}
	d.killed = append(d.killed, change)
	return errKilled
}

func (d *deadly) Import(ctx context.Context, file []byte, o registry.Origin) (string, error) {
	version, err := d.Registry.Import(ctx, file, o)
	return version, d.kill("import", err)
}

func (d *deadly) Challenge(ctx context.Context, farm, version string, r registry.Reason) error {
	return d.kill("challenge", d.Registry.Challenge(ctx, farm, version, r))
}

func (d *deadly) Judge(ctx context.Context, farm, version string, v registry.Verdict) error {
	return d.kill("judge", d.Registry.Judge(ctx, farm, version, v))
}

func (d *deadly) Promote(ctx context.Context, farm, version string, r registry.Reason) error {
	return d.kill("promote", d.Registry.Promote(ctx, farm, version, r))
}

// A trainer that is killed after any change that the gate makes, before it could keep
// that, changes nothing twice: one challenger, one verdict, one promotion. What is
// between the changes, TestKilledAnywhere kills.
func TestKilledAroundTheVerdict(t *testing.T) {
	for name, tick := range map[string]time.Duration{"many slices": 100 * time.Millisecond, "as few as can be": 0} {
		t.Run(name, func(t *testing.T) { killedAroundTheVerdict(t, tick) })
	}
}

func killedAroundTheVerdict(t *testing.T, tick time.Duration) {
	s := setup(t)
	w := s.worker()
	d := &deadly{Registry: s.policies}
	w.cfg.Registry = d
	w.knobs.gate = func(c *gate.Config) {
		c.Seeds, c.Limits = gate.Seeds()[:4], gate.Limits{Late: 1, Cost: 100, Mend: 100} // whatever was learned in a second
	}
	s.tick.Store(int64(tick))
	s.start(w, "a", small())
	for ticket, ok := s.take(); ok; ticket, ok = s.take() {
		err := w.Slice(ctx, ticket)
		for ; errors.Is(err, errKilled); err = w.Slice(ctx, ticket) {
			s.lag.Add(int64(3*time.Second + trainer.Lease))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.done("a")
	if want := []string{"import", "challenge", "judge", "promote"}; !slices.Equal(d.killed, want) {
		t.Errorf("killed after %v, want %v", d.killed, want)
	}
	p := s.get("a").Progress
	if champion, _, err := s.policies.Champion(ctx, "web"); champion != p.Version || !p.Promoted || err != nil {
		t.Errorf("the champion is %q, %v; the run says %+v", champion, err, p)
	}
	var kinds []registry.Kind
	history, err := s.policies.History(ctx, "web")
	for _, c := range history {
		kinds = append(kinds, c.Kind)
	}
	if want := []registry.Kind{registry.Promotion, registry.Challenge}; !slices.Equal(kinds, want) || err != nil {
		t.Errorf("the history is %v, %v; want %v", kinds, err, want)
	}
	if list, err := s.policies.List(ctx); len(list) != 1 || err != nil {
		t.Errorf("%d versions, %v", len(list), err)
	}
}

// With enough telemetry a run learns in the farm that it tells of, and says how far the
// two differ. Of telemetry that is poisoned, what can be used is; the verdict tells what
// was left out.
func TestLearnsFromTelemetry(t *testing.T) {
	s := setup(t)
	scenario, err := workload.Find("burst-cron-150ms", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.rows, s.spans = gatetest.Telemetry(t, scenario, 2*1800+60, "staffing")
	for i := 300; i < 350; i++ { // a burst of garbage
		s.rows[i].Arrivals, s.rows[i].ServiceMean = 1e12, 1e9
	}
	for i := 600; i < len(s.rows); i++ { // a clock that jumps
		s.rows[i].At = s.rows[i].At.Add(-24 * time.Hour)
	}
	s.rows = slices.Delete(s.rows, 900, 1000) // a gap
	s.start(s.worker(), "a", small())
	s.deliver(s.worker())
	s.done("a")
	k, v := s.get("a").Progress.Calibration, s.get("a").Progress.Verdict
	if !k.Telemetry || k.Scenario != "farm:web" || len(k.Distances) != 4 {
		t.Errorf("calibration %+v", k)
	}
	for _, d := range k.Distances {
		if !d.Simulated.Known() || !d.Measured.Known() || d.N == 0 || math.Abs(float64(d.Simulated/d.Measured-1)) > 0.25 {
			t.Errorf("%+v", d)
		}
	}
	if len(v.Checks) == 0 || v.Checks[0].Work != "farm:web" || !slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, "50 of") }) {
		t.Errorf("verdict %+v", v)
	}
}
