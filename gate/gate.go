// Package gate decides whether a policy may become the champion of a farm.
//
// The challenger, the champion if there is one, and the calibrated rule serve the same
// work, each behind the guard as live: seeds that neither training nor evaluation has
// seen, and the farm's last traffic. A check compares the challenger with one of the
// two on one kind of work, in a metric, run by run. It is kept where the whole 95 %
// interval of the difference keeps its limit. All checks kept: promoted. One that is
// missed: rejected. Else what was found is inconclusive, and nothing changes.
//
// Traffic can only stand in the way of a version: whatever telemetry says, the unseen
// seeds have to be won.
//
// A Gate is a list of trials. It runs them in slices: its State can be kept after any
// of them, and another Gate of the same Config goes on from there to the same verdict.
package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"farmhand/evaluate"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/registry"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// Seeds are those that decide: 2001 to 2020, which are neither training nor
// evaluation seeds.
func Seeds() []uint64 {
	list := make([]uint64, 20)
	for i := range list {
		list[i] = 2001 + uint64(i)
	}
	return list
}

// Config of a Gate.
type Config struct {
	Challenger []byte               // policy file
	Champion   []byte               // policy file; nil: the farm has none
	Rule       string               // specification, calibrated for the scenarios on training seeds
	Scenarios  []*workload.Scenario // what the farm may meet; each an hour or so, ten minutes at least
	Seeds      []uint64             // nil: Seeds()
	Traffic    []*evaluate.Past     // stretches of what the farm did meet, see Traffic; nil: not enough is known
	Notes      []string             // go into the verdict
	Limits     Limits               // zero: DefaultLimits
}

// Limits are what the checks want.
type Limits struct {
	Late        float64 // of on-time, below the target, or below the opponent where that one misses it
	Cost        float64 // worker-seconds at most, as a share of the opponent's
	Mend        float64 // the same against a rule that misses the target, which the challenger keeps
	TrafficLate float64 // as Late, for the farm's traffic
	TrafficCost float64 // as Cost, for the farm's traffic
}

// DefaultLimits: 1 % cheaper at most half a point below the target. On the traffic,
// which is little and the past, it is enough not to be worse.
func DefaultLimits() Limits {
	return Limits{Late: 0.005, Cost: 0.99, Mend: 1.25, TrafficLate: 0.01, TrafficCost: 1.05}
}

// shortest run, in seconds: the guard lets nobody shrink a farm in its first two
// minutes.
const shortest = 600

// Gate runs the trials. It belongs to one goroutine.
type Gate struct {
	cfg      Config
	key      string
	versions [2]string // of challenger and champion
	policies []*learned.Policy
	field    []evaluate.Contender // challenger, rule, champion
	done     [][]Score            // by trial and contender
}

// Score is what a contender came to in a trial.
type Score struct {
	Decided       float64 `json:"decided"` // tasks
	Late          float64 `json:"late"`
	WorkerSeconds float64 `json:"worker_seconds"`
}

// New makes a Gate that has done nothing yet. The error says what of cfg cannot be.
func New(cfg Config) (*Gate, error) {
	if cfg.Seeds == nil {
		cfg.Seeds = Seeds()
	}
	if cfg.Limits == (Limits{}) {
		cfg.Limits = DefaultLimits()
	}
	if len(cfg.Scenarios) == 0 || len(cfg.Seeds) < 2 {
		return nil, fmt.Errorf("gate: %d Scenarios and %d Seeds: want one scenario and two seeds, or more", len(cfg.Scenarios), len(cfg.Seeds))
	}
	for _, s := range cfg.Scenarios {
		if s.Horizon < shortest {
			return nil, fmt.Errorf("gate: Scenarios: %s lasts %g s: want %d or more", s.Name, s.Horizon, shortest)
		}
	}
	g := &Gate{cfg: cfg}
	rule, err := evaluate.Law(cfg.Rule, evaluate.Calibrated)
	if err != nil {
		return nil, fmt.Errorf("gate: Rule: %w", err)
	}
	challenger, err := g.read("Challenger", cfg.Challenger, 0)
	if err != nil {
		return nil, err
	}
	g.field = []evaluate.Contender{challenger, rule}
	if cfg.Champion != nil {
		champion, err := g.read("Champion", cfg.Champion, 1)
		if err != nil {
			return nil, err
		}
		g.field = append(g.field, champion)
	}
	if g.versions[0] == g.versions[1] {
		return nil, fmt.Errorf("gate: Challenger: %s is the champion already", registry.Short(g.versions[0]))
	}
	g.key = g.fingerprint()
	return g, nil
}

// read a policy file.
func (g *Gate) read(name string, file []byte, i int) (evaluate.Contender, error) {
	p, err := learned.Load(file)
	if err != nil {
		return evaluate.Contender{}, fmt.Errorf("gate: %s: %w", name, err)
	}
	g.versions[i] = registry.VersionOf(file)
	g.policies = append(g.policies, p)
	return evaluate.Contender{Name: p.Name(), Spec: p.Name(), Origin: evaluate.PolicyFile, Version: p.Name(),
		Make: func(sim.Config) (policy.Policy, error) { return p, nil }}, nil
}

// fingerprint is what all scores depend on.
func (g *Gate) fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "%v %q %v %d\n", g.versions, g.cfg.Rule, g.cfg.Seeds, len(g.cfg.Scenarios))
	for _, s := range g.cfg.Scenarios {
		fmt.Fprintln(h, evaluate.Fingerprint(s))
	}
	for _, p := range g.cfg.Traffic {
		fmt.Fprintln(h, p.Fingerprint())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// state is what a Gate keeps.
type state struct {
	Version int       `json:"version"`
	Key     string    `json:"key"`
	Done    [][]Score `json:"done"`
}

const stateVersion = 1

// ErrOther says that a state is not one of this Gate.
var ErrOther = errors.New("gate: the state is of another comparison")

// State is what was done, as JSON.
func (g *Gate) State() ([]byte, error) {
	b, err := json.Marshal(state{stateVersion, g.key, g.done})
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	return b, nil
}

// Restore goes on from a state. The error wraps ErrOther where it is of a Gate with
// another Config; the Gate is then as it was.
func (g *Gate) Restore(b []byte) error {
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%w: %w", ErrOther, err)
	}
	if s.Version != stateVersion || s.Key != g.key || len(s.Done) > g.Trials() {
		return fmt.Errorf("%w: policies, rule, scenarios or traffic differ", ErrOther)
	}
	for _, scores := range s.Done {
		if len(scores) != len(g.field) {
			return fmt.Errorf("%w: %d scores of a trial, want %d", ErrOther, len(scores), len(g.field))
		}
	}
	g.done = s.Done
	return nil
}

// Trials is how many there are. The farm's traffic comes first: it is what may be
// gone from telemetry first.
func (g *Gate) Trials() int { return len(g.cfg.Traffic) + len(g.cfg.Scenarios)*len(g.cfg.Seeds) }

// Done is how many trials are done.
func (g *Gate) Done() int { return len(g.done) }

// Run runs trials until all are done, which it reports, or more says no; it is asked
// after each. A trial that is interrupted is run again by the next Run.
func (g *Gate) Run(ctx context.Context, more func() bool) (done bool, err error) {
	for g.Done() < g.Trials() {
		scores, err := g.trial(ctx, g.Done())
		if err != nil {
			return false, fmt.Errorf("gate: %w", err)
		}
		g.done = append(g.done, scores)
		if g.Done() < g.Trials() && !more() {
			return false, nil
		}
	}
	return true, nil
}

// trial runs the i-th.
func (g *Gate) trial(ctx context.Context, i int) ([]Score, error) {
	if i < len(g.cfg.Traffic) {
		return g.replay(ctx, g.cfg.Traffic[i], Seeds()[0]+uint64(i))
	}
	i -= len(g.cfg.Traffic)
	scenario, seed := g.cfg.Scenarios[i/len(g.cfg.Seeds)], g.cfg.Seeds[i%len(g.cfg.Seeds)]
	study := evaluate.Study{Settings: evaluate.Settings{Guard: &guard.Settings{}}, Seeds: []uint64{seed}}
	entries, err := study.Run(ctx, []evaluate.Case{{Scenario: scenario, Contenders: g.field}})
	if err != nil {
		return nil, err
	}
	scores := make([]Score, len(entries))
	for k := range entries {
		r := &entries[k].Episodes[0].Result
		scores[k] = Score{float64(r.Decided), float64(r.Late), r.WorkerSeconds}
	}
	return scores, nil
}

// replay lets all serve a stretch of the farm's traffic.
func (g *Gate) replay(ctx context.Context, past *evaluate.Past, seed uint64) ([]Score, error) {
	scores := make([]Score, len(g.field))
	for k, c := range g.field {
		r := evaluate.Replay{Guard: &guard.Settings{}, Seeds: 1, First: seed}
		p, err := g.policy(c)
		if err != nil {
			return nil, err
		}
		e, err := r.Play(ctx, past, p)
		if err != nil {
			return nil, err
		}
		scores[k] = Score{e.Tasks, (1 - float64(e.OnTime.Or(1))) * e.Tasks, e.WorkerSeconds}
		if !e.OnTime.Known() {
			scores[k].Decided = 0
		}
	}
	return scores, nil
}

func (g *Gate) policy(c evaluate.Contender) (policy.Policy, error) {
	if c.Make == nil {
		return policy.New(c.Spec)
	}
	return c.Make(sim.Config{})
}
