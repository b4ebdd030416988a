package skeleton

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of what an annotation may say.
const (
	maxSlots    = 1000
	maxReplicas = 10_000
	maxTimeout  = 24 * time.Hour
	maxDeadline = 30 * 24 * time.Hour
	minInterval = time.Second
	maxInterval = time.Minute
)

// Labels and annotations of OpenFaaS itself that a farm's defaults come from.
const (
	labelScaleMin = "com.openfaas.scale.min"
	labelScaleMax = "com.openfaas.scale.max"
)

// IsWorker reports whether a function's labels make it a worker.
func IsWorker(labels map[string]string) bool {
	return strings.EqualFold(strings.TrimSpace(labels[LabelWorker]), "true")
}

// DefaultSettings are those of a farm that says nothing.
func DefaultSettings() Settings {
	return Settings{Slots: DefaultSlots, Target: DefaultTarget, Timeout: DefaultTimeout, Interval: DefaultInterval, Min: 1, Max: DefaultMax}
}

// ParseSettings reads what a worker function says of its farm. Each problem
// names the annotation, the value and what would be right; its setting keeps
// the default.
func ParseSettings(labels, annotations map[string]string) (Settings, []string) {
	p := parser{from: annotations}
	s := DefaultSettings()
	p.integer(AnnotationSlots, &s.Slots, 1, maxSlots)
	p.deadline(AnnotationDeadline, &s)
	p.number(AnnotationTarget, &s.Target, 0.01, 1, "a share of tasks between 0.01 and 1, such as 0.95")
	p.duration(AnnotationTimeout, &s.Timeout, time.Millisecond, maxTimeout)
	p.duration(AnnotationService, &s.Service, time.Microsecond, maxTimeout)
	p.duration(AnnotationInterval, &s.Interval, minInterval, maxInterval)
	p.number(AnnotationBudget, &s.Budget, 0, 1e9, "worker-hours a day, such as 10")
	if v, ok := annotations[AnnotationPolicy]; ok {
		s.Policy = strings.TrimSpace(v)
	}
	if v, ok := annotations[AnnotationShadow]; ok {
		s.Shadow = strings.TrimSpace(v)
	}
	scale := parser{from: labels}
	scale.integer(labelScaleMin, &s.Min, 0, maxReplicas)
	scale.integer(labelScaleMax, &s.Max, 0, maxReplicas)
	p.problems = append(p.problems, scale.problems...)
	p.integer(AnnotationMin, &s.Min, 0, maxReplicas)
	p.integer(AnnotationMax, &s.Max, 0, maxReplicas)
	p.misplaced(labels, annotations)
	if s.Max > 0 && s.Min > s.Max {
		p.problem(AnnotationMin, strconv.Itoa(s.Min), fmt.Sprintf("no more than the maximum, %d", s.Max))
		s.Min = s.Max
	}
	return s, p.problems
}

// settings are the annotations of a farm.
var settings = []string{AnnotationSlots, AnnotationDeadline, AnnotationTarget, AnnotationTimeout, AnnotationService,
	AnnotationPolicy, AnnotationShadow, AnnotationInterval, AnnotationMin, AnnotationMax, AnnotationBudget}

// misplaced finds settings that would be ignored without a word: those written
// as labels, and misspelt ones. Annotations of the local platform are not ours.
func (p *parser) misplaced(labels, annotations map[string]string) {
	for _, name := range settings {
		if v, ok := labels[name]; ok {
			p.problem(name, v, "it as an annotation, not as a label")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		short, ours := strings.CutPrefix(name, "farmhand.")
		if ours && !strings.Contains(short, ".") && !slices.Contains(settings, name) {
			what := "one of " + strings.Join(settings, ", ")
			if name == LabelWorker {
				what = "it as a label, not as an annotation"
			}
			p.problem(clipText(name, 60), annotations[name], what)
		}
	}
}

type parser struct {
	from     map[string]string
	problems []string
}

func (p *parser) problem(name, value, want string) {
	p.problems = append(p.problems, fmt.Sprintf("%s: %q is not valid: want %s", name, clipText(value, 60), want))
}

func (p *parser) value(name string) (string, bool) {
	v, ok := p.from[name]
	return strings.TrimSpace(v), ok
}

func (p *parser) integer(name string, into *int, lo, hi int) {
	v, ok := p.value(name)
	if !ok {
		return
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < lo || n > hi {
		p.problem(name, v, fmt.Sprintf("a whole number from %d to %d", lo, hi))
		return
	}
	*into = n
}

func (p *parser) number(name string, into *float64, lo, hi float64, want string) {
	v, ok := p.value(name)
	if !ok {
		return
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(x) || x < lo || x > hi {
		p.problem(name, v, want)
		return
	}
	*into = x
}

func (p *parser) duration(name string, into *time.Duration, lo, hi time.Duration) {
	v, ok := p.value(name)
	if !ok {
		return
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < lo || d > hi {
		p.problem(name, v, fmt.Sprintf("a duration from %s to %s, such as 30s", lo, hi))
		return
	}
	*into = d
}

// deadline reads "150ms", or "2x": twice the expected service time.
func (p *parser) deadline(name string, s *Settings) {
	v, ok := p.value(name)
	if !ok {
		return
	}
	if factor, isFactor := strings.CutSuffix(v, "x"); isFactor {
		f, err := strconv.ParseFloat(factor, 64)
		if err != nil || math.IsNaN(f) || f < 1 || f > 1000 {
			p.problem(name, v, "a factor of the service time from 1x to 1000x")
			return
		}
		s.DeadlineFactor = f
		return
	}
	p.duration(name, &s.Deadline, time.Millisecond, maxDeadline)
}

// EffectiveDeadline is the soft bound on sojourn: a fixed one, or a factor of
// the service time's prior; 0 where neither is known.
func (s Settings) EffectiveDeadline() time.Duration {
	if s.Deadline > 0 {
		return s.Deadline
	}
	return time.Duration(s.DeadlineFactor * float64(s.Service))
}

func clipText(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
