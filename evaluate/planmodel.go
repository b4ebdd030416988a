package evaluate

import (
	"math"
	"slices"

	"farmhand/sim"
	"farmhand/sim/workload"
)

// planModel says what a plan of replica counts costs and how many tasks it makes
// late, well enough and fast enough to search with: tasks are served as they arrive
// by the slots that are ready, replicas start after the mean lag, a replica that goes
// takes no task more. After a change of the plan only the stretch is played again
// that the change is felt in, mostly a few intervals.
type planModel struct {
	at, service []float64
	latest      []float64 // a task that begins later is late
	interval    float64
	lag         float64 // from the decision until a replica serves
	slots       int
	min, max    int
	first       int // replicas at the beginning

	plan  []int
	state []planState // at the beginning of each interval, and at the end
	late  []int       // tasks that began late in an interval
	lates int
	cost  float64 // worker-seconds

	trial     []planState // of the stretch that is played again
	trialLate []int
	played    int // tasks, in all
}

// planState is where a farm stands at an instant.
type planState struct {
	next     int       // the task that is served next
	free     []float64 // when the slots of the ready replicas are free, ascending
	starting []float64 // when replicas will be ready, ascending
}

func (s *planState) set(o *planState) {
	s.next = o.next
	s.free = append(s.free[:0], o.free...)
	s.starting = append(s.starting[:0], o.starting...)
}

// same reports whether two states go on alike after an instant.
func (s *planState) same(o *planState, now float64) bool {
	return s.next == o.next && slices.Equal(s.starting, o.starting) &&
		slices.EqualFunc(s.free, o.free, func(a, b float64) bool { return a == b || a <= now && b <= now })
}

// removal is for how long a replica is paid that is not wanted any more: the live
// farm looks whether it may go at once or a second later.
const removal = 0.5

func newPlanModel(c sim.Config) *planModel {
	farm, platform, tasks := &c.Scenario.Farm, &c.Scenario.Platform, c.Tasks
	n := int(math.Ceil(tasks.Horizon/farm.Interval - 1e-9))
	m := &planModel{
		at: tasks.At, service: tasks.Service, latest: make([]float64, len(tasks.At)), interval: farm.Interval,
		slots: max(1, farm.Slots), min: max(1, farm.Min), max: farm.Max, first: farm.Start,
		plan: make([]int, n), state: make([]planState, n+1), late: make([]int, n), trial: make([]planState, n+1), trialLate: make([]int, n),
	}
	if platform.Cap > 0 {
		m.max = min(m.max, platform.Cap)
	}
	for _, law := range []workload.Law{platform.Call, platform.Startup, platform.Seen} {
		m.lag += meanOf(law)
	}
	if platform.Overhead > 0 {
		m.service = slices.Clone(tasks.Service)
		for i := range m.service {
			m.service[i] += platform.Overhead
		}
	}
	answer := meanOf(platform.Answer)
	for i, at := range m.at {
		deadline := farm.Deadline
		if tasks.Deadline != nil {
			deadline = tasks.Deadline[i]
		}
		m.latest[i] = at + deadline - m.service[i] - answer
		if at+m.service[i]+answer > tasks.Horizon {
			m.latest[i] = math.Inf(-1) // it is unfinished at the end, and late
		}
	}
	return m
}

func meanOf(law workload.Law) float64 {
	if law == nil {
		return 0
	}
	return law.Mean()
}

// adopt makes a plan the one that is changed from now on.
func (m *planModel) adopt(plan []int) {
	copy(m.plan, plan)
	m.state[0] = planState{free: make([]float64, m.first*m.slots)}
	m.lates, m.cost = 0, 0
	for k := range m.plan {
		m.cost += m.price(m.count(k-1), m.plan[k])
		m.state[k+1].set(&m.state[k])
		m.late[k] = m.serve(&m.state[k+1], k, m.count(k-1), m.plan[k])
		m.lates += m.late[k]
	}
	m.lates += len(m.at) - m.state[len(m.plan)].next
}

// count is the plan's in an interval; before the first, what the farm begins with.
func (m *planModel) count(k int) int {
	if k < 0 {
		return m.first
	}
	return m.plan[k]
}

// price of an interval, in worker-seconds.
func (m *planModel) price(before, n int) float64 {
	return m.interval*float64(n) + removal*float64(max(0, before-n))
}

// serve plays interval k: the count changes, then tasks are served that begin before
// its end. It returns how many of them are late.
func (m *planModel) serve(s *planState, k, before, n int) (late int) {
	now := float64(k) * m.interval
	for range n - before {
		s.starting = append(s.starting, now+m.lag)
	}
	m.remove(s, before-n)
	end, first := now+m.interval, s.next
	for s.next < len(m.at) {
		for len(s.starting) > 0 && (len(s.free) == 0 || s.starting[0] <= max(s.free[0], m.at[s.next])) && s.starting[0] < end {
			m.join(s)
		}
		if len(s.free) == 0 {
			break
		}
		begin := max(m.at[s.next], s.free[0])
		if begin >= end {
			break
		}
		if begin > m.latest[s.next] {
			late++
		}
		insert(s.free, begin+m.service[s.next])
		s.next++
	}
	for len(s.starting) > 0 && s.starting[0] < end {
		m.join(s)
	}
	m.played += s.next - first + 1
	return late
}

// join lets the first of the starting replicas serve.
func (m *planModel) join(s *planState) {
	ready := s.starting[0]
	s.starting = slices.Delete(s.starting, 0, 1)
	for range m.slots {
		i, _ := slices.BinarySearch(s.free, ready)
		s.free = slices.Insert(s.free, i, ready)
	}
}

// remove takes replicas away: those first that start, the last of them before the
// others, then those that are idle or will be first.
func (m *planModel) remove(s *planState, n int) {
	for ; n > 0 && len(s.starting) > 0; n-- {
		s.starting = s.starting[:len(s.starting)-1]
	}
	if n > 0 {
		s.free = slices.Delete(s.free, 0, min(n*m.slots, len(s.free)))
	}
}

// insert puts x in the place of the first of an ascending list, in order.
func insert(list []float64, x float64) {
	i := 1
	for ; i < len(list) && list[i] < x; i++ {
		list[i-1] = list[i]
	}
	list[i-1] = x
}

// try says what it would change to have other counts from interval i on. It must be
// kept or forgotten before the next try.
func (m *planModel) try(i int, counts []int) (cost float64, late, end int) {
	at := func(k int) int {
		if k >= i && k < i+len(counts) {
			return counts[k-i]
		}
		return m.count(k)
	}
	for k := i; k <= min(i+len(counts), len(m.plan)-1); k++ {
		cost += m.price(at(k-1), at(k)) - m.price(m.count(k-1), m.count(k))
	}
	s := &m.state[i]
	for k := i; k < len(m.plan); k++ {
		m.trial[k+1].set(s)
		s = &m.trial[k+1]
		m.trialLate[k] = m.serve(s, k, at(k-1), at(k))
		late += m.trialLate[k] - m.late[k]
		if k >= i+len(counts) && s.same(&m.state[k+1], float64(k+1)*m.interval) {
			return cost, late, k + 1
		}
	}
	late += m.state[len(m.plan)].next - s.next // what is not begun at the end is late
	return cost, late, len(m.plan)
}

// keep makes what was tried the plan.
func (m *planModel) keep(i int, counts []int, cost float64, late, end int) {
	copy(m.plan[i:], counts)
	for k := i; k < end; k++ {
		m.state[k+1], m.trial[k+1] = m.trial[k+1], m.state[k+1]
		m.late[k] = m.trialLate[k]
	}
	m.cost += cost
	m.lates += late
}
