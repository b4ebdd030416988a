package gate

import (
	"context"
	"slices"
	"testing"
	"time"

	"farmhand/evaluate"
	"farmhand/gate/gatetest"
	"farmhand/policy/learned"
	"farmhand/registry/registrytest"
	"farmhand/sim/workload"
	"farmhand/telemetry"
)

// burst is a scenario of ten minutes.
func burst(t testing.TB) *workload.Scenario {
	t.Helper()
	s, err := workload.Find("burst-cron-150ms", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Horizon, s.Farm.Target = shortest, 0.95
	return s
}

// Policies that always do the same: asPeak has as many replicas as its rule wants for
// the highest load of 15 minutes, asRule as for the load there is, which is late in
// bursts, and least as few as the guard allows. twenty is the rule of the cautious.
var (
	asPeak = slices.Index(learned.Actions(), "rule-peak")
	asRule = learned.Rule
	least  = slices.Index(learned.Actions(), "-50%")
)

const twenty = "static:n=20"

// config of a gate of seconds.
func config(t testing.TB, challenger int, rule string) Config {
	return Config{Challenger: registrytest.Always(t, challenger), Rule: rule, Scenarios: []*workload.Scenario{burst(t)}, Seeds: Seeds()[:6]}
}

// forever lets a gate run to its end.
func forever() bool { return true }

func ran(t testing.TB, cfg Config) *Gate {
	t.Helper()
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := g.Run(context.Background(), forever); err != nil || !done {
		t.Fatal(done, err)
	}
	return g
}

// rows are the telemetry of a farm of so many seconds under a policy.
func rows(t testing.TB, s *workload.Scenario, seconds float64, spec string) (list []telemetry.Row) {
	t.Helper()
	list, _ = gatetest.Telemetry(t, s, seconds, spec)
	return list
}

// moved are rows at other times.
func moved(list []telemetry.Row, by time.Duration) []telemetry.Row {
	list = slices.Clone(list)
	for i := range list {
		list[i].At = list[i].At.Add(by)
	}
	return list
}

// traffic must be enough.
func traffic(t testing.TB, list []telemetry.Row, farm workload.Farm) []*evaluate.Past {
	t.Helper()
	pasts, notes := Traffic(list, nil, farm)
	if pasts == nil {
		t.Fatal(notes)
	}
	return pasts
}
