package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"farmhand/controller"
	"farmhand/gateway"
	"farmhand/internal/problem"
)

// doctorCall bounds one call.
const doctorCall = 15 * time.Second

// reachable asks the gateway for its health. Without it nothing can be told.
func (d *doctor) reachable(ctx context.Context) bool {
	begun := time.Now()
	if err := d.management.Healthy(ctx); err != nil {
		fix := "start the platform with farmhand up -d, or name another gateway with --gateway; of a cluster: kubectl -n openfaas port-forward svc/gateway 8080:8080"
		var e *gateway.Error
		if errors.As(err, &e) && e.Status != 0 {
			fix = "something answers there, but no healthy gateway: look at --gateway, and at the gateway's log"
		}
		d.fail("gateway", fix, "%s: %v", d.url, err)
		return false
	}
	d.ok("gateway", "%s answers in %s", d.url, time.Since(begun).Round(10*time.Microsecond))
	return true
}

// list lists the functions, which needs the gateway's own login.
func (d *doctor) list(ctx context.Context) {
	var err error
	d.functions, err = d.management.Functions(ctx, "")
	switch {
	case errors.Is(err, gateway.ErrUnauthorized):
		d.fail("login", "faas-cli login --gateway "+d.url+", or --password-file; on a cluster the password is in the secret basic-auth of the namespace openfaas",
			"the gateway wants another login; timeouts, scalers, clamps and balancing are not looked at")
		return
	case err != nil:
		d.fail("login", "look at the gateway's log; an OpenFaaS CE needs its Prometheus to list functions", "functions cannot be listed: %v", err)
		return
	}
	d.listed = true
	d.ok("login", "%s listed", amount(len(d.functions), "function"))
	for _, name := range []string{"dispatcher", "controller"} {
		f := d.function(name)
		switch {
		case f == nil:
			d.fail("functions", "faas-cli up -f stack.yml; on one machine farmhand up -d --stack stack.yml --deploy", "%s is not deployed", name)
		case f.AvailableReplicas == 0:
			d.fail("functions", "faas-cli logs "+name+" says why", "%s has %s, and none ready", name, amount(int(f.Replicas), "replica"))
		}
	}
	d.sound("functions", "dispatcher and controller are deployed and ready")
}

// ask asks dispatcher and controller, which needs the suite's token.
func (d *doctor) ask(ctx context.Context) {
	d.ce = d.local() && d.localCE()
	var err error
	if d.bearer, err = d.token(d.url); err != nil {
		d.fail("token", "set FARMHAND_TOKEN or --token-file to the value of the secret farmhand-token; make secrets keeps it in .secrets", "the suite's token is not known here")
		return
	}
	for _, f := range []struct {
		name, path string
		into       any
		answers    *bool
	}{{"dispatcher", "/farms", &d.farms, &d.dispatches}, {"controller", "/", &d.overview, &d.controls}} {
		if d.listed && d.function(f.name) == nil {
			continue // that is told already
		}
		header, err := d.get(ctx, f.name, f.path, f.into)
		d.ce = d.ce || strings.HasPrefix(header.Get("X-Served-By"), "openfaas-ce")
		var p *problem.Problem
		switch {
		case err == nil:
			*f.answers = true
		case errors.As(err, &p) && p.Status == http.StatusUnauthorized:
			d.fail("token", "give the value of the secret farmhand-token; a function keeps the one it was deployed with", "the %s wants another token", f.name)
		case errors.As(err, &p) && p.Type == "store-unavailable":
			d.fail("redis", "look whether Redis runs, at farmhand_redis_url and at the secret farmhand-redis", "the %s does not reach Redis", f.name)
		case errors.As(err, &p):
			d.fail(f.name, "faas-cli logs "+f.name+" says why", "it answers %d %s", p.Status, p.Title)
		default:
			d.fail(f.name, "faas-cli logs "+f.name+" says why", "it does not answer: %v", err)
		}
	}
	d.suite()
}

// suite looks at what dispatcher and controller have said.
func (d *doctor) suite() {
	if d.dispatches && d.controls {
		d.sound("token", "dispatcher and controller take it")
	}
	if d.dispatches {
		switch age := time.Since(d.farms.Published); {
		case d.farms.Published.IsZero():
			d.fail("dispatcher", "look at the controller: faas-cli logs controller", "the controller has never told it of any farm")
		case age > time.Minute:
			d.warn("dispatcher", "look at the controller: faas-cli logs controller", "the list of farms is %s old", age.Round(time.Second))
		default:
			d.ok("dispatcher", "it serves %s", amount(len(d.farms.Farms), "farm"))
		}
	}
	if !d.controls {
		return
	}
	switch age := time.Since(d.overview.Updated); {
	case d.overview.Updated.IsZero():
		d.fail("controller", "look at its secrets basic-auth-user and basic-auth-password, and at Redis", "it has decided nothing yet: %s", d.overview.Error)
	case d.overview.Error != "":
		d.fail("controller", "mend what it says; farms keep their workers meanwhile", "nothing is decided: %s", d.overview.Error)
	case age > time.Minute:
		d.warn("controller", "faas-cli logs controller says why", "it has not decided for %s", age.Round(time.Second))
	default:
		d.ok("controller", "it scales %s", amount(len(d.overview.Farms), "farm"))
	}
	for _, f := range d.overview.Farms {
		if c, ok := f.Conditions[controller.Healthy]; ok && !c.Status {
			d.warn("farms", "ask again if the farm has just begun; farmhand farm show "+f.Name+" tells more, farmhand farm why "+f.Name+" what was decided", "%s is not healthy: %s", f.Name, c.Reason)
		}
	}
	d.sound("farms", "all are healthy")
}

// get reads a JSON answer of a function. The header is nil where there was none.
func (d *doctor) get(ctx context.Context, function, path string, into any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorCall)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/function/"+function+path, nil)
	if err != nil {
		return nil, err
	}
	if d.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+d.bearer)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Header, problem.Read(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, farmAnswer)).Decode(into); err != nil {
		return resp.Header, fmt.Errorf("its answer makes no sense: %w", err)
	}
	return resp.Header, nil
}

// clocks compares this clock with those of the gateway and of the controller, and
// that of the controller with Redis', by which all is decided.
func (d *doctor) clocks(ctx context.Context) {
	if skew, ok := d.gatewaySkew(ctx); !ok {
		d.warn("clock", "compare the clocks yourself", "the gateway does not tell its time")
	} else if skew.Abs() > clockSlack {
		d.warn("clock", "let both machines follow NTP; a due that you give as a time of day is off by as much", "the gateway's clock is %s from this one", skew.Round(100*time.Millisecond))
	}
	newest, interval := time.Time{}, time.Minute
	for _, f := range d.overview.Farms {
		if f.Last != nil && f.Last.At.After(newest) {
			newest = f.Last.At
		}
	}
	for _, f := range d.farms.Farms {
		interval = min(interval, f.Settings.Interval)
	}
	if d.controls && !newest.IsZero() && d.overview.Error == "" {
		// The newest decision was made in the last interval before the last pulse.
		if skew := d.overview.Updated.Sub(newest); skew < -clockSlack || skew > interval+clockSlack {
			d.warn("clock", "let both machines follow NTP; farms go by Redis' clock alone, and logs do not fit together", "the controller's clock is %s from Redis'", skew.Round(100*time.Millisecond))
		}
	}
	d.sound("clock", "no two clocks differ by more than %s", clockSlack)
}

// clockSlack is how far clocks may be apart; a Date has whole seconds.
const clockSlack = 5 * time.Second

// gatewaySkew is how far the gateway's clock is ahead of ours, to a second.
func (d *doctor) gatewaySkew(ctx context.Context) (time.Duration, bool) {
	ctx, cancel := context.WithTimeout(ctx, doctorCall)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/healthz", nil)
	if err != nil {
		return 0, false
	}
	before := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	_ = resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, false
	}
	middle := before.Add(time.Since(before) / 2)
	return date.Add(500 * time.Millisecond).Sub(middle), true // on average the second is half over
}

// asyncEvery is how often the controller is asked whether a call has come.
const asyncEvery = 200 * time.Millisecond

// async makes an asynchronous call and waits until it came. It is one that
// anybody may make: a step of the controller, which then tells when it was made.
func (d *doctor) async(ctx context.Context) {
	if !d.controls {
		d.warn("async", "mend the controller first", "not looked at: a call to the controller would tell")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorCall+d.asyncPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+"/async-function/controller", nil)
	if err != nil {
		d.fail("async", "", "%v", err)
		return
	}
	before := d.overview.Stepped
	begun := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.fail("async", "look at the gateway's log, and whether NATS runs", "no asynchronous call is taken: %v", err)
		return
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // a hint only
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		d.fail("async", "look at the gateway's log, and whether NATS runs (farmhand up: --nats-listen)", "no asynchronous call is taken: %s %s", resp.Status, strings.TrimSpace(string(text)))
		return
	}
	tick := time.NewTicker(asyncEvery)
	defer tick.Stop()
	for time.Since(begun) < d.asyncPatience {
		var v controller.Overview
		if _, err := d.get(ctx, "controller", "/", &v); err == nil && v.Stepped.After(before) {
			d.ok("async", "a call was taken and made within %s", time.Since(begun).Truncate(time.Millisecond)+time.Millisecond)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	d.fail("async", "look whether the queue-worker runs, and whether calls wait before this one (CE makes one at a time); --async-patience waits longer",
		"a call was taken, and not made within %s", d.asyncPatience)
}
