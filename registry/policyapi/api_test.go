package policyapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"farmhand/internal/fn"
	"farmhand/internal/problem"
	"farmhand/registry"
	"farmhand/registry/policyapi"
	"farmhand/registry/redisregistry"
	"farmhand/registry/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is the API of a registry, behind a token, as the controller serves it.
type bench struct {
	*testing.T
	reg   registry.Registry
	redis *miniredis.Miniredis
	api   http.Handler
}

func setup(t *testing.T) *bench {
	m := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	reg := redisregistry.New(c, redisregistry.Limits{})
	known := func(farm string) bool { return farm == "thumbnail" || farm == "montecarlo" }
	return &bench{t, reg, m, fn.RequireToken("s3cret", policyapi.New(policyapi.Config{Registry: reg, Known: known}))}
}

func (b *bench) call(method, target string, body []byte) *httptest.ResponseRecorder {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), method, target, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer s3cret")
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	return w
}

// get decodes the answer to a call that must succeed.
func (b *bench) get(into any, method, target, body string) {
	b.Helper()
	w := b.call(method, target, []byte(body))
	if w.Code/100 != 2 {
		b.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		b.Fatal(err)
	}
}

// refused wants a problem document.
func (b *bench) refused(status int, code, field, method, target, body string) {
	b.Helper()
	w := b.call(method, target, []byte(body))
	err := problem.Read(w.Result())
	var p *problem.Problem
	if !errors.As(err, &p) || w.Code != status || p.Type != code || p.Field != field || field != "" && p.Fix == "" {
		b.Errorf("%s %.200s: %d %s: want %d, %s, at %s and a fix", method, target, w.Code, w.Body, status, code, field)
	}
}

func (b *bench) put(seed uint64) registry.Version {
	b.Helper()
	var v registry.Version
	b.get(&v, "POST", "/policies?by=ann&note=by+hand", string(registrytest.File(b, seed)))
	return v
}

// A policy's whole life over HTTP.
func TestLife(t *testing.T) {
	b := setup(t)
	one, two := b.put(1), b.put(2)
	if one.Version != registry.VersionOf(registrytest.File(t, 1)) || one.Origin.By != "ann" || one.Origin.Note != "by hand" || one.Summary.Learner != "dqn" {
		t.Errorf("imported as %+v", one)
	}
	var moved policyapi.Moved
	b.get(&moved, "POST", "/policies/"+one.Version[:10]+"/promote?farm=thumbnail", `{"by":"ann","reason":"the first","forced":true}`)
	if moved.Aliases.Champion != one.Version {
		t.Errorf("promoted: %+v", moved)
	}
	b.get(&moved, "POST", "/policies/"+two.Version+"/promote?farm=thumbnail", `{"reason":"newer","forced":true}`)
	if w := b.call("GET", "/policies/thumbnail:previous/file", nil); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), registrytest.File(t, 1)) ||
		w.Header().Get("Content-Type") != "application/octet-stream" {
		t.Errorf("exported: %d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}
	var l policyapi.Listing
	b.get(&l, "GET", "/policies", "")
	if len(l.Policies) != 2 || l.Aliases != nil {
		t.Errorf("listed: %+v", l)
	}
	b.get(&moved, "POST", "/policies/rollback?farm=thumbnail", "")
	b.get(&l, "GET", "/policies?farm=thumbnail", "")
	if len(l.Policies) != 1 || l.Aliases.Champion != one.Version || len(l.History) != 3 || l.History[1].Text != "newer" {
		t.Errorf("of the farm: %+v", l)
	}
	var v registry.Version
	b.get(&v, "GET", "/policies/thumbnail:champion", "")
	if v.Version != one.Version || len(v.Uses) != 1 || v.Uses[0] != (registry.Use{Farm: "thumbnail", Alias: "champion"}) {
		t.Errorf("shown: %+v", v)
	}
}

// What a gate found decides who may be promoted without force, and is shown.
func TestGateDecides(t *testing.T) {
	b := setup(t)
	one := b.put(1)
	b.refused(409, "refused-by-gate", "forced", "POST", "/policies/"+one.Version+"/promote?farm=thumbnail", "")
	v := registry.Verdict{Checks: []registry.Check{{Metric: "on_time", Outcome: registry.Promoted, N: 20}}}
	v.Conclude()
	if err := b.reg.Judge(t.Context(), "thumbnail", one.Version, v); err != nil {
		t.Fatal(err)
	}
	b.refused(409, "refused-by-gate", "forced", "POST", "/policies/"+one.Version+"/promote?farm=montecarlo", "")
	var moved policyapi.Moved
	b.get(&moved, "POST", "/policies/"+one.Version+"/promote?farm=thumbnail", "{}")
	var shown registry.Version
	b.get(&shown, "GET", "/policies/"+one.Version, "")
	if moved.Aliases.Champion != one.Version || shown.Verdicts["thumbnail"].Checks[0].N != 20 {
		t.Errorf("%+v, %+v", moved, shown)
	}
}

func TestBadCalls(t *testing.T) {
	b := setup(t)
	one := "/policies/" + b.put(1).Version
	file := string(registrytest.File(t, 1))
	b.refused(422, "invalid-policy", "body", "POST", "/policies", "not a policy")
	b.refused(422, "invalid-policy", "body", "POST", "/policies", file[:len(file)/2])
	b.refused(422, "invalid-policy", "body", "POST", "/policies?note="+strings.Repeat("x", 501), file)
	b.refused(413, "policy-too-large", "body", "POST", "/policies", strings.Repeat("x", registry.MaxFile+1))
	b.refused(404, "unknown-policy", "name", "GET", "/policies/0123", "")
	b.refused(404, "unknown-policy", "name", "GET", "/policies/..%2f..%2fetc/file", "")
	b.refused(404, "unknown-policy", "name", "GET", "/policies/thumbnail:champion", "")
	b.refused(422, "unknown-alias", "name", "GET", "/policies/thumbnail:best", "")
	b.refused(404, "unknown-farm", "farm", "GET", "/policies?farm=nobody", "")
	b.refused(404, "unknown-farm", "farm", "POST", one+"/promote", `{"forced":true,"reason":"x"}`)
	b.refused(404, "unknown-farm", "farm", "POST", one+"/promote?farm=nobody", `{"forced":true,"reason":"x"}`)
	b.refused(404, "unknown-policy", "name", "POST", "/policies/0123/promote?farm=thumbnail", `{"forced":true,"reason":"x"}`)
	b.refused(422, "invalid-reason", "reason", "POST", one+"/promote?farm=thumbnail", `{"forced":true}`)
	b.refused(422, "invalid-reason", "reason", "POST", one+"/promote?farm=thumbnail", `{"reason":"`+strings.Repeat("x", 501)+`"}`)
	for _, body := range []string{"[]", `{"reason":1}`, `{"because":"x"}`, `{} {}`, `{`} {
		b.refused(422, "invalid-body", "body", "POST", one+"/promote?farm=thumbnail", body)
	}
	b.refused(409, "nothing-to-roll-back", "farm", "POST", "/policies/rollback?farm=thumbnail", "")
	b.refused(404, "not-found", "path", "DELETE", one, "")
	b.refused(404, "not-found", "path", "GET", "/policies/a/b/c", "")
	if all, err := b.reg.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d policies, %v: want the one", len(all), err)
	}
	if a, err := b.reg.Aliases(t.Context(), "thumbnail"); err != nil || a != (registry.Aliases{}) {
		t.Errorf("%+v, %v: nothing should have moved", a, err)
	}
}

// A farm that was removed can be forgotten, and no other.
func TestForget(t *testing.T) {
	b := setup(t)
	one := b.put(1).Version
	for _, farm := range []string{"thumbnail", "removed"} {
		if err := b.reg.Promote(t.Context(), farm, one, registry.Reason{Text: "x", Forced: true}); err != nil {
			t.Fatal(err)
		}
	}
	b.refused(409, "farm-in-use", "farm", "DELETE", "/policies?farm=thumbnail", "")
	b.refused(404, "unknown-farm", "farm", "DELETE", "/policies", "")
	for range 2 {
		if w := b.call("DELETE", "/policies?farm=removed", nil); w.Code != 204 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	var v registry.Version
	b.get(&v, "GET", "/policies/"+one, "")
	if len(v.Uses) != 1 || v.Uses[0].Farm != "thumbnail" {
		t.Errorf("it is used by %+v", v.Uses)
	}
}

// Damage and absence are told apart, and neither moves anything.
func TestDamageAndOutage(t *testing.T) {
	b := setup(t)
	one := b.put(1).Version
	if err := b.reg.Promote(context.Background(), "thumbnail", one, registry.Reason{Text: "x", Forced: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.redis.Set("farmhand:{policies}:file:"+one, "x"); err != nil {
		t.Fatal(err)
	}
	b.refused(500, "registry-damaged", "name", "GET", "/policies/"+one+"/file", "")
	b.refused(500, "registry-damaged", "name", "POST", "/policies/"+one+"/promote?farm=montecarlo", `{"forced":true,"reason":"x"}`)
	b.put(1) // mends it
	if w := b.call("GET", "/policies/"+one+"/file", nil); w.Code != 200 {
		t.Errorf("after the file came again: %d", w.Code)
	}
	b.redis.Close()
	b.refused(503, "unavailable", "", "GET", "/policies", "")
	b.refused(503, "unavailable", "", "POST", "/policies", string(registrytest.File(t, 2)))
}

// What is damaged of a farm is named, and hides nothing else; a rollback works beside it,
// and a forced promotion mends it.
func TestDamagedAliases(t *testing.T) {
	b := setup(t)
	one, two := b.put(1).Version, b.put(2).Version
	promote := func(version string) (m policyapi.Moved) {
		b.get(&m, "POST", "/policies/"+version+"/promote?farm=thumbnail", `{"reason":"x","forced":true}`)
		return m
	}
	promote(one)
	promote(two)
	const aliases, history = "farmhand:{policies}:aliases", "farmhand:{policies}:history:thumbnail"
	b.redis.HSet(aliases, "challenger thumbnail", "garbage")
	if _, err := b.redis.Lpush(history, "garbage"); err != nil {
		t.Fatal(err)
	}
	var l policyapi.Listing
	b.get(&l, "GET", "/policies?farm=thumbnail", "")
	if *l.Aliases != (registry.Aliases{Champion: two, Previous: one}) || len(l.Policies) != 2 || len(l.History) != 2 ||
		len(l.Damaged) != 2 || !strings.Contains(l.Damaged[0], `the challenger of thumbnail is "garbage"`) || !strings.Contains(l.Damaged[1], "the history of thumbnail") {
		t.Errorf("listed: %+v", l)
	}
	b.refused(500, "registry-damaged", "name", "GET", "/policies/thumbnail:challenger", "")
	var v registry.Version
	b.get(&v, "GET", "/policies/thumbnail:previous", "")
	var m policyapi.Moved
	b.get(&m, "POST", "/policies/rollback?farm=thumbnail", "")
	if m.Aliases != (registry.Aliases{Champion: one}) || !m.Changed || len(m.Damaged) != 1 {
		t.Errorf("rolled back: %+v", m)
	}
	b.redis.HSet(aliases, "champion thumbnail", "not a version")
	if m := promote(two); m.Aliases != (registry.Aliases{Champion: two}) || !m.Changed || m.Damaged != nil {
		t.Errorf("mended: %+v", m)
	}
	l = policyapi.Listing{}
	b.get(&l, "GET", "/policies?farm=thumbnail", "")
	if len(l.Damaged) != 1 || l.History[0].From != "" || l.History[0].To != two {
		t.Errorf("after it was mended: %+v", l)
	}
}

func TestTokenIsWanted(t *testing.T) {
	b := setup(t)
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/policies", bytes.NewReader(registrytest.File(t, 1)))
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	if _, err := io.ReadAll(w.Body); w.Code != http.StatusUnauthorized || err != nil {
		t.Errorf("without the token: %d, %v", w.Code, err)
	}
}
