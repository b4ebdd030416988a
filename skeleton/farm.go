package skeleton

import "time"

// LabelWorker is the label that makes a function a worker.
const LabelWorker = "farmhand.worker"

// Annotations of a worker function.
const (
	AnnotationSlots    = "farmhand.slots"
	AnnotationDeadline = "farmhand.deadline"
	AnnotationTarget   = "farmhand.target"
	AnnotationTimeout  = "farmhand.timeout"
	AnnotationService  = "farmhand.service"
	AnnotationPolicy   = "farmhand.policy"
	AnnotationShadow   = "farmhand.shadow"
	AnnotationInterval = "farmhand.interval"
	AnnotationMin      = "farmhand.min"
	AnnotationMax      = "farmhand.max"
	AnnotationBudget   = "farmhand.budget"
)

// Defaults of a farm.
const (
	DefaultSlots    = 1
	DefaultTarget   = 0.95
	DefaultTimeout  = 55 * time.Second
	DefaultInterval = 2 * time.Second
	DefaultMax      = 20        // as OpenFaaS itself
	TimeToLive      = time.Hour // how long a task may meet nothing but busy workers
)

// Roster is the list of farms that the controller publishes for the
// dispatchers.
type Roster struct {
	Published time.Time `json:"published"` // by the store's clock; zero = never
	Farms     []Farm    `json:"farms"`
}

// Find returns the farm of that name.
func (r Roster) Find(name string) (Farm, bool) {
	for _, f := range r.Farms {
		if f.Name == name {
			return f, true
		}
	}
	return Farm{}, false
}

// Farm is what is known of one worker function: its settings and its replicas.
type Farm struct {
	Name     string   `json:"name"` // of the function; name.namespace outside the default namespace
	Settings Settings `json:"settings"`
	Ready    int      `json:"ready"`  // replicas that serve
	Target   int      `json:"target"` // replicas wanted; lowered at once by a scale-down decision
	Problems []string `json:"problems,omitempty"`
	// Missing is how long the platform's list has lacked the function; the
	// entry stays so that its tasks can be buried.
	Missing time.Duration `json:"missing,omitempty"`
}

// Settings are the effective settings of a farm.
type Settings struct {
	Slots          int           `json:"slots"`                     // tasks a replica runs at once
	Deadline       time.Duration `json:"deadline,omitempty"`        // soft bound on sojourn; 0 = none
	DeadlineFactor float64       `json:"deadline_factor,omitempty"` // "2x": times the expected service time
	Target         float64       `json:"target"`                    // share of tasks on time
	Timeout        time.Duration `json:"timeout"`                   // hard limit per attempt
	Service        time.Duration `json:"service,omitempty"`         // prior of the service time; 0 = unknown
	Policy         string        `json:"policy,omitempty"`
	Shadow         string        `json:"shadow,omitempty"` // a policy that is asked beside it
	Interval       time.Duration `json:"interval"`
	Min            int           `json:"min"`
	Max            int           `json:"max"`              // 0 = no bound of the farm's own
	Budget         float64       `json:"budget,omitempty"` // worker-hours a day; 0 = none
}

// Window is how many tasks the farm may run at once: ⌊min(ready, target) ×
// slots × f⌋, but one while there is a worker, since a farm whose factor fell
// below one slot would never recover.
func Window(ready, target, slots int, f float64) int {
	n := min(ready, target)
	if n <= 0 {
		return 0
	}
	return max(1, int(float64(n*slots)*f))
}
