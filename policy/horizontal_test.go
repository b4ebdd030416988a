package policy

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The autoscaler of Kubernetes v1.35.0 decided all of this.
func TestGoldenHPA(t *testing.T) {
	replay(t, "hpa", 16, func(r *recording) {
		h := horizontal{
			tolerance:     r.number("tolerance"),
			stabilization: r.number("downscale_stabilization_s"), rules: r.header["behavior"] == "true",
		}
		if h.rules {
			h.up, h.down = r.rules("scale_up_"), r.rules("scale_down_")
		}
		m, active, limited, desired := Memory{}, "", "", 0
		for i := range r.rows {
			r.row = r.rows[i]
			in := hpaReading{
				now: float64(r.field("t_s")), total: r.field("metric_value"),
				current: r.whole("current_replicas"), status: r.whole("status_replicas"),
				min: int(r.number("min_replicas")), max: int(r.number("max_replicas")),
			}
			a := h.sync(m, in, r.number("target_average_value"))
			if a.active != "" {
				active = a.active
			}
			if a.limited != "" {
				limited = a.limited
			}
			if a.active != "FailedGetExternalMetric" {
				desired = a.desired
			}
			isLimited := map[string]string{"": "", "DesiredWithinRange": "False"}
			limits, ok := isLimited[limited]
			if !ok {
				limits = "True"
			}
			rescaled := strconv.Itoa(int(known(a.desired != in.current)))
			got := []string{strconv.Itoa(a.desired), rescaled, strconv.Itoa(desired), a.able, active, limits, limited}
			if want := r.row[r.columns["desired"]:]; !slices.Equal(got, want) {
				r.t.Fatalf("row %d, %v: %v", i+1, r.row, got)
			}
		}
	})
}

// rules reads one direction of a behavior block.
func (r *recording) rules(prefix string) scalingRules {
	s := scalingRules{
		window: r.number(prefix + "window_s"), tolerance: r.number(prefix + "tolerance"),
		choice: map[string]choice{"Max": choiceMax, "Min": choiceMin, "Disabled": choiceDisabled}[r.header[prefix+"select"]],
	}
	for _, text := range strings.Fields(r.header[prefix+"policies"]) {
		parts := strings.Split(text, "/")
		s.limits = append(s.limits, scalingLimit{parts[0] == "Percent", r.parse(text, parts[1]), r.parse(text, parts[2])})
	}
	return s
}
