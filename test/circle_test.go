package test

import (
	"bytes"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/gate/gatetest"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/registry"
	"farmhand/registry/policyapi"
	"farmhand/registry/registrytest"
	"farmhand/sim/workload"
	"farmhand/telemetry"
	"farmhand/telemetry/redistelemetry"
	"farmhand/trainer"
	"farmhand/trainer/trainapi"
)

// The circle on real processes, by the documented commands and the API: telemetry → what
// a schedule calls each night → a training whose trainer is killed on the way → the gate
// → promotion, by its verdict or by force → the controller acts on it within an interval
// → a broken policy is handed back in the decision that shows it (P86) → roll-back.
//
// The farm has telemetry of forty minutes when it begins: nobody waits for those here.
func TestCircle(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{trainer: map[string]string{"farmhand_slice": "3s"}, up: []string{"--ack-wait", "2s"},
		farm: map[string]string{"farmhand.policy": "learned", "farmhand.deadline": "150ms", "farmhand.interval": "2s", "farmhand.max": "20"}})
	f.lived("burst-cron-150ms", 40*time.Minute)
	f.begun()
	defer f.explained("worker")
	f.nightly()

	r := f.trained(trainer.Request{Run: "tested", Farm: "worker", Learner: trainer.DefaultLearner, Budget: 2000, Round: 1000, Seed: 1})
	k, v := r.Progress.Calibration, r.Progress.Verdict
	if !k.Telemetry || k.Scenario != "farm:worker" || len(k.Distances) == 0 || len(v.Checks) == 0 {
		t.Errorf("calibration %+v, verdict %+v", k, v)
	}
	if !r.Progress.Promoted {
		if _, code := f.farmhand("policy", "promote", "worker", "worker:challenger"); code != 4 {
			t.Errorf("what the gate found %s is promoted, code %d", v.Outcome, code)
		}
		if _, code := f.farmhand("policy", "promote", "worker", "worker:challenger", "--force"); code != 2 {
			t.Errorf("promoted by force, without a reason: code %d", code)
		}
		if out, code := f.farmhand("policy", "promote", "worker", "worker:challenger", "--force", "--reason", "we want to see it act"); code != 0 {
			t.Fatalf("code %d: %s", code, out)
		}
	}
	good := f.acts(r.Progress.Version)

	// What computes no numbers outside of what it was trained on, and nobody else noticed.
	broken := f.promote(boundless(t))
	back := f.more(1, "it is handed back", func(r *controller.Receipt) bool { return r.HandedBack != nil && r.Learned.Version == broken.Name() })
	b := back[len(back)-1]
	if b.HandedBack.Cause != guard.CauseNaN || b.By != broken.Fallback().Name() {
		t.Errorf("%+v by %s", b.HandedBack, b.By)
	}
	if n := len(slices.DeleteFunc(f.receipts("worker", all), func(r controller.Receipt) bool { return r.By != broken.Name() })); n > 0 {
		t.Errorf("it decided %d times", n)
	}
	if out, _ := f.farmhand("farm", "show", "worker"); !strings.Contains(out, "handed back: the rule decides for") {
		t.Errorf("farm show says\n%s", out)
	}
	if out, code := f.farmhand("policy", "rollback", "worker", "--reason", "it is broken"); code != 0 || !strings.Contains(out, registry.Short(r.Progress.Version)) {
		t.Errorf("roll-back: code %d: %s", code, out)
	}
	f.acts(r.Progress.Version)
	for _, r := range f.receipts("worker", all) {
		if r.Learned.Origin != "champion" { // before the first promotion
			continue
		}
		if err := r.Replay(good, broken); err != nil {
			t.Error(err)
		}
	}
	if out, _ := f.farmhand("policy", "list", "--worker", "worker"); !strings.Contains(out, "rollback") || !strings.Contains(out, "promotion, forced") {
		t.Errorf("the history is\n%s", out)
	}
}

// lived gives the farm telemetry of a scenario under its default rule, up to now.
func (f *farm) lived(scenario string, long time.Duration) {
	f.t.Helper()
	s, err := workload.Find(scenario, workload.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	rows, periods := gatetest.Telemetry(f.t, s, long.Seconds(), controller.DefaultPolicy)
	by := time.Since(rows[len(rows)-1].At)
	store := redistelemetry.New(f.rdb, nil)
	for _, row := range rows {
		row.At = row.At.Add(by)
		if err := store.Append(f.t.Context(), map[string]telemetry.Row{"worker": row}); err != nil {
			f.t.Fatal(err)
		}
	}
	for i := range periods {
		periods[i].Start = periods[i].Start.Add(by)
	}
	if err := store.AppendPeriods(f.t.Context(), map[string][]telemetry.Period{"worker": periods}); err != nil {
		f.t.Fatal(err)
	}
}

// nightly calls the trainer as a schedule does, with nothing and without a token: the
// farm is to be trained, once however often it calls. It is cancelled, as it takes minutes.
func (f *farm) nightly() {
	f.t.Helper()
	trainerURL := f.url + "/function/trainer"
	for range 2 {
		until(f.t, patience, "the trainer answers", func() bool {
			resp, err := http.Post(trainerURL, "", nil)
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusNoContent
		})
	}
	var l trainapi.Runs
	if f.ask(trainerURL, http.MethodGet, "/", "", &l); len(l.Runs) != 1 || l.Runs[0].Request.Farm != "worker" || !l.Runs[0].Request.Schedule {
		f.t.Fatalf("by schedule: %+v", l.Runs)
	}
	var r trainer.Run
	if f.ask(trainerURL, http.MethodDelete, "/?run="+l.Runs[0].ID, "", &r); r.State != trainer.Cancelled {
		f.t.Errorf("cancelled, it is %s", r.State)
	}
}

// acts waits until a version decides, and checks that this was so from one interval after
// its promotion on, until it was handed back, if it was.
func (f *farm) acts(version string) *learned.Policy {
	f.t.Helper()
	var l policyapi.Listing
	f.ask(f.url+"/function/controller", http.MethodGet, "/policies?farm=worker", "", &l)
	moved := l.History[0] // the newest
	if moved.To != version {
		f.t.Fatalf("the champion is %s, want %s", moved.To, version)
	}
	file, code := f.farmhand("policy", "export", version, "-o", "-")
	p, err := learned.Load([]byte(file))
	if err != nil || code != 0 {
		f.t.Fatalf("code %d, %v", code, err)
	}
	until(f.t, patience, "it decides", func() bool { r := f.last(); return r != nil && r.At.After(moved.At) && r.By == p.Name() })
	for _, r := range f.receipts("worker", all) {
		if after := r.At.Sub(moved.At); after >= 2*time.Second && r.Learned.Version != p.Name() {
			f.t.Errorf("%s after it was promoted, %s is asked", after, r.Learned.Version)
		}
	}
	return p
}

// farmhand runs a command on the test's platform.
func (f *farm) farmhand(args ...string) (out string, code int) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), filepath.Join(bin, "farmhand"), append(args, "--state", f.state)...)
	var told bytes.Buffer
	cmd.Stderr = &told
	raw, err := cmd.Output()
	if cmd.ProcessState == nil {
		f.t.Fatal(err)
	}
	if told.Len() > 0 {
		f.t.Logf("farmhand %s: %s", strings.Join(args, " "), told.String())
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

// boundless is a policy file whose numbers are finite where it says it was trained, and
// none where a farm is: two infinities are subtracted.
func boundless(t *testing.T) []byte {
	t.Helper()
	f, err := learned.Parse(registrytest.File(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(f.Features, "target")
	f.Low[i], f.High[i], f.Net.Shift[i], f.Net.Scale[i] = 0, 0, 0, 1
	first, last := &f.Net.Layers[0], &f.Net.Layers[1]
	for unit, sign := range []float64{1, -1} { // both see the target alone
		for in := range first.In {
			first.Weight[in*first.Out+unit] = 0
		}
		first.Weight[i*first.Out+unit], first.Bias[unit] = 1e200, 0
		for out := range last.Out {
			last.Weight[unit*last.Out+out] = sign * 1e200
		}
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
