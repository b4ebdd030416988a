package train

import (
	"farmhand/rl"
	"farmhand/sim/workload"
)

// GeneralRule is the law that a general policy starts from, is advised by, falls back to,
// and must not be later than: staffing, calibrated on the training scenarios together
// ("pooled" in docs/RESULTS.md).
const GeneralRule = "staffing:headroom=0.8403,beta=0.7383,drain=1.269,floor=3,cap=220,down=143.3,trend=0.5814,window=292.6,cooldown=68.73,band=0.1,boost=0.7862,hold=9.089"

// generalActions are those that mean the same on a farm of any size, and single steps.
var generalActions = []string{"-1", "hold", "+1", "rule", "rule-before", "rule-peak"}

// General is the configuration for one of the policies that Merge makes one of, which serves
// farms of many kinds. It imitates the rule first, and leaves it where that pays, so that on
// a farm that it has never met it does about what the rule does. It looks minutes ahead: on a
// farm with rare peaks what was given back is missed much later. Lateness has the same price
// everywhere, a point as much as 8 % of the rule's workers: a weight that rises as long as
// one scenario is late makes the policy wild on others. Half of the episodes are blends of
// loads, and most others farms of other services, deadlines and intervals.
func General(scenarios ...*workload.Scenario) Config {
	c := Default(scenarios...)
	c.Learner, c.Rule, c.Fallback, c.Peer, c.Only = "ppo", GeneralRule, GeneralRule, GeneralRule, generalActions
	c.Blend, c.Randomise = true, true
	c.Steps, c.Round, c.Clone, c.Gamma, c.Seeds = 500_000, 131_072, 20_000, 0.995, c.Final
	c.Late, c.Dual, c.Last = 0.4, 0, true
	c.Adjust = func(settings any) {
		if p, ok := settings.(*rl.PGConfig); ok {
			p.Lambda = 0.99
		}
	}
	return c
}

// Tuned is the configuration for a policy of one farm that begins as another policy does,
// such as a general one, and learns for a quarter of the steps: as there are fewer, those of
// double DQN are larger, and so are those of the weight on lateness.
func Tuned(from []byte, scenarios ...*workload.Scenario) Config {
	c := Default(scenarios...)
	c.From, c.Clone, c.Dual = from, 10_000, 0.5
	c.SetSteps(c.Steps / 4)
	c.Adjust = func(settings any) {
		if s, ok := settings.(*rl.DQNConfig); ok {
			s.LearningRate *= 2
		}
	}
	return c
}
