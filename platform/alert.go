package platform

import (
	"cmp"
	"net/http"
)

// mostByAlert bounds the replicas that alerts lead to where a function has no
// label com.openfaas.scale.max: the default of OpenFaaS Pro. Plain CE has 5.
const mostByAlert = 20

// alerts is what counts of a message of AlertManager: each alert by itself, since
// one message may tell of several functions.
type alerts struct {
	Alerts []struct {
		Status string `json:"status"` // firing or resolved
		Labels struct {
			Function string `json:"function_name"`
		} `json:"labels"`
	} `json:"alerts"`
}

// serveAlert scales functions by the alerts that AlertManager posts, as plain CE
// does: a step up while one fires, back to the least when it is over. Functions
// that something else scales, as workers of a farm, opt out by the label
// com.openfaas.scale.factor: "0". Alerts of unknown functions are passed over.
func (p *Platform) serveAlert(w http.ResponseWriter, r *http.Request) {
	var a alerts
	if err := readBody(r, &a, `{"alerts":[{"status":"firing","labels":{"function_name":"NAME"}}]}`); err != nil {
		writeError(w, p, err)
		return
	}
	for _, alert := range a.Alerts {
		f, err := p.find(alert.Labels.Function, "")
		if err != nil {
			continue
		}
		switch alert.Status {
		case "firing":
			f.alerted(true)
		case "resolved":
			f.alerted(false)
		}
	}
	p.saveSoon()
}

// alerted scales the function by an alert. A firing one never lowers the count, a
// resolved one never raises it.
func (f *function) alerted(firing bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.desired == 0 || f.spec.factor == 0 {
		return
	}
	before, most := f.desired, f.p.clamp(cmp.Or(f.spec.max, mostByAlert))
	if firing {
		step := (most*f.spec.factor + 99) / 100 // rounded up
		f.desired = max(before, min(before+step, most))
	} else {
		f.desired = min(before, max(f.spec.min, 1))
	}
	if f.desired != before {
		f.p.log.Info("scaled by an alert", "function", f.name, "firing", firing, "from", before, "to", f.desired)
	}
	f.reconcile()
}
