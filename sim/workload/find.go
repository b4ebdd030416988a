package workload

import (
	"fmt"
	"slices"
	"strings"
)

// Options of Find.
type Options struct {
	Traces string // folder of traces; empty: FARMHAND_TRACES
}

// Find returns a built-in scenario by its name.
func Find(name string, o Options) (*Scenario, error) {
	i := slices.IndexFunc(builtin, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("workload: %q is no scenario: want one of %s", name, strings.Join(Names(), ", "))
	}
	s := builtin[i]
	return &s, nil
}

// Names lists the built-in scenarios.
func Names() []string {
	var names []string
	for _, s := range builtin {
		names = append(names, s.Name)
	}
	return names
}
