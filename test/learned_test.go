package test

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
	"time"

	"farmhand/controller"
	"farmhand/policies"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/registry"
	"farmhand/registry/registrytest"
)

// promote puts a policy into the registry and makes it the farm's champion, over the
// gateway.
func (f *farm) promote(file []byte) policy.Learned {
	f.t.Helper()
	p, err := learned.Load(file)
	if err != nil {
		f.t.Fatal(err)
	}
	api := f.url + "/function/controller/policies"
	var v registry.Version
	if status := f.ask(api, http.MethodPost, "?by=test", string(file), &v); status >= http.StatusMultipleChoices || v.Version == "" {
		f.t.Fatalf("import: %d, %+v", status, v)
	}
	if status := f.ask(api, http.MethodPost, "/"+v.Version+"/promote?farm=worker", `{"reason": "for the test", "forced": true}`, nil); status != http.StatusOK {
		f.t.Fatalf("promotion: %d", status)
	}
	return p
}

// blind is a policy file that has met one service time only, and no farm's.
func blind(t *testing.T) []byte {
	t.Helper()
	f, err := learned.Parse(registrytest.File(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(f.Features, "service")
	f.Low[i], f.High[i] = 9, 9
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A farm is scaled by the policy for any farm until it has a champion, then by that; a
// broken one is handed back to its rule, and rolled back. Each decision can be made again.
func TestChampion(t *testing.T) {
	t.Parallel()
	f, _ := steer(t, config{farm: map[string]string{"farmhand.policy": "learned"}})
	defer f.explained("worker")
	f.begun()
	// Whether there is a champion is looked up beside the loop: the first decision may hold.
	f.more(1, "the policy for any farm decides", func(r *controller.Receipt) bool {
		return r.By == learned.NameOf(policies.General) && r.Learned.Origin == "default" && r.Learned.Note == "the farm has no champion yet"
	})
	end := f.stream("worker", 100*time.Millisecond, "400ms")
	by := func(p policy.Learned) func(*controller.Receipt) bool {
		return func(r *controller.Receipt) bool { return r.By == p.Name() }
	}
	good := f.promote(registrytest.Always(t, learned.Rule))
	f.more(2, "the champion decides", by(good))
	until(t, patience, "the champion scales the farm", func() bool { return f.desired("worker") >= 4 })

	broken := f.promote(blind(t))
	list := f.more(1, "the broken one is handed back", func(r *controller.Receipt) bool { return r.HandedBack != nil })
	if b := list[len(list)-1].HandedBack; b.Cause != guard.CauseStrange || list[len(list)-1].By != registrytest.Rule {
		t.Errorf("%+v", b)
	}
	f.more(2, "its rule decides", func(r *controller.Receipt) bool { return r.By == registrytest.Rule && r.HandedBack == nil })
	own := slices.DeleteFunc(f.receipts("worker", all), func(r controller.Receipt) bool { return r.By != broken.Name() || r.Observation.Stale() })
	if len(own) != guard.StrangeTicks-1 {
		t.Errorf("it decided %d times before", len(own))
	}
	if status := f.ask(f.url+"/function/controller/policies", http.MethodPost, "/rollback?farm=worker", `{"reason": "it is broken"}`, nil); status != http.StatusOK {
		t.Fatalf("roll-back: %d", status)
	}
	f.more(2, "the one before decides again", by(good))
	end()
	general, err := learned.Load(policies.General)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range f.receipts("worker", all) {
		if err := r.Replay(general, good, broken); err != nil {
			t.Error(err)
		}
	}
}
