package registry_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"farmhand/policy"
	"farmhand/policy/learned"
	"farmhand/registry"
	"farmhand/registry/registrytest"
)

// spoilt is a policy file in which something was changed that a writer would not let
// through.
func spoilt(t *testing.T, edit func(f *learned.File)) []byte {
	t.Helper()
	f, err := learned.Parse(registrytest.File(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	edit(f)
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestValidate(t *testing.T) {
	file := registrytest.File(t, 1)
	s, err := registry.Validate(file)
	if err != nil {
		t.Fatal(err)
	}
	if s.Learner != "dqn" || s.Rule != registrytest.Rule || s.Fallback != "" || s.Observation != policy.ObservationVersion || s.Training["on_time"] != 0.97 {
		t.Errorf("the summary is %+v", s)
	}
	if s, err := registry.Validate(spoilt(t, func(f *learned.File) { f.Fallback = "static:n=4" })); err != nil || s.Fallback != "static:n=4" {
		t.Errorf("the summary is %+v, %v", s, err)
	}
	replaced := func(old, new string) []byte {
		if !bytes.Contains(file, []byte(old)) {
			t.Fatalf("the file has no %q", old)
		}
		return bytes.Replace(file, []byte(old), []byte(new), 1)
	}
	for want, bad := range map[string][]byte{
		"no policy file":             []byte("PK\x03\x04 a zip archive, not a policy"),
		"0 bytes":                    nil,
		"whole safetensors file":     file[:12],
		"numbers":                    file[:len(file)-1],
		"observations of version":    replaced(fmt.Sprintf(`observation_version\":%d`, policy.ObservationVersion), `observation_version\":9`),
		"want at most":               make([]byte, registry.MaxFile+1),
		"the fallback of the policy": bytes.Replace(spoilt(t, func(f *learned.File) { f.Fallback = "static:n=4" }), []byte("static:"), []byte("magics:"), 1),
		"a weight is NaN":            nanWeight(t, file),
		"feature ":                   spoilt(t, func(f *learned.File) { f.Low[3] = math.NaN() }),
		"was in 2…1":                 spoilt(t, func(f *learned.File) { f.Low[0], f.High[0] = 2, 1 }),
		"it makes ": spoilt(t, func(f *learned.File) {
			for i := range f.Net.Layers[0].Weight {
				f.Net.Layers[0].Weight[i] = 1e308
			}
			for i := range f.Net.Layers[1].Weight {
				f.Net.Layers[1].Weight[i] = 1e308
			}
		}),
	} {
		if _, err := registry.Validate(bad); !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v: want ErrInvalid with %q", err, want)
		}
	}
}

// nanWeight makes the last number of a file, a bias, no number.
func nanWeight(t *testing.T, file []byte) []byte {
	t.Helper()
	b := bytes.Clone(file)
	for i := range 8 {
		b[len(b)-8+i] = 0xff
	}
	return b
}

// However a file was cut or changed, nothing panics, and what is let through can run.
func TestDamageIsNoPanic(t *testing.T) {
	file := registrytest.File(t, 1)
	for i := 0; i < len(file); i += 61 {
		b := bytes.Clone(file)
		b[i] ^= 0x55
		if _, err := registry.Validate(b); err == nil {
			if _, err := learned.Load(b); err != nil {
				t.Fatalf("byte %d changed: let through, and %v", i, err)
			}
		}
		if _, err := registry.Validate(file[:i]); err == nil {
			t.Fatalf("%d of %d bytes are let through", i, len(file))
		}
	}
}

func TestVerify(t *testing.T) {
	a, b := registrytest.File(t, 1), registrytest.File(t, 2)
	if err := registry.Verify(registry.VersionOf(a), a); err != nil {
		t.Error(err)
	}
	if err := registry.Verify(registry.VersionOf(a), b); !errors.Is(err, registry.ErrDamaged) {
		t.Errorf("other bytes: %v", err)
	}
}

func TestCheckIsJudgedByItsInterval(t *testing.T) {
	for _, c := range []struct {
		lo, hi  policy.Maybe
		atLeast bool
		want    registry.Outcome
	}{
		{-0.2, -0.1, false, registry.Promoted}, {-0.1, 0, false, registry.Promoted}, {-0.1, 0.1, false, registry.Inconclusive}, {0.1, 0.2, false, registry.Rejected},
		{-0.2, -0.1, true, registry.Rejected}, {-0.1, 0.1, true, registry.Inconclusive}, {0, 0.1, true, registry.Promoted},
		{policy.Unknown, policy.Unknown, false, registry.Inconclusive}, {policy.Unknown, policy.Unknown, true, registry.Inconclusive},
	} {
		check := registry.Check{Lo: c.lo, Hi: c.hi, AtLeast: c.atLeast}
		if check.Judge(); check.Outcome != c.want {
			t.Errorf("%v…%v, at least %v: %s, want %s", c.lo, c.hi, c.atLeast, check.Outcome, c.want)
		}
	}
}

func TestVerdictNeedsAllChecks(t *testing.T) {
	p, r, i := registry.Promoted, registry.Rejected, registry.Inconclusive
	for _, c := range []struct {
		checks []registry.Outcome
		want   registry.Outcome
	}{
		{nil, i}, {[]registry.Outcome{p, p}, p}, {[]registry.Outcome{p, i}, i}, {[]registry.Outcome{i, p}, i}, {[]registry.Outcome{i, r, p}, r}, {[]registry.Outcome{p, ""}, i},
	} {
		v := registry.Verdict{}
		for _, o := range c.checks {
			v.Checks = append(v.Checks, registry.Check{Outcome: o})
		}
		if v.Conclude(); v.Outcome != c.want {
			t.Errorf("%v: %s, want %s", c.checks, v.Outcome, c.want)
		}
	}
}
