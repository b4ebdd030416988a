package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/openfaas/faas-provider/types"

	"farmhand/controller"
	"farmhand/skeleton"
)

// Defaults of a watchdog, where a deployment says nothing.
const watchdogTimeout = 30 * time.Second

// What a plain OpenFaaS CE gives a function.
const ceLeast, ceMost = 1, 5

// Of the receipts, which say what became of scale calls and of busy workers.
const (
	doctorReceipts = 100
	doctorFarms    = 20 // of so many farms, so that a large suite is examined in seconds
)

func (d *doctor) function(name string) *types.FunctionStatus {
	for i := range d.functions {
		if d.functions[i].Name == name {
			return &d.functions[i]
		}
	}
	return nil
}

func note(m *map[string]string, name string) string {
	if m == nil {
		return ""
	}
	return (*m)[name]
}

func labelsOf(f *types.FunctionStatus) map[string]string {
	if f.Labels == nil {
		return nil
	}
	return *f.Labels
}

func annotationsOf(f *types.FunctionStatus) map[string]string {
	if f.Annotations == nil {
		return nil
	}
	return *f.Annotations
}

// ours are the functions that the suite consists of and works with.
func (d *doctor) ours() (list []*types.FunctionStatus) {
	for i := range d.functions {
		f := &d.functions[i]
		if f.Name == "dispatcher" || f.Name == "controller" || skeleton.IsWorker(labelsOf(f)) {
			list = append(list, f)
		}
	}
	return list
}

// timeouts checks farmhand.timeout ≤ exec_timeout ≤ upstream_timeout, and
// exec_timeout < read_timeout, write_timeout: who waits must be the more patient.
func (d *doctor) timeouts() {
	const check = "timeouts"
	for _, f := range d.ours() {
		env := map[string]time.Duration{"exec_timeout": watchdogTimeout}
		for _, name := range []string{"exec_timeout", "read_timeout", "write_timeout", "farmhand_max_wait"} {
			text := f.EnvVars[name]
			if text == "" {
				continue
			}
			v, err := seconds(text)
			if err != nil || v < 0 {
				d.fail(check, "want whole seconds or a duration such as 60s", "%s: %s=%q", f.Name, name, text)
				continue
			}
			env[name] = v
		}
		exec, told := env["exec_timeout"], f.EnvVars["exec_timeout"] != ""
		if exec > d.upstream {
			d.fail(check, "lower exec_timeout, or raise the gateway's upstream_timeout (and tell --upstream-timeout)",
				"%s: exec_timeout %s, but the gateway gives up after %s", f.Name, exec, d.upstream)
		}
		for _, name := range []string{"read_timeout", "write_timeout"} {
			switch v, ok := env[name]; {
			case !ok || !told:
			case v < exec:
				d.fail(check, "raise "+name+" above exec_timeout", "%s: %s %s cuts off what exec_timeout %s allows", f.Name, name, v, exec)
			case v == exec:
				d.warn(check, "raise "+name+" by some seconds", "%s: %s is exec_timeout, %s: a call that takes as long is cut off instead of answered", f.Name, name, exec)
			}
		}
		if wait, ok := env["farmhand_max_wait"]; ok && wait >= d.upstream {
			d.fail(check, "lower farmhand_max_wait below the gateway's upstream_timeout", "%s: answers are held for %s, but the gateway gives up after %s", f.Name, wait, d.upstream)
		}
		if !skeleton.IsWorker(labelsOf(f)) {
			continue
		}
		s, problems := skeleton.ParseSettings(labelsOf(f), annotationsOf(f))
		for _, p := range problems {
			d.fail("settings", "deploy it with what is right; the last good value holds until then", "%s: %s", f.Name, p)
		}
		if s.Timeout > exec {
			detail, what := "exec_timeout %s", "raise exec_timeout, or lower the annotation farmhand.timeout"
			if !told {
				detail, what = "the watchdog's own exec_timeout, %s,", "set exec_timeout (and a longer write_timeout), or lower the annotation farmhand.timeout"
			}
			d.fail(check, what, "%s: "+detail+" ends attempts before farmhand.timeout %s", f.Name, exec, s.Timeout)
		}
	}
	d.sound(check, "farmhand.timeout ≤ exec_timeout ≤ upstream_timeout (taken as %s: --upstream-timeout) in %s", d.upstream, amount(len(d.ours()), "function"))
}

// seconds reads a duration as OpenFaaS does.
func seconds(text string) (time.Duration, error) {
	if n, err := strconv.Atoi(text); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// scalers looks for a second scaler: one that is asked for, and one that was seen.
func (d *doctor) scalers(ctx context.Context) {
	const check = "scalers"
	for _, f := range d.ours() {
		least, most := note(f.Labels, "com.openfaas.scale.min"), note(f.Labels, "com.openfaas.scale.max")
		if note(f.Labels, "com.openfaas.scale.factor") != "0" && (least == "" || least != most) {
			d.warn(check, `set the label com.openfaas.scale.factor: "0"`, "%s: the gateway's own scaler may change its count as well", f.Name)
		}
		if note(f.Labels, "com.openfaas.scale.zero") == "true" {
			d.warn(check, `set the label com.openfaas.scale.zero: "false"; the controller goes to zero by farmhand.min: "0"`, "%s: the idler may take its replicas away", f.Name)
		}
	}
	for _, v := range d.views(ctx) {
		foreign := 0
		for i := range v.Receipts {
			if v.Receipts[i].Foreign != nil {
				foreign++
			}
		}
		if foreign > 0 {
			d.warn(check, "farmhand farm why "+v.Name+" tells when; look for a HorizontalPodAutoscaler, an alert rule or a schedule", "%s: somebody else has changed its count, %s of late", v.Name, amount(foreign, "time"))
		}
	}
	d.sound(check, "nobody else scales the farms")
}

// clamps looks whether the platform gives what it is asked for.
func (d *doctor) clamps(ctx context.Context) {
	const check = "clamp"
	for _, f := range d.ours() {
		s, _ := skeleton.ParseSettings(labelsOf(f), annotationsOf(f))
		if !d.ce || !skeleton.IsWorker(labelsOf(f)) {
			continue
		}
		if s.Max == 0 || s.Max > ceMost {
			d.warn(check, fmt.Sprintf(`set the annotation farmhand.max: "%d", so that the farm's policy knows`, ceMost), "%s: may have %d replicas, but OpenFaaS CE gives at most %d", f.Name, s.Max, ceMost)
		}
		if s.Min < ceLeast {
			d.warn(check, fmt.Sprintf(`set the annotation farmhand.min: "%d"`, ceLeast), "%s: may go to %d, but OpenFaaS CE keeps one replica", f.Name, s.Min)
		}
	}
	for _, v := range d.views(ctx) {
		for i := range v.Receipts { // newest first
			if a := v.Receipts[i].Acted; a != nil && a.Error == "" && a.ReadBack != a.To {
				d.warn(check, fmt.Sprintf("farmhand farm set %s max=%d, or min; the controller itself tries again after ten minutes", v.Name, a.ReadBack),
					"%s: the platform made %d of %d replicas that were asked for", v.Name, a.ReadBack, a.To)
				break
			}
		}
	}
	if d.ce {
		d.sound(check, "OpenFaaS CE: every farm keeps to %d to %d replicas", ceLeast, ceMost)
		return
	}
	d.sound(check, "no scale call was seen to come to another count than it asked for")
}

// balancing looks whether calls meet busy workers, as they do where a gateway picks
// replicas at random. That is harmless, but each such call is one for nothing.
func (d *doctor) balancing(ctx context.Context) {
	const check = "balancing"
	const enough, share = 50, 0.05
	seen := 0
	for _, v := range d.views(ctx) {
		if len(v.Receipts) == 0 {
			continue
		}
		o := &v.Receipts[0].Observation
		if o.Ready < 2 || o.Long.Starts < enough {
			continue
		}
		seen++
		if busy := o.Long.Busy / (o.Long.Busy + o.Long.Starts); busy > share {
			d.warn(check, "a gateway that picks the least busy replica has none of these; else more replicas than the load needs, or fewer farmhand.slots than max_inflight, lower their number",
				"%s: %.0f %% of the calls to %d replicas met a busy one: replicas are picked at random", v.Name, 100*busy, o.Ready)
		}
	}
	if seen == 0 {
		d.ok(check, "not seen: no farm with two replicas has done %d tasks of late", enough)
		return
	}
	d.sound(check, "calls meet free workers in %s", amount(seen, "farm"))
}

// views are farms with their last receipts, read once.
func (d *doctor) views(ctx context.Context) []controller.FarmView {
	if !d.controls || d.read {
		return d.seen
	}
	d.read = true
	for i := range d.overview.Farms {
		if i == doctorFarms {
			break
		}
		var v controller.FarmView
		q := url.Values{"farm": {d.overview.Farms[i].Name}, "receipts": {strconv.Itoa(doctorReceipts)}}
		if _, err := d.get(ctx, "controller", "/?"+q.Encode(), &v); err != nil {
			d.warn("controller", "faas-cli logs controller says why", "receipts of %s cannot be read: %v", d.overview.Farms[i].Name, err)
			continue
		}
		d.seen = append(d.seen, v)
	}
	return d.seen
}
