package farmenv

import (
	"fmt"
	"math"

	"farmhand/env"
	"farmhand/policy"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// The published environment (Li et al., arXiv 2602.06555, and its authors'
// repository): an episode has 30 steps of 8 s at least.
const (
	PaperID    = "FarmPaper-v0"
	paperSteps = 30
)

// PaperReward is what a Paper pays.
type PaperReward string

// Rewards of a Paper.
const (
	Published PaperReward = "published" // as its authors' repository has it
	Weighed   PaperReward = "weighed"   // as Farm has it: lateness with a weight, worker-seconds, actions
)

// PaperConfig of a Paper.
type PaperConfig struct {
	// Scenario is paper-as-run or paper-fixed, their phases in order or shuffled.
	Scenario *workload.Scenario
	// MaskClock shows input_q and output_q as 0: the phases that are left, and the
	// tasks that are done, tell what comes next where phases come in a fixed order.
	MaskClock bool
	// Jumps adds steps of 2, 4 and 8 replicas to the published one.
	Jumps  bool
	Reward PaperReward
}

// MetricStepQoS is a metric of a Paper, after those that it has in common with Farm:
// the published quality of service of a step, a share.
const MetricStepQoS = MetricSeconds + 1

// Paper is the published environment of a task farm (FarmPaper-v0), played by the
// simulator: 1,140 tasks in four phases, each due after twice its own service time;
// one worker more, less, or as many, every 8 s; a step waits until its action has
// taken effect.
//
// An observation has the published nine numbers and bounds, beyond which they are cut:
//
//	input_q       phases that have not begun
//	worker_q      tasks that wait for a worker
//	result_q      results on their way to the collector
//	output_q      tasks done
//	workers       replicas
//	avg_time      mean sojourn of the tasks done in the last 8 s, 1.5 s where none was
//	max_time      the longest of them
//	arrival_rate  tasks per second since the last step
//	qos_rate      share on time of the tasks done since the last step, 1 where none was
//
// The published reward, with the weights of the repository's last commit:
//
//	 36 (qos − 0.95)                          qos
//	−2.5 max(0, worker_q/30 − 1)²             backlog
//	−0.05 max(0, workers − 14)                efficiency, where worker_q ≤ 8 and qos ≥ 0.95
//	−0.08 |Δ|                                 scaling
//	+5.5 |Δ|                                  up, where Δ > 0 and worker_q > 30 or qos < 0.95
//	+0.1 |Δ|                                  down, where Δ < 0 and not so
//	+3.6                                      balanced, where qos ≥ 0.95 and worker_q ≤ 15
//	 8, or −2 min(30, unfinished)             end
//
// Δ is what was added within 1 … 32 workers. The other reward is that of Farm.
//
// An episode ends when all tasks are done, or with step 30: for what is left then
// the reward has a price, so that both are terminal states. A task that is left is
// worked off with the replicas there are, at no cost, and is late by its own due, so
// that starving a farm hides nothing.
type Paper struct {
	cfg   PaperConfig
	spec  env.Spec
	moves []int // replicas added, by action

	sim    *sim.Sim
	o      policy.Observation
	starts []float64 // of the phases
	tasks  int
	before sim.Totals
	step   int
	over   bool

	weight  float64 // on lateness, set by WeighLate; 0: the option's
	price   prices
	qos     float64 // of the last step
	obs     [9]float64
	parts   []float64
	metrics [MetricStepQoS + 1]float64
}

// prices are what things cost in the weighed reward; late at a weight of 1.
type prices struct{ weight, late, second, action float64 }

// Terms of the published reward.
const (
	paperQoS       = 0.95
	paperQueue     = 30
	paperBalanced  = 15
	paperIdle      = 8
	paperEfficient = 14
	paperUnknown   = 1.5 // s, a sojourn where there was none
)

var (
	paperNames     = []string{"input_q", "worker_q", "result_q", "output_q", "workers", "avg_time", "max_time", "arrival_rate", "qos_rate"}
	paperLow       = []float64{0, 0, 0, 0, 1, 0, 0, 0, 0}
	paperHigh      = []float64{3, 800, 10, 1140, 32, 150, 160, 12, 1}
	publishedParts = []string{"qos", "backlog", "efficiency", "scaling", "up", "down", "balanced", "end"}
	weighedParts   = []string{"late", "workers", "churn"}
	weighedOptions = []env.Option{
		{Name: OptionLate, Doc: "weight on lateness", Default: 0.3, Min: 0, Max: 1000},
		{Name: OptionAction, Doc: "cost of an action", Default: 0.02, Min: 0, Max: 100},
	}
)

// NewPaper makes a Paper. The error says what of the configuration cannot be.
func NewPaper(cfg PaperConfig) (*Paper, error) {
	if cfg.Scenario == nil {
		return nil, fmt.Errorf("farmenv: %s has no Scenario: want paper-as-run or paper-fixed", PaperID)
	}
	if _, ok := cfg.Scenario.Arrivals.(workload.Phases); !ok {
		return nil, fmt.Errorf("farmenv: %s plays phases, and %s has none: want paper-as-run or paper-fixed", PaperID, cfg.Scenario.Name)
	}
	p := &Paper{cfg: cfg, sim: &sim.Sim{}, moves: []int{-1, 0, 1}}
	if cfg.Jumps {
		p.moves = []int{-8, -4, -2, -1, 0, 1, 2, 4, 8}
	}
	names := make([]string, len(p.moves))
	for i, n := range p.moves {
		if names[i] = fmt.Sprintf("%+d", n); n == 0 {
			names[i] = "hold"
		}
	}
	p.spec = env.Spec{ID: PaperID, Observation: env.Box{Names: paperNames, Low: paperLow, High: paperHigh}, Action: env.Discrete{Names: names},
		Metrics: []string{"decided", "late", "worker_seconds", "actions", "seconds", "step_qos"}}
	switch cfg.Reward {
	case Published:
		p.spec.Parts = publishedParts
	case Weighed:
		p.spec.Parts, p.spec.Options = weighedParts, weighedOptions
	default:
		return nil, fmt.Errorf("farmenv: the Reward of %s is %q: want %q or %q", PaperID, cfg.Reward, Published, Weighed)
	}
	p.parts = make([]float64, len(p.spec.Parts))
	return p, nil
}

// Spec implements env.Env.
func (p *Paper) Spec() *env.Spec { return &p.spec }

// Hold is the action that changes nothing.
func (p *Paper) Hold() int { return len(p.moves) / 2 }

// WeighLate sets the weight on lateness of the weighed reward from now on, in place of
// the option's.
func (p *Paper) WeighLate(weight float64) {
	p.weight, p.price.weight = weight, weight
}

// Reset implements env.Env. It panics where the scenario cannot be simulated.
func (p *Paper) Reset(seed uint64, options env.Options) ([]float64, env.Info) {
	if err := p.spec.CheckOptions(options); err != nil {
		panic(err)
	}
	s := *p.cfg.Scenario
	// Steps can last longer than 8 s, and what is left after them is worked off.
	s.Horizon = 4 * paperSteps * s.Farm.Interval
	tasks := s.Draw(seed)
	if err := p.sim.Reset(sim.Config{Scenario: &s, Tasks: tasks, Seed: seed}); err != nil {
		panic(err)
	}
	p.starts = phaseStarts(p.starts[:0], s.Arrivals.(workload.Phases), tasks.Changes)
	p.tasks, p.step, p.over = len(tasks.At), 0, false
	if p.cfg.Reward == Weighed {
		p.setPrices(&s, tasks, options)
	}
	p.before = p.sim.Totals()
	p.qos = 1
	p.look(0)
	return p.obs[:], env.Info{}
}

// setPrices so that the reward of an episode is that of Farm.
func (p *Paper) setPrices(s *workload.Scenario, tasks *workload.Tasks, options env.Options) {
	work := 0.0
	for _, x := range tasks.Service {
		work += x + s.Platform.Overhead
	}
	p.price = prices{
		weight: p.spec.Option(options, OptionLate),
		late:   paperSteps / (float64(len(tasks.At)) * (1 - s.Farm.Target)),
		second: paperSteps / work, // of a second of one, where work/(steps·I) are busy in the mean
		action: p.spec.Option(options, OptionAction),
	}
	if p.weight > 0 {
		p.price.weight = p.weight
	}
}

// phaseStarts appends when the phases of a run begin.
func phaseStarts(starts []float64, f workload.Phases, changes []workload.Change) []float64 {
	if f.Compressed { // how long one lasts is chance; its rate is one for all of it
		for _, c := range changes[:len(f.Phases)] {
			starts = append(starts, c.At)
		}
		return starts
	}
	at := 0.0
	for _, phase := range f.Phases { // all last as long, in whatever order they come
		starts = append(starts, at)
		at += phase.Seconds
	}
	return starts
}

// look observes; rate is that of the arrivals since the last step.
func (p *Paper) look(rate float64) {
	p.sim.Observe(&p.o)
	now := &p.before
	left := 0.0
	for _, at := range p.starts {
		if at > now.At {
			left++
		}
	}
	running := math.Round(p.o.Busy.Or(0) * float64(p.o.Ready*p.o.Slots))
	mean, most := paperUnknown, paperUnknown
	if s := &p.o.Last.Sojourn; s.N > 0 {
		mean, most = s.Mean, s.Max
	}
	p.obs = [...]float64{left, float64(now.Waiting), float64(now.Leased) - running, float64(now.Done), float64(p.o.Desired), mean, most, rate, p.qos}
	if p.cfg.MaskClock {
		p.obs[0], p.obs[3] = 0, 0
	}
	for i, x := range p.obs {
		p.obs[i] = min(max(x, paperLow[i]), paperHigh[i])
	}
}

// Step implements env.Env.
func (p *Paper) Step(action int) (obs []float64, reward float64, terminated, truncated bool, info env.Info) {
	if p.over || !p.spec.Action.Contains(action) {
		panic(fmt.Sprintf("farmenv: %s: action %d is not allowed now", PaperID, action))
	}
	farm := &p.cfg.Scenario.Farm
	n := min(max(p.o.Desired+p.moves[action], farm.Min), farm.Max)
	moved := n - p.o.Desired
	p.sim.Scale(n)
	p.sim.Advance()
	p.step++

	was, now := p.before, p.sim.Totals()
	p.before = now
	left := p.tasks - now.Done - now.Dead
	p.qos = 1
	if done := ended(now) - ended(was); done > 0 {
		p.qos = 1 - float64(endedLate(now)-endedLate(was))/float64(done)
	}
	p.look(float64(now.Tasks-was.Tasks) / (now.At - was.At))
	p.over = left == 0 || p.step == paperSteps
	final := now
	if p.over && left > 0 {
		final = p.workOff()
	}
	p.metrics = [...]float64{float64(final.Decided - was.Decided), float64(final.Late - was.Late), now.WorkerSeconds - was.WorkerSeconds,
		float64(now.Actions - was.Actions), now.At - was.At, p.qos}
	if p.cfg.Reward == Published {
		p.pay(moved, left)
	} else {
		copy(p.parts, []float64{-p.price.weight * p.price.late * p.metrics[MetricLate], -p.price.second * p.metrics[MetricWorkers], -p.price.action * p.metrics[MetricActions]})
	}
	for _, x := range p.parts {
		reward += x
	}
	return p.obs[:], reward, p.over, false, env.Info{Parts: p.parts, Metrics: p.metrics[:]}
}

// ended and endedLate are the tasks that have ended, and of them the late ones: every
// task has a due, and of the decided those that have not ended are overdue.
func ended(t sim.Totals) int     { return t.Done + t.Dead }
func endedLate(t sim.Totals) int { return t.Late - (t.Decided - ended(t)) }

// workOff lets the farm run on until it is known of each task whether it is late.
func (p *Paper) workOff() (t sim.Totals) {
	for t = p.sim.Totals(); t.Decided < p.tasks && p.sim.Advance(); {
		t = p.sim.Totals()
	}
	return t
}

// pay fills in the parts of the published reward.
func (p *Paper) pay(moved, left int) {
	queue, workers := float64(p.before.Waiting), float64(p.o.Desired)
	size := math.Abs(float64(moved))
	overloaded := queue > paperQueue || p.qos < paperQoS
	over := max(0, queue/paperQueue-1)
	clear(p.parts)
	p.parts[0] = 36 * (p.qos - paperQoS)
	p.parts[1] = -2.5 * over * over
	if queue <= paperIdle && p.qos >= paperQoS {
		p.parts[2] = -0.05 * max(0, workers-paperEfficient)
	}
	p.parts[3] = -0.08 * size
	if moved > 0 && overloaded {
		p.parts[4] = 5.5 * size
	}
	if moved < 0 && !overloaded {
		p.parts[5] = 0.1 * size
	}
	if p.qos >= paperQoS && queue <= paperBalanced {
		p.parts[6] = 3.6
	}
	switch {
	case p.over && left == 0:
		p.parts[7] = 8
	case p.over:
		p.parts[7] = -2 * min(30, float64(left))
	}
}
