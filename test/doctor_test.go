package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// diagnosis is what farmhand doctor says.
type diagnosis struct {
	f        *farm
	code     int
	Findings []struct{ Check, Status, Detail, Fix string }
}

func (f *farm) doctor() diagnosis {
	f.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "farmhand"), "doctor", "--json", "--state", f.state)
	d := diagnosis{f: f}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		d.code = exit.ExitCode()
	} else if err != nil {
		f.t.Fatal(err)
	}
	if err := json.Unmarshal(out, &d); err != nil {
		f.t.Fatalf("%v\n%s", err, out)
	}
	return d
}

// says reports whether a finding of that kind is there.
func (d *diagnosis) says(check, status, detail string) bool {
	for _, x := range d.Findings {
		if x.Check == check && x.Status == status && strings.Contains(x.Detail, detail) {
			return true
		}
	}
	return false
}

func (d *diagnosis) want(check, status, detail string) {
	d.f.t.Helper()
	if !d.says(check, status, detail) {
		d.f.t.Errorf("want %s %s: %s; got %+v", status, check, detail, d.Findings)
	}
}

// The doctor finds a farm on this machine sound, but for the label that this suite's
// workers lack; an asynchronous call really comes. Then things break one by one.
func TestDoctor(t *testing.T) {
	t.Parallel()
	f := start(t, config{})
	var d diagnosis
	until(t, patience, "the farm is healthy", func() bool {
		d = f.doctor()
		return d.says("farms", "ok", "")
	})
	for _, check := range []string{"gateway", "login", "functions", "token", "dispatcher", "controller", "redis", "durability", "eviction", "timeouts",
		"clamp", "balancing", "clock", "async"} {
		d.want(check, "ok", "")
	}
	d.want("scalers", "warn", "worker")
	if d.code != 0 {
		t.Errorf("exit code %d: %+v", d.code, d.Findings)
	}

	f.set("maxmemory-policy", "allkeys-lru")
	f.set("appendonly", "no")
	w := f.deployment()
	w.EnvVars["exec_timeout"], (*w.Annotations)["farmhand.timeout"] = "10s", "20s"
	if err := f.gateway.Deploy(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	d = f.doctor()
	d.want("eviction", "fail", "allkeys-lru")
	d.want("durability", "fail", "keeps nothing")
	d.want("timeouts", "fail", "worker: exec_timeout 10s ends attempts before farmhand.timeout 20s")
	if d.code != 1 {
		t.Errorf("exit code %d", d.code)
	}

	if err := f.gateway.Delete(t.Context(), "controller"); err != nil {
		t.Fatal(err)
	}
	d = f.doctor()
	d.want("functions", "fail", "controller is not deployed")
	d.want("async", "warn", "not looked at")
}

// As plain CE the platform gives five replicas of seven, and picks them at random:
// the doctor has seen both.
func TestDoctorOnCE(t *testing.T) {
	t.Parallel()
	f := start(t, config{up: []string{"--ce"}, workers: 1,
		farm: map[string]string{"farmhand.policy": "static:n=7", "farmhand.min": "0", "farmhand.max": "20", "farmhand.interval": "1s"}})
	until(t, patience, "five replicas are there", func() bool { return f.desired("worker") == 5 })
	job := f.submit(400, light)
	f.ended(job)
	var d diagnosis
	until(t, patience, "all of it is seen", func() bool {
		d = f.doctor()
		return d.says("clamp", "warn", "made 5 of 7 replicas") && d.says("balancing", "warn", "met a busy one")
	})
	d.want("clamp", "warn", "may have 20 replicas")
	d.want("clamp", "warn", "may go to 0")
	d.want("async", "ok", "")
	for _, x := range d.Findings {
		if x.Status != "ok" {
			t.Log(fmt.Sprintf("%s %s: %s", x.Status, x.Check, x.Detail))
		}
	}
	if d.code != 0 {
		t.Errorf("exit code %d", d.code)
	}
}
