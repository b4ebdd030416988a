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

// compose makes the roster of what the platform shows. c.mu is held.
func (c *Controller) compose(workers []Worker) skeleton.Roster {
	now := c.cfg.Now()
	var r skeleton.Roster
	listed := map[string]bool{}
	for _, w := range workers {
		listed[w.Name] = true
		delete(c.seen, w.Name)
		r.Farms = append(r.Farms, c.farm(w))
	}
	for _, f := range c.roster.Farms {
		if listed[f.Name] {
			continue
		}
		since, ok := c.seen[f.Name]
		if !ok {
			since = now.Add(-f.Missing)
			c.seen[f.Name] = since
		}
		// At least a moment, since 0 means that it is there.
		f.Missing, f.Ready, f.Target = max(time.Millisecond, now.Sub(since)), 0, 0
		if f.Missing > forget {
			delete(c.seen, f.Name)
			continue
		}
		r.Farms = append(r.Farms, f)
	}
	slices.SortFunc(r.Farms, func(a, b skeleton.Farm) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// farm describes a worker. Where it says something invalid, the settings that
// were last good stay.
func (c *Controller) farm(w Worker) skeleton.Farm {
	settings, problems := skeleton.ParseSettings(w.Labels, w.Annotations)
	if old, ok := c.roster.Find(w.Name); ok && len(problems) > 0 {
		settings = old.Settings
	}
	problems = append(problems, timeouts(settings.Timeout, w.Env)...)
	return skeleton.Farm{Name: w.Name, Settings: settings, Ready: w.Ready, Target: w.Desired, Problems: problems}
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
