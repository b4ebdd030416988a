package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"farmhand/skeleton"
)

// forget is how long a farm whose worker is gone stays in the roster, so that
// its tasks can be buried.
const forget = time.Hour

// missed makes the entries of farms that the platform does not list any more.
func missed(last skeleton.Roster, seen map[string]time.Time, listed map[string]bool, now time.Time) (gone []skeleton.Farm) {
	for name := range listed {
		delete(seen, name)
	}
	for _, f := range last.Farms {
		if listed[f.Name] {
			continue
		}
		since, ok := seen[f.Name]
		if !ok {
			since = now.Add(-f.Missing)
			seen[f.Name] = since
		}
		// At least a moment, since 0 means that it is there.
		f.Missing, f.Ready, f.Target = max(time.Millisecond, now.Sub(since)), 0, 0
		if f.Missing > forget {
			delete(seen, f.Name)
			continue
		}
		gone = append(gone, f)
	}
	return gone
}

func byName(farms []skeleton.Farm) []skeleton.Farm {
	slices.SortFunc(farms, func(a, b skeleton.Farm) int { return strings.Compare(a.Name, b.Name) })
	return farms
}

// timeouts checks that the farm's timeout fits inside those of the worker's
// watchdog: farmhand.timeout ≤ exec_timeout ≤ write_timeout.
func timeouts(timeout time.Duration, env map[string]string) (problems []string) {
	for _, name := range []string{"exec_timeout", "write_timeout"} {
		v, ok := env[name]
		if !ok {
			continue
		}
		d, err := openfaasDuration(v)
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s: %q is not valid: want seconds or a duration such as 60s", name, v))
		case d < timeout:
			problems = append(problems, fmt.Sprintf("%s: %s ends attempts before farmhand.timeout, %s: raise the one or lower the other", name, d, timeout))
		}
	}
	return problems
}

// openfaasDuration reads whole seconds or a Go duration.
func openfaasDuration(s string) (time.Duration, error) {
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(s)
}
