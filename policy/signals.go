package policy

// inFarm is the tasks that wait or run at this instant.
func inFarm(o *Observation) float64 { return tasks(o.Waiting) + tasks(o.Running) }

// working is how many slots have been at work, in the mean over the short window: the
// services that ended in it, over its length. Services longer than the window seldom
// end in it; then, and where nothing was measured, it is the tasks that run now.
func working(o *Observation) float64 {
	w := o.Short
	if w.Covered <= 0 || w.Service.N <= 0 || w.Service.Mean > w.Covered {
		return tasks(o.Running)
	}
	return tasks(Maybe(w.Service.N * w.Service.Mean / w.Covered))
}

// metric is what a peer is set to scale on, where it can be set so.
type metric int

const (
	metricBusy  metric = iota // slots at work, as a share of processor time
	metricTasks               // tasks that wait or run, as a queue length
)

var metricNames = []string{"busy", "tasks"}

func (k metric) total(o *Observation) float64 {
	if k == metricBusy {
		return working(o)
	}
	return inFarm(o)
}

func (k metric) String() string {
	return [...]string{"slots at work", "tasks in the farm"}[k]
}

// metricParam is the parameter that says which.
func metricParam(k metric) Param {
	return Param{Name: "metric", Doc: "slots at work, or tasks waiting and running", Default: float64(k), Choices: metricNames}
}

// asked is the count that was asked for last.
func asked(o *Observation) int { return count(float64(o.Desired)) }
