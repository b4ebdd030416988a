package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"farmhand/evaluate"
	"farmhand/gate"
	"farmhand/policies"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/registry"
	"farmhand/sim/workload"
	"farmhand/telemetry"
	"farmhand/train"
	"farmhand/trainer"
	"farmhand/trainer/fit"
)

// Scenarios are the built-in ones that a gate can judge in.
func Scenarios() (names []string) {
	for _, name := range workload.Names() {
		if s, err := workload.Find(name, workload.Options{}); err == nil && s.Horizon >= gateTime && s.Farm.Target < 1 && evaluate.HasDues(s) {
			names = append(names, name)
		}
	}
	return names
}

const (
	gateTime = 600        // s that a scenario of a gate lasts at least
	peer     = "staffing" // law that is calibrated for the gate
)

// phase goes on with the phase that the run is in.
func (s *session) phase(ctx context.Context) error {
	switch s.progress.Phase {
	case trainer.Calibrate:
		return s.calibrate(ctx)
	case trainer.Learn:
		return s.learn(ctx)
	case trainer.Judge:
		return s.judge(ctx)
	}
	return fail(fmt.Errorf("work: phase %q is unknown to this program", s.progress.Phase))
}

// calibrate looks at the telemetry, and then finds the rule's parameters.
func (s *session) calibrate(ctx context.Context) error {
	if !s.state.gathered {
		return s.gather(ctx)
	}
	m, err := s.model()
	if err != nil {
		return fail(err)
	}
	family, err := evaluate.LawFamily(peer)
	if err != nil {
		return fail(err)
	}
	if s.state.fitted {
		if err := m.Compare(ctx, s.state.known); err != nil {
			return orInterrupted(ctx, err)
		}
	}
	c := evaluate.Calibrator{Settings: evaluate.Settings{Guard: &guard.Settings{}, Jobs: s.cfg.Jobs}, Budget: searchBudget(s.run.Request.Budget)}
	turn(s.knobs.search, &c.Budget)
	found, err := c.Calibrate(ctx, family, []*workload.Scenario{m.Scenario})
	if err != nil {
		return orInterrupted(ctx, err)
	}
	s.state.rule = found.Best.Specification
	s.tell(func(p *trainer.Progress) {
		p.Calibration = &trainer.Calibration{}
		*p.Calibration = m.Fit
		p.Calibration.Rule = s.state.rule
	})
	s.enter(trainer.Learn)
	return nil
}

// searchBudget is that of the rule's calibration: a training of some minutes is worth
// one of some seconds.
func searchBudget(steps int) evaluate.Budget {
	b := evaluate.QuickBudget()
	if steps < shortTraining {
		b.Random, b.Generations, b.Population, b.Final, b.Seeds = 8, 1, 4, 2, b.Seeds[:2]
	}
	return b
}

const shortTraining = 50_000 // steps

// gather what is known of the farm. Of telemetry that is damaged, the rest is good.
func (s *session) gather(ctx context.Context) error {
	r := &s.run.Request
	if r.Farm != "" {
		roster, err := s.cfg.Farms.Roster(ctx)
		if err != nil {
			return fmt.Errorf("work: %w", err)
		}
		f, ok := roster.Find(r.Farm)
		if !ok {
			return fail(fmt.Errorf("%w: %.80q", ErrUnknownFarm, r.Farm))
		}
		s.state.known.Farm = fit.FarmOf(f.Settings)
		from := s.cfg.Now().Add(-gate.Window)
		rows, err := s.cfg.Telemetry.Rows(ctx, r.Farm, from, s.cfg.Now())
		periods, err2 := s.cfg.Telemetry.Periods(ctx, r.Farm, from, s.cfg.Now())
		if err := errors.Join(err, err2); errors.Is(err, telemetry.ErrDamaged) || errors.Is(err, telemetry.ErrVersion) {
			s.cfg.Log.Warn("some of a farm's telemetry cannot be read; the rest is used", "farm", r.Farm, "error", err)
		} else if err != nil {
			return fmt.Errorf("work: telemetry: %w", err)
		}
		s.state.known.Rows, s.state.known.Periods = rows, periods
		_, err = fit.Of(r.Farm, s.state.known)
		if errors.Is(err, trainer.ErrNoDeadline) {
			return fail(err)
		}
		s.state.fitted = r.Scenario == "" && err == nil
	}
	s.state.gathered = true
	return nil
}

// model is the simulated farm of the run. It is made anew in each slice, and is always
// the same.
func (s *session) model() (*fit.Model, error) {
	r := &s.run.Request
	if s.state.fitted {
		m, err := fit.Of(r.Farm, s.state.known)
		if err == nil {
			turn(s.knobs.scenario, m.Scenario)
		}
		return m, err
	}
	name := r.Scenario
	if name == "" {
		name = trainer.DefaultScenario
	}
	scenario, err := workload.Find(name, workload.Options{})
	if err != nil {
		return nil, err
	}
	turn(s.knobs.scenario, scenario)
	m := &fit.Model{Scenario: scenario, Fit: trainer.Calibration{Scenario: name}}
	if r.Farm == "" {
		return m, nil
	}
	m.Traffic, m.Fit.Notes = fit.Traffic(s.state.known)
	if r.Scenario == "" {
		_, err := fit.Of(r.Farm, s.state.known)
		m.Fit.Notes = append(m.Fit.Notes, fmt.Sprintf("%v; %s is used in its place", err, name))
	}
	return m, nil
}

// learn goes on with the training.
func (s *session) learn(ctx context.Context) error {
	m, err := s.model()
	if err != nil {
		return fail(err)
	}
	cfg := s.training(m.Scenario)
	var t *train.Trainer
	if s.state.training == nil {
		t, err = train.New(cfg)
	} else {
		t, err = train.Load(bytes.NewReader(s.state.training), cfg)
	}
	if err != nil {
		return fail(err)
	}
	done, err := t.Slice(ctx, func() bool {
		s.learnt(t)
		return !s.more()
	})
	if err != nil {
		return orInterrupted(ctx, err)
	}
	s.learnt(t)
	if done {
		file, point, err := t.Policy()
		if err != nil {
			return fail(err)
		}
		s.tell(func(p *trainer.Progress) {
			p.OnTime, p.Workers = policy.Maybe(point.OnTime), policy.Maybe(point.Workers)
		})
		s.state.training, s.state.policy = nil, file
		s.enter(trainer.Judge)
		return nil
	}
	var b bytes.Buffer
	if err := t.Save(&b); err != nil {
		return fail(err)
	}
	s.state.training = b.Bytes()
	return nil
}

// training is the configuration for a run.
func (s *session) training(scenario *workload.Scenario) train.Config {
	r := &s.run.Request
	c := train.Default(scenario)
	if r.From == trainer.General {
		c = train.Tuned(policies.General, scenario)
	}
	c.Rests = true // a farm has them, whether its telemetry of a day shows one or not
	c.SetSteps(r.Budget)
	c.Learner, c.Seed, c.Jobs = r.Learner, r.Seed, s.cfg.Jobs
	c.Fallback = s.state.rule // which the gate compares with
	if r.Rule != "" {
		c.Rule = r.Rule
	}
	if r.Round > 0 {
		c.Round = r.Round
	}
	c.Round = min(c.Round, c.Steps)
	c.Done = func(at train.Point) {
		s.tell(func(p *trainer.Progress) { p.OnTime, p.Workers = policy.Maybe(at.OnTime), policy.Maybe(at.Workers) })
	}
	c.Log = func(_ int, values map[string]float64) {
		if x, ok := values["rollout/ep_rew_mean"]; ok {
			s.tell(func(p *trainer.Progress) { p.Return = policy.Maybe(x) })
		}
	}
	turn(s.knobs.train, &c)
	return c
}

// choosing is the share of the phase that choosing among the best takes, about.
const choosing = 0.15

func (s *session) learnt(t *train.Trainer) {
	share := (1 - choosing) * min(1, float64(t.Steps())/float64(s.run.Request.Budget))
	if done, all := t.Choosing(); all > 0 {
		share += choosing * float64(done) / float64(all)
	}
	s.tell(func(p *trainer.Progress) { p.Steps = t.Steps() })
	s.share(share)
}

// judge lets the gate compare, and promotes what it lets through.
func (s *session) judge(ctx context.Context) error {
	if s.progress.Version == "" {
		return s.challenge(ctx)
	}
	farm, version := s.run.Request.Farm, s.progress.Version
	if version == s.state.opponent {
		s.finish(func(p *trainer.Progress) {
			c := *p.Calibration // it may be on its way to the store
			c.Notes = append(slices.Clone(c.Notes), "gate: what was learned is the champion, byte for byte")
			p.Calibration = &c
		})
		return nil
	}
	g, err := s.gate(ctx)
	if err != nil {
		return err
	}
	done, err := g.Run(ctx, func() bool {
		s.share(float64(g.Done()) / float64(g.Trials()))
		return s.more()
	})
	if err != nil {
		return orInterrupted(ctx, err)
	}
	s.share(float64(g.Done()) / float64(g.Trials()))
	if !done {
		s.state.gate, err = g.State()
		return fail(err)
	}
	v, err := g.Verdict()
	if err != nil {
		return fail(err)
	}
	promoted := false
	if farm != "" {
		if promoted, err = gate.Settle(ctx, s.cfg.Registry, farm, version, v); err != nil {
			return ofRegistry(err)
		}
	}
	s.cfg.Log.Info("a training is over", "run", s.run.ID, "farm", farm, "policy", registry.Short(version), "verdict", v.Outcome, "promoted", promoted)
	s.finish(func(p *trainer.Progress) { p.Verdict, p.Promoted = &v, promoted })
	return nil
}

func (s *session) finish(change func(*trainer.Progress)) {
	s.share(1)
	s.tell(change)
	s.run.State = trainer.Done
}

// challenge puts what was learned into the registry. All of it may be done again.
func (s *session) challenge(ctx context.Context) error {
	farm, reg := s.run.Request.Farm, s.cfg.Registry
	by := "training " + s.run.ID
	version, err := reg.Import(ctx, s.state.policy, registry.Origin{By: by, Note: farm})
	if err != nil {
		return ofRegistry(err)
	}
	if farm != "" {
		if s.state.opponent, _, err = reg.Champion(ctx, farm); err != nil {
			return ofRegistry(err)
		}
		if err := reg.Challenge(ctx, farm, version, registry.Reason{By: by}); err != nil {
			return ofRegistry(err)
		}
	}
	s.tell(func(p *trainer.Progress) { p.Version = version })
	// The slice is over, so that it is kept whom the gate compares with: whoever is killed
	// while he promotes would find his own policy to be the champion.
	s.until = s.cfg.Now()
	return nil
}

// gate as it was after the slice before.
func (s *session) gate(ctx context.Context) (*gate.Gate, error) {
	m, err := s.model()
	if err != nil {
		return nil, fail(err)
	}
	cfg := gate.Config{Challenger: s.state.policy, Rule: s.state.rule, Scenarios: []*workload.Scenario{m.Scenario}, Traffic: m.Traffic, Notes: m.Fit.Notes}
	if s.state.opponent != "" {
		if cfg.Champion, err = s.cfg.Registry.Policy(ctx, s.state.opponent); err != nil {
			return nil, ofRegistry(err)
		}
	}
	turn(s.knobs.gate, &cfg)
	g, err := gate.New(cfg)
	if err != nil {
		return nil, fail(err)
	}
	if s.state.gate != nil {
		if err := g.Restore(s.state.gate); err != nil {
			return nil, fail(err)
		}
	}
	return g, nil
}

// ofRegistry tells what would come again from what may pass.
func ofRegistry(err error) error {
	for _, lasting := range []error{registry.ErrUnknown, registry.ErrInvalid, registry.ErrDamaged, registry.ErrFull} {
		if errors.Is(err, lasting) {
			return fail(err)
		}
	}
	return err
}

// orInterrupted is an error that would come again, unless it came of the end of ctx.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return fail(err)
}
