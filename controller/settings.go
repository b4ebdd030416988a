package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"farmhand/skeleton"
)

// DefaultPolicy is the rule: it scales farms that name no policy, and stands in
// for a policy that cannot decide.
const DefaultPolicy = "staffing"

// none is a setting that is not set.
const none = "none"

// modeSetting is the override that is no setting of the worker's own.
const modeSetting = "mode"

// Override is a setting that an operator gave, in the place of the worker's own.
type Override struct {
	Value string    `json:"value"`
	Until time.Time `json:"until,omitzero"` // zero = until it is removed
}

// Overrides by the name of the setting, without "farmhand.".
type Overrides map[string]Override

func decodeOverrides(raw []byte) (Overrides, error) {
	o := Overrides{}
	if len(raw) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return Overrides{}, fmt.Errorf("controller: the overrides of a farm cannot be read: %w", err)
	}
	return o, nil
}

// live leaves out what is over.
func (o Overrides) live(now time.Time) Overrides {
	o = maps.Clone(o)
	maps.DeleteFunc(o, func(_ string, v Override) bool { return !v.Until.IsZero() && !v.Until.After(now) })
	return o
}

// Setting is an effective value and where it comes from.
type Setting struct {
	Value  string    `json:"value"`
	Origin string    `json:"origin"` // override, annotation, label or default
	Until  time.Time `json:"until,omitzero"`
}

// effective is what holds for a farm.
type effective struct {
	skeleton.Settings
	Mode     Mode
	Origins  map[string]Setting
	Problems []string
}

// settle makes the effective settings of a worker. Each problem names the
// setting, its value and what would be right.
func settle(w Worker, o Overrides) effective {
	merged := maps.Clone(w.Annotations)
	if merged == nil {
		merged = map[string]string{}
	}
	for name, v := range o {
		if name != modeSetting {
			merged["farmhand."+name] = v.Value
		}
	}
	e := effective{Mode: Act, Origins: map[string]Setting{}}
	e.Settings, e.Problems = skeleton.ParseSettings(w.Labels, merged)
	if e.Policy == "" {
		e.Policy = DefaultPolicy
	}
	e.Policy = e.named(skeleton.AnnotationPolicy, e.Policy, DefaultPolicy)
	if e.Shadow == none {
		e.Shadow = ""
	}
	if e.Shadow != "" {
		e.Shadow = e.named(skeleton.AnnotationShadow, e.Shadow, "")
	}
	if m, ok := o[modeSetting]; ok {
		e.Mode = Mode(m.Value)
		if !slices.Contains([]Mode{Act, Shadow, DryRun, Paused}, e.Mode) {
			e.Problems = append(e.Problems, fmt.Sprintf("mode: %q is not valid: want act, shadow, dry-run or paused", m.Value))
			e.Mode = Act
		}
	}
	e.Problems = append(e.Problems, timeouts(e.Timeout, w.Env)...)
	e.origins(w, o)
	return e
}

// named spells a policy as everywhere; instead takes the place of one that is not
// valid.
func (e *effective) named(setting, spec, instead string) string {
	name, err := canonical(spec)
	if err != nil {
		e.Problems = append(e.Problems, fmt.Sprintf("%s: %s", setting, strings.TrimPrefix(err.Error(), "policy: ")))
		return instead
	}
	return name
}

// keep lets what is not valid now have its last good value, if there was one.
func (e *effective) keep(good skeleton.Settings) {
	if good.Interval == 0 || len(e.Problems) == 0 {
		return
	}
	for _, p := range e.Problems {
		name, _, _ := strings.Cut(p, ": ")
		switch strings.TrimPrefix(strings.TrimPrefix(name, "farmhand."), "com.openfaas.scale.") {
		case "slots":
			e.Slots = good.Slots
		case "deadline":
			e.Deadline, e.DeadlineFactor = good.Deadline, good.DeadlineFactor
		case "target":
			e.Target = good.Target
		case "timeout":
			e.Timeout = good.Timeout
		case "service":
			e.Service = good.Service
		case "policy":
			e.Policy = good.Policy
		case "shadow":
			e.Shadow = good.Shadow
		case "interval":
			e.Interval = good.Interval
		case "min":
			e.Min = good.Min
		case "max":
			e.Max = good.Max
		case "budget":
			e.Budget = good.Budget
		}
	}
	if e.Max > 0 {
		e.Min = min(e.Min, e.Max)
	}
	values := e.values()
	for name, s := range e.Origins {
		s.Value = values[name]
		e.Origins[name] = s
	}
}

// origins notes each value and where it comes from.
func (e *effective) origins(w Worker, o Overrides) {
	for name, value := range e.values() {
		s := Setting{Value: value, Origin: "default"}
		if _, ok := w.Labels["com.openfaas.scale."+name]; ok && (name == "min" || name == "max") {
			s.Origin = "label"
		}
		if _, ok := w.Annotations["farmhand."+name]; ok {
			s.Origin = "annotation"
		}
		if v, ok := o[name]; ok {
			s.Origin, s.Until = "override", v.Until
		}
		e.Origins[name] = s
	}
}

// values are the settings as text, by name.
func (e *effective) values() map[string]string {
	deadline := none
	switch {
	case e.DeadlineFactor > 0:
		deadline = fmt.Sprintf("%gx", e.DeadlineFactor)
	case e.Deadline > 0:
		deadline = e.Deadline.String()
	}
	orNone := func(set bool, text string) string {
		if !set {
			return none
		}
		return text
	}
	return map[string]string{
		modeSetting: string(e.Mode), "policy": e.Policy, "shadow": orNone(e.Shadow != "", e.Shadow), "slots": fmt.Sprint(e.Slots), "deadline": deadline,
		"target": fmt.Sprint(e.Target), "timeout": e.Timeout.String(), "service": orNone(e.Service > 0, e.Service.String()),
		"interval": e.Interval.String(), "min": fmt.Sprint(e.Min), "max": orNone(e.Max > 0, fmt.Sprint(e.Max)),
		"budget": orNone(e.Budget > 0, fmt.Sprint(e.Budget)),
	}
}

// patch applies what an operator asks for: a value, or nil to remove it.
func (o Overrides) patch(changes map[string]*string, until time.Time) (Overrides, error) {
	out := maps.Clone(o)
	known := (&effective{}).values()
	for name, value := range changes {
		name = strings.TrimPrefix(name, "farmhand.")
		if _, ok := known[name]; !ok {
			return nil, &BadSetting{Field: name, Detail: "there is no such setting", Fix: "use one of " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")}
		}
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = Override{Value: *value, Until: until}
	}
	return out, nil
}

// BadSetting is an override that cannot hold.
type BadSetting struct {
	Field  string
	Detail string
	Fix    string
}

func (e *BadSetting) Error() string { return e.Field + ": " + e.Detail }
