package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"farmhand/controller"
	"farmhand/internal/fn"
	"farmhand/internal/problem"
	"farmhand/policy"
	"farmhand/policy/guard"
)

// The scripts testdata/farm*.txtar run the program against a controller that
// answers what these tests made with the controller's own types.
func TestFarmCommands(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join("testdata", "farm*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") != "", // rewrites what is expected
		Setup:               setupController,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": exitCode, "asked": awaitAsked},
	})
}

type controllerKey struct{}

// fakeController serves canned farms. What it is asked to change it writes into
// a file.
type fakeController struct {
	file  string
	asked chan struct{}

	mu   sync.Mutex // guards over
	over map[string]controller.Setting
}

func setupController(env *testscript.Env) error {
	t, ok := env.T().(testing.TB)
	if !ok {
		return errors.New("no testing.TB")
	}
	f := &fakeController{file: filepath.Join(env.WorkDir, "patches"), asked: make(chan struct{}, 1000), over: map[string]controller.Setting{}}
	mux := http.NewServeMux()
	mux.Handle("/function/controller/", fn.RequireToken("s3cret", f))
	mux.HandleFunc("/away/function/controller/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	env.Setenv("FARMHAND_GATEWAY", srv.URL)
	env.Setenv("FARMHAND_TOKEN", "s3cret")
	env.Setenv("TZ", "UTC")
	env.Values[controllerKey{}] = f
	return nil
}

// asked N: waits until the controller has answered N calls more.
func awaitAsked(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	f := ts.Value(controllerKey{}).(*fakeController)
	for range n {
		<-f.asked
	}
}

func (f *fakeController) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.asked <- struct{}{} }()
	name := r.URL.Query().Get("farm")
	view := busyFarm()
	switch {
	case name == "" && r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(busyOverview())
	case name == "taught":
		_ = json.NewEncoder(w).Encode(taughtFarm())
	case name == "quiet":
		_ = json.NewEncoder(w).Encode(quietFarm())
	case name != view.Name:
		problem.Write(w, problem.New(http.StatusNotFound, "unknown-farm", "there is no farm "+name).At("farm", "deploy it"))
	case r.Method == http.MethodPatch:
		f.patch(w, r, view)
	default:
		_ = json.NewEncoder(w).Encode(view)
	}
}

// patch does as the controller does, but only knows that slots are digits.
func (f *fakeController) patch(w http.ResponseWriter, r *http.Request, view controller.FarmView) {
	raw, _ := io.ReadAll(r.Body)
	log, err := os.OpenFile(f.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = log.WriteString(string(raw) + "\n")
		_ = log.Close()
	}
	var changes map[string]*string
	if err != nil || json.Unmarshal(raw, &changes) != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var until time.Time
	if v := changes["for"]; v != nil {
		d, err := time.ParseDuration(*v)
		if err != nil {
			panic(err)
		}
		until = noon.Add(d)
		delete(changes, "for")
	}
	if v := changes["slots"]; v != nil && strings.Trim(*v, "0123456789") != "" {
		bad := controller.BadSetting{Field: "slots", Detail: `"` + *v + `" is not valid`, Fix: "want a whole number from 1 to 1000"}
		problem.Write(w, problem.New(http.StatusUnprocessableEntity, "invalid-setting", bad.Error()).At(bad.Field, bad.Fix))
		return
	}
	for k, v := range changes {
		delete(f.over, k)
		if v != nil {
			f.over[k] = controller.Setting{Value: *v, Origin: "override", Until: until}
		}
	}
	for k, v := range f.over {
		view.Settings[k] = v
	}
	_ = json.NewEncoder(w).Encode(controller.FarmView{Name: view.Name, Mode: view.Mode, Settings: view.Settings, Problems: view.Problems})
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// receipt decides as the controller does.
func receipt(seq int, want, before int, change func(*controller.Receipt)) controller.Receipt {
	at := noon.Add(time.Duration(seq) * 2 * time.Second)
	r := controller.Receipt{Farm: "busy", At: at, Seq: int64(seq), Controller: "host/1", Fence: 1, Before: before, Inputs: controller.Inputs{
		Mode: controller.Act, Policy: "static:n=8", Fallback: controller.DefaultPolicy,
		Observation: policy.Observation{
			Version: policy.ObservationVersion, Farm: "busy", At: at, Age: 1, Interval: 2, Deadline: 5, Target: 0.95, Slots: 1,
			Min: 1, Max: want, Desired: before, Ready: before, Draining: policy.Unknown, StartupLag: policy.Unknown,
			Waiting: 120, Running: policy.Maybe(before), OldestWait: 2.13, NextDue: policy.Unknown, Delayed: policy.Unknown,
			Overdue: policy.Unknown, RunningAge: policy.Unknown, Service: 0.5, PeakLoad: policy.Unknown, CPU: policy.Unknown, Memory: policy.Unknown, Busy: 1,
			Long: policy.Window{Length: 120, Covered: 120, Arrivals: 600, Decided: 500, Late: 9}, Short: policy.Window{Length: 10, Covered: 10, Arrivals: 50},
		},
		State: guard.State{Version: guard.StateVersion, At: at.Add(-2 * time.Second), Day: at.Truncate(24 * time.Hour)},
	}}
	if change != nil {
		change(&r)
	}
	r.Verdict = controller.Decide(r.Inputs)
	r.Rule.Reason = "as the rule reckons" // its words are its own
	r.Replicas = before
	if r.Mode.Acts() && !r.Outcome.Hold {
		r.Replicas = r.Outcome.Replicas
	}
	return r
}

// busyFarm went from three replicas to five three decisions ago.
func busyFarm() controller.FarmView {
	list := []controller.Receipt{
		receipt(4, 5, 5, nil),
		receipt(3, 5, 5, func(r *controller.Receipt) {
			r.Acted = &controller.Acted{At: noon.Add(4 * time.Second), From: 3, To: 5, ReadBack: 5, Seconds: 0.213}
		}),
		receipt(2, 5, 3, func(r *controller.Receipt) { r.Foreign = &controller.Foreign{From: 2, To: 3} }),
		receipt(1, 2, 2, nil),
	}
	return controller.FarmView{
		Name: "busy", Owner: "host/1", Mode: controller.Act, Policy: "static:n=8", Desired: 5, Ready: 3, BudgetUsed: 1.234,
		Problems: []string{`farmhand.deadline: "soon" is not valid: want a duration from 1ms to 720h0m0s, such as 30s`},
		Conditions: map[string]controller.Condition{
			controller.Healthy: {Status: false, Reason: "the signals are missing or too old", Since: noon},
			controller.Limited: {Status: true, Reason: "max: 5 is the most", Since: noon.Add(4 * time.Second)},
			controller.Scaling: {Status: true, Since: noon.Add(4 * time.Second)}, controller.PausedBy: {Since: noon}, controller.Fallback: {Since: noon},
		},
		Last: &controller.Summary{At: list[0].At, Replicas: 5, Before: 5, Why: list[0].Why(), Limits: list[0].Outcome.Limits, Waiting: 120, Running: 5,
			OldestWait: 2.13, Deadline: 5, Rate: 5, OnTime: 0.982},
		Settings: map[string]controller.Setting{
			"max":    {Value: "5", Origin: "override", Until: noon.Add(30 * time.Minute)},
			"mode":   {Value: "act", Origin: "default"},
			"budget": {Value: "10", Origin: "annotation"}, "slots": {Value: "1", Origin: "default"}, "policy": {Value: "static:n=8", Origin: "annotation"},
			"min": {Value: "1", Origin: "label"},
		},
		Receipts: list,
	}
}

// quietFarm is paused, and nothing is known of it.
func quietFarm() controller.FarmView {
	r := receipt(1, 9, 1, func(r *controller.Receipt) {
		r.Mode, r.Observation.Waiting, r.Observation.Running, r.Observation.OldestWait, r.Observation.Deadline = controller.Paused, policy.Unknown, policy.Unknown, policy.Unknown, 0
	})
	return controller.FarmView{
		Name: "quiet", Mode: controller.Paused, Policy: controller.DefaultPolicy, Desired: 1, Ready: 1,
		Last:     &controller.Summary{At: r.At, Replicas: 1, Before: 1, Why: r.Why(), Waiting: policy.Unknown, Running: policy.Unknown, OldestWait: policy.Unknown, Rate: policy.Unknown, OnTime: policy.Unknown},
		Settings: map[string]controller.Setting{"mode": {Value: "paused", Origin: "override"}, "policy": {Value: "staffing", Origin: "default"}}, Receipts: []controller.Receipt{r},
	}
}

func busyOverview() controller.Overview {
	busy, quiet := busyFarm(), quietFarm()
	fresh := controller.FarmView{Name: "fresh", Mode: controller.Act, Policy: controller.DefaultPolicy, Desired: 1}
	busy.Receipts, quiet.Receipts, busy.Settings, quiet.Settings = nil, nil, nil, nil
	return controller.Overview{Status: controller.Status{Owner: "host/1", Updated: noon.Add(8 * time.Second)}, Farms: []controller.FarmView{busy, fresh, quiet}}
}
