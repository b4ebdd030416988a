package paper

import (
	"fmt"
	"slices"

	"farmhand/env"
	"farmhand/env/farmenv"
	"farmhand/rl"
)

// Settings of a training.
type Settings struct {
	Reward  farmenv.PaperReward `json:"reward"`
	Steps   int                 `json:"steps"`   // of the environment to learn from; an episode has 30 at most
	Envs    int                 `json:"envs"`    // farms that are played at once
	Target  float64             `json:"target"`  // share on time that the policy is chosen for; 0: the last policy is taken
	Actions float64             `json:"actions"` // an episode that the policy should need at most
	Margin  float64             `json:"margin"`  // by how much of the allowed lateness a policy stays below it
	Round   int                 `json:"round"`   // steps between two looks at the policy
	Looks   int                 `json:"looks"`   // episodes of a look
	Final   int                 `json:"final"`   // episodes that decide among the best
	Late    float64             `json:"late"`    // weight on lateness to begin with
	Dual    float64             `json:"dual"`    // step by which it follows the target
	Warmup  int                 `json:"warmup"`  // steps before it does: what a beginner comes to says little
	Churn   float64             `json:"churn"`   // cost of an action

	Logarithms bool `json:"logarithms,omitempty"` // observed too

	DQN   *rl.DQNConfig   `json:"dqn,omitempty"` // one of them
	PG    *rl.PGConfig    `json:"pg,omitempty"`
	SARSA *rl.SARSAConfig `json:"sarsa,omitempty"`
}

// published is how the published learners were trained: one farm, the published
// reward, and no choice among policies but the last.
func published(steps int) Settings {
	return Settings{Reward: farmenv.Published, Steps: steps, Envs: 1, Round: 600, Looks: 20}
}

// ours is a training under a target, with the reward of Farm.
func ours(target float64, steps int) Settings {
	return Settings{Reward: farmenv.Weighed, Steps: steps, Envs: 8, Target: target, Actions: 12, Margin: 0.08,
		Round: steps / 40, Looks: 100, Final: 1500, Late: 0.8, Dual: 0.1, Warmup: steps / 3, Churn: 0.05}
}

// Presets are the trainings there are, by name.
var presets = map[string]func() Settings{
	// SARSA(λ) and double DQN with the published bins, networks, settings and numbers of
	// steps, 260 and 80 episodes (the target network of the latter repaired, rl.PaperDQN).
	"sarsa-published": func() Settings {
		s, c := published(7427), rl.PaperSARSA()
		s.SARSA = &c
		return s
	},
	"dqn-published": func() Settings {
		s, c := published(2264), rl.PaperDQN()
		s.DQN = &c
		return s
	},
	// An episode has thirty steps: nothing need be worth less later.
	"sarsa": func() Settings {
		s := ours(0.99, 300_000)
		s.Late, s.Dual = 1, 0 // a table forgets too slowly what an action was worth at another weight
		s.SARSA = &rl.SARSAConfig{
			Bins:  clockBins(),
			Alpha: 0.2, AlphaEnd: 0.02, AlphaDecay: 0.9995, Gamma: 1, Lambda: 0.8,
			EpsilonStart: 0.3, EpsilonEnd: 0.02, EpsilonDecay: 0.9995, TraceMin: 1e-5, LogEpisodes: 100,
		}
		return s
	},
	"dqn": func() Settings {
		s, c := ours(0.99, 240_000), rl.DefaultDQN()
		c.Gamma, c.RewardScale, c.Dueling, c.NStep, c.EpsilonSteps, c.EpsilonEnd = 0.99, 0.2, true, 5, 40_000, 0.02
		c.AnnealSteps = s.Steps
		s.DQN = &c
		return s
	},
	"ppo": func() Settings {
		s, c := ours(0.99, 600_000), rl.PPO()
		s.Logarithms, s.Late, s.Warmup, s.Churn, s.Dual = true, 1, s.Steps/5, 0.015, 0.2
		c.Gamma, c.Lambda, c.RewardScale, c.LearningRate, c.EntropyCoef = 1, 0.95, 0.2, 3e-3, 0.01
		c.Rollout, c.Batch, c.Epochs = 512, 1024, 6 // an episode says little: many for an update
		c.AnnealSteps = s.Steps * 3 / 2
		s.PG = &c
		return s
	},
}

// clockBins tell the course of an episode by the tasks that are done, finest in its
// first minute, and each number of workers from the next.
func clockBins() map[string][]float64 {
	done, workers := []float64{0.5, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 100, 120}, []float64(nil)
	for e := 160.0; e < 1140; e += 45 {
		done = append(done, e)
	}
	for w := 8.5; w < 24; w++ {
		workers = append(workers, w)
	}
	return map[string][]float64{"output_q": done, "workers": workers, "worker_q": {0.5, 4.5, 12.5}}
}

// SetSteps changes how long is learned, and what depends on it.
func (s *Settings) SetSteps(n int) {
	s.Round, s.Warmup = max(1, s.Round*max(0, n)/s.Steps), s.Warmup*max(0, n)/s.Steps
	s.Steps = n
	if s.DQN != nil && s.DQN.AnnealSteps > 0 {
		s.DQN.AnnealSteps = n
	}
	if s.PG != nil && s.PG.AnnealSteps > 0 {
		s.PG.AnnealSteps = n * 3 / 2
	}
}

// Learners are the names of the presets.
func Learners() []string {
	var names []string
	for name := range presets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Preset is the settings of a learner.
func Preset(learner string) (Settings, error) {
	f, ok := presets[learner]
	if !ok {
		return Settings{}, fmt.Errorf("paper: %q is no learner: want one of %v", learner, Learners())
	}
	return f(), nil
}

// setSeed of the learner.
func (s *Settings) setSeed(seed uint64) {
	if s.DQN != nil {
		s.DQN.Seed = seed
	}
	if s.PG != nil {
		s.PG.Seed = seed
	}
	if s.SARSA != nil {
		s.SARSA.Seed = seed
	}
}

// learner makes the learner of the settings, and how what it knows becomes a policy.
func (s *Settings) learner(seed uint64, spec *env.Spec) (l rl.Learner, put func(*Policy), err error) {
	s.setSeed(seed)
	switch {
	case s.DQN != nil:
		l, err := rl.NewDQN(*s.DQN, spec)
		return l, func(p *Policy) { n := l.Network(); p.Network = &n }, err
	case s.PG != nil:
		l, err := rl.NewPG(*s.PG, spec)
		return l, func(p *Policy) { n := l.Network(); p.Network = &n }, err
	case s.SARSA != nil:
		l, err := rl.NewSARSA(*s.SARSA, spec)
		return l, func(p *Policy) { p.Table = l.Table() }, err
	}
	return nil, nil, fmt.Errorf("paper: the settings have no learner: want DQN, PG or SARSA")
}
