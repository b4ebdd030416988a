package skeleton_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"farmhand/skeleton"
)

func TestParseSettings(t *testing.T) {
	s, problems := skeleton.ParseSettings(
		map[string]string{"com.openfaas.scale.min": "2", "com.openfaas.scale.max": "20"},
		map[string]string{
			"farmhand.slots": "4", "farmhand.deadline": "150ms", "farmhand.target": "0.97", "farmhand.timeout": "30s",
			"farmhand.service": "40ms", "farmhand.policy": "staffing", "farmhand.interval": "5s", "farmhand.max": "10", "farmhand.budget": "12.5",
		})
	want := skeleton.Settings{Slots: 4, Deadline: 150 * time.Millisecond, Target: 0.97, Timeout: 30 * time.Second, Service: 40 * time.Millisecond,
		Policy: "staffing", Interval: 5 * time.Second, Min: 2, Max: 10, Budget: 12.5}
	if d := cmp.Diff(want, s); d != "" || len(problems) > 0 {
		t.Errorf("%s %v", d, problems)
	}
	s, problems = skeleton.ParseSettings(nil, nil)
	if d := cmp.Diff(skeleton.DefaultSettings(), s); d != "" || len(problems) > 0 {
		t.Errorf("defaults: %s %v", d, problems)
	}
}

// An invalid annotation is named with its value and keeps the default.
func TestInvalidSettings(t *testing.T) {
	for name, bad := range map[string][]string{
		"farmhand.slots":    {"0", "-1", "1.5", "many", "1001"},
		"farmhand.deadline": {"-150ms", "0", "fast", "0.5x", "x", "NaNx"},
		"farmhand.target":   {"0", "1.01", "95%", "NaN"},
		"farmhand.timeout":  {"0s", "-1s", "25h", "55"},
		"farmhand.service":  {"0s", "quick"},
		"farmhand.interval": {"500ms", "2m"},
		"farmhand.min":      {"-1", "all"},
		"farmhand.max":      {"-1", "10001"},
		"farmhand.budget":   {"-1", "NaN", "much"},
	} {
		for _, v := range bad {
			s, problems := skeleton.ParseSettings(nil, map[string]string{name: v})
			if len(problems) != 1 || !strings.Contains(problems[0], name) || !strings.Contains(problems[0], v) {
				t.Errorf("%s=%q: problems %q", name, v, problems)
			}
			if d := cmp.Diff(skeleton.DefaultSettings(), s); d != "" {
				t.Errorf("%s=%q changed a setting: %s", name, v, d)
			}
		}
	}
	_, problems := skeleton.ParseSettings(map[string]string{"com.openfaas.scale.max": "3"}, map[string]string{"farmhand.min": "5"})
	if len(problems) != 1 {
		t.Errorf("minimum above maximum: %q", problems)
	}
}

// What would be ignored without a word is named.
func TestMisplacedSettings(t *testing.T) {
	for name, c := range map[string]struct{ labels, annotations map[string]string }{
		"farmhand.slots":  {labels: map[string]string{"farmhand.slots": "4"}},
		"farmhand.slot":   {annotations: map[string]string{"farmhand.slot": "4"}},
		"farmhand.worker": {annotations: map[string]string{"farmhand.worker": "true"}},
	} {
		s, problems := skeleton.ParseSettings(c.labels, c.annotations)
		if len(problems) != 1 || !strings.HasPrefix(problems[0], name+": ") || s.Slots != 1 {
			t.Errorf("%s: %q", name, problems)
		}
	}
	if _, problems := skeleton.ParseSettings(map[string]string{"farmhand.worker": "true"}, map[string]string{"farmhand.local.command": "x", "topic": "y"}); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
}

func TestIsWorker(t *testing.T) {
	for v, want := range map[string]bool{"true": true, "True": true, " true ": true, "false": false, "": false, "yes": false} {
		if skeleton.IsWorker(map[string]string{"farmhand.worker": v}) != want {
			t.Errorf("%q", v)
		}
	}
	if skeleton.IsWorker(nil) {
		t.Error("without labels")
	}
}

func TestDeadlineAsFactor(t *testing.T) {
	s, _ := skeleton.ParseSettings(nil, map[string]string{"farmhand.deadline": "2x", "farmhand.service": "40ms"})
	if got := s.EffectiveDeadline(); got != 80*time.Millisecond {
		t.Errorf("got %s", got)
	}
	s, _ = skeleton.ParseSettings(nil, map[string]string{"farmhand.deadline": "2x"})
	if got := s.EffectiveDeadline(); got != 0 {
		t.Errorf("without a prior: %s", got)
	}
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		ready, target, slots int
		f                    float64
		want                 int
	}{{4, 4, 2, 1, 8}, {4, 2, 2, 1, 4}, {4, 4, 1, 0.9, 3}, {1, 1, 1, 0.25, 1}, {0, 3, 1, 1, 0}, {3, 0, 1, 1, 0}} {
		if got := skeleton.Window(c.ready, c.target, c.slots, c.f); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func FuzzParseSettings(f *testing.F) {
	f.Add("farmhand.deadline", "150ms", "4", "0.95", "2")
	f.Add("farmhand.budget", "2x", "", "1e309", "-1")
	f.Add("farmhand.service", "1µs", "1000", "0x1p-2", "10000")
	f.Fuzz(func(t *testing.T, name, value, slots, target, scale string) {
		s, problems := skeleton.ParseSettings(map[string]string{"com.openfaas.scale.min": scale, "com.openfaas.scale.max": scale},
			map[string]string{"farmhand.slots": slots, "farmhand.target": target, "farmhand.min": value, name: value})
		if s.Slots < 1 || s.Slots > 1000 || !(s.Target > 0 && s.Target <= 1) || s.Deadline < 0 || s.EffectiveDeadline() < 0 || s.Timeout <= 0 ||
			s.Interval < time.Second || s.Min < 0 || s.Max < 0 || s.Max > 0 && s.Min > s.Max || !(s.Budget >= 0) {
			t.Errorf("%+v", s)
		}
		for _, p := range problems {
			if len(p) > 500 {
				t.Errorf("a problem of %d bytes", len(p))
			}
		}
	})
}

// Settings are published for people to read: durations are text.
func TestSettingsAsJSON(t *testing.T) {
	want := skeleton.Settings{Slots: 4, Deadline: 150 * time.Millisecond, Target: 0.97, Timeout: 30 * time.Second, Service: 40 * time.Millisecond,
		Policy: "staffing", Interval: 5 * time.Second, Min: 2, Max: 10, Budget: 12.5}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(raw); !strings.Contains(s, `"timeout":"30s"`) || !strings.Contains(s, `"deadline":"150ms"`) {
		t.Error(s)
	}
	var got skeleton.Settings
	if err := json.Unmarshal(raw, &got); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"timeout":"soon"}`), &got); err == nil {
		t.Error("accepted a timeout of soon")
	}
}
