package workload

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is written is read back to the same scenario: the same text, and the same
// tasks bit for bit.
func TestRoundTrip(t *testing.T) {
	var all []*Scenario
	for _, name := range append(Names(), "paper-fixed:shuffled") {
		s, err := Find(name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for _, text := range []string{
		"{poisson: {rate: 3}}", "{onoff: {rate: 9, on: 3s, off: {pareto: {alpha: 1.4, min: 1, max: 900}}}}",
		"{markov: {rates: [1, 9, 4], means: [10, 20, 5], next: [[0, 0.5, 0.5], [1, 0, 0], [0.25, 0.75, 0]]}}",
		"{diurnal: {rates: [1, 5, 2.5], period: 24h}}", "{selfsimilar: {mean: 20, hurst: 0.8, on: 1, off: 2}}",
		"{instants: {at: [0, 0.5, 0.5, 7], speed: 2}}",
		"{trace: {file: testdata/tiny.csv, mean: 2, bin: 5, from: 2, bins: 2, spacing: even}}",
	} {
		s, err := Parse([]byte("horizon: 10m\narrivals: "+text+"\nservice: {gamma: {mean: 40ms, cv: 0.5}}\nfarm: {deadline: 0}"), "x.yaml", Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for _, text := range []string{
		"arrivals: {trace: {file: testdata/tiny.csv, scale: 3}}\nservice: {recorded: {cv: 0.5, mean: 70ms}}",
		"arrivals: {trace: {file: testdata/tasks.csv, speed: 0.5}}\nservice: {recorded: {}}",
		"arrivals: {poisson: {rate: 1}}\nservice: 1\nplatform: {seen: {looks: {every: 1s}}, answer: {held: {value: 2ms}}}",
		"arrivals: {poisson: {rate: 1}}\nservice: {quantiles: {file: testdata/quantiles.csv, mean: 3}}",
	} {
		s, err := Parse([]byte("horizon: 300\nfarm: {deadline_factor: 3}\n"+text), "x.yaml", Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for _, s := range all {
		text := s.YAML()
		again, err := Parse(text, "again.yaml", Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(string(text), string(again.YAML())); diff != "" {
			t.Error(diff)
		}
		if !reflect.DeepEqual(cut(s).Draw(5), cut(again).Draw(5)) {
			t.Errorf("%s: other tasks", s.Name)
		}
		if s.Farm != again.Farm || s.Platform != again.Platform {
			t.Errorf("%s: %+v, again %+v", s.Name, s, again)
		}
	}
}

// cut is a scenario's first quarter of an hour.
func cut(s *Scenario) *Scenario {
	short := *s
	short.Horizon = min(s.Horizon, 900)
	return &short
}

// The example of the documentation is a scenario, and the documentation names all
// kinds and all fields.
func TestDocumentation(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	_, rest, ok := strings.Cut(doc, "```yaml\n")
	example, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatal("there is no example")
	}
	s, err := Parse([]byte(example), "example.yaml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if tasks := s.Draw(1); len(tasks.At) == 0 {
		t.Error("nothing arrives in the example")
	}
	for _, section := range []string{"farm", "platform"} {
		_, err := Parse([]byte("horizon: 1\narrivals: {poisson: {rate: 1}}\nservice: 1\n"+section+": {zzz: 1}"+map[string]string{"platform": "\nfarm: {deadline: 1}"}[section]), "x.yaml", Options{})
		for _, name := range allowed(t, err) {
			if !strings.Contains(example, "\n  "+name+":") && !strings.Contains(example, "\n  # "+name+":") {
				t.Errorf("%s: the example does not show %q", section, name)
			}
		}
	}
	for _, k := range laws {
		documented(t, doc, k.name, "horizon: 1\narrivals: {poisson: {rate: 1}}\nservice: {"+k.name+": {zzz: 1}}")
	}
	documented(t, doc, "recorded", "horizon: 1\narrivals: {poisson: {rate: 1}}\nservice: {recorded: {zzz: 1}}")
	for _, k := range processes {
		documented(t, doc, k.name, "horizon: 1\narrivals: {"+k.name+": {zzz: 1}}")
	}
}

// documented looks for a line of the kind that names each field which the error
// about an unknown one allows.
func documented(t *testing.T, doc, kind, text string) {
	t.Helper()
	_, err := Parse([]byte(text), "x.yaml", Options{})
	var row string
	for line := range strings.Lines(doc) {
		if strings.HasPrefix(line, "| `"+kind+"` |") {
			row = line
		}
	}
	for _, name := range allowed(t, err) {
		if !strings.Contains(row, "`"+name+"`") {
			t.Errorf("%s: %q is not documented in the line %q", kind, name, row)
		}
	}
	if row == "" {
		t.Errorf("%s has no line", kind)
	}
}

// allowed are the names after "want" in an error about an unknown field.
func allowed(t *testing.T, err error) []string {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), `has no field "zzz"`) {
		t.Fatalf("error %v", err)
	}
	_, want, _ := strings.Cut(err.Error(), "want ")
	if want == "none" {
		return nil
	}
	return strings.Split(want, ", ")
}

func TestWrongScenarios(t *testing.T) {
	const good = "horizon: 1h\narrivals:\n  poisson: {rate: 3}\nservice: 40ms\nfarm:\n  deadline: 150ms\n"
	if _, err := Parse([]byte(good), "good.yaml", Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ replace, by, want string }{
		{"rate: 3", "rate: -3", `x.yaml:3: poisson: rate "-3": want a number, 0 or more`},
		{"rate: 3", "rate: .nan", `x.yaml:3: poisson: rate ".nan": want a number`},
		{"rate: 3", "rate: .inf", `x.yaml:3: poisson: rate ".inf": want a number`},
		{"rate: 3", "rate: 1e30", "want a number, 0 or more, up to 1e+06 per second"},
		{"rate: 3", "rat: 3", `x.yaml:3: poisson has no field "rat": want rate`},
		{"poisson", "poison", `x.yaml:3: arrivals: no kind "poison": want one of poisson, levels,`},
		{"  poisson: {rate: 3}", "  5", "x.yaml:3: arrivals: \"5\": want one of poisson,"},
		{"service: 40ms", "service: {lognormal: {cv: 0.6}}", "x.yaml:4: lognormal: mean is missing"},
		{"service: 40ms", "service: {lognormal: {mean: 1, cv: 0.6, mu: 1}}", "x.yaml:4: lognormal: want mean and cv, or mu and sigma"},
		{"service: 40ms", "service: {lognormal: {}}", "x.yaml:4: lognormal: want mean and cv, or mu and sigma"},
		{"service: 40ms", "service: {gamma: {mean: 1, shape: 2}}", "x.yaml:4: gamma: want mean and cv, or shape and scale"},
		{"service: 40ms", "service: {exponential: {mean: 0}}", `x.yaml:4: exponential: mean "0": want seconds (a number above 0)`},
		{"service: 40ms", "service: 0", "x.yaml:4: service: the mean is 0: want above 0"},
		{"service: 40ms", "service: -1", "x.yaml:4: service: -1: want a number, 0 or more"},
		{"service: 40ms", "service: {uniform: {min: 3, max: 2}}", "x.yaml:4: uniform: min 3: want at most max, 2"},
		{"service: 40ms", "service: {quantiles: {at: [0, 1], values: [2, 1]}}", "x.yaml:4: quantiles: 1 at 1 after 2 at 0"},
		{"service: 40ms", "service: {recorded: {}}", "x.yaml:4: recorded: the arrivals are no trace"},
		{"service: 40ms", "", "x.yaml:1: the scenario: service is missing"},
		{"horizon: 1h", "horizon: 0", `x.yaml:1: the scenario: horizon "0": want seconds (a number above 0)`},
		{"deadline: 150ms", "deadlin: 150ms", `x.yaml:6: farm has no field "deadlin": want interval,`},
		{"deadline: 150ms", "target: 0.9", "x.yaml:6: farm: want deadline (0 = none) or deadline_factor"},
		{"deadline: 150ms", "deadline: soon", `x.yaml:6: farm: deadline "soon": want seconds`},
		{"deadline: 150ms", "deadline: 1\n  target: 95", `x.yaml:7: farm: target "95": want a share from 0 to 1`},
		{"deadline: 150ms", "deadline: 1\n  slots: 1.5", `x.yaml:7: farm: slots "1.5": want a whole number, 1 or more`},
		{"deadline: 150ms", "deadline: 1\n  min: 9\n  max: 8", "x.yaml:6: farm: min 9, start 9, max 8: want none above max"},
		{"deadline: 150ms", "deadline: 1\nplatform:\n  victim: first", `x.yaml:8: platform: victim "first": want one of idle-first, random`},
		{"deadline: 150ms", "deadline: 1\nplatform: {startup: {}}", "x.yaml:7: platform: startup: 0 kinds: want one of constant"},
		{"deadline: 150ms", "deadline: 1\nplatform: fast", `x.yaml:7: platform: "fast": want a mapping of fields`},
		{"deadline: 150ms", "deadline: 1\n  deadline: 2", "x.yaml:7: "},
		{"deadline: 150ms", "deadline: 1\n\tslots: 2", "x.yaml:7: "},
		{"{rate: 3}", "{rate: [1, 2]}", "x.yaml:3: poisson: rate a list: want a number"},
		{"poisson: {rate: 3}", "levels: {of: [{rate: 1, for: 0}]}", "x.yaml:3: levels: of: for: the mean is 0: want above 0"},
		{"poisson: {rate: 3}", "levels: {of: [{rate: 1, for: 3}], next: [[0.5]]}", "want 1 probabilities that sum to 1"},
		{"poisson: {rate: 3}", "levels: {of: [{rate: 1, for: 3}], next: [[1], [1]]}", "next: 2 rows: want 1, one per level"},
		{"poisson: {rate: 3}", "markov: {rates: [1, 2], means: [1, 2, 3]}", "2 rates and 3 means: want as many"},
		{"poisson: {rate: 3}", "sinusoid: {mean: 3, amplitude: 4, period: 9}", "amplitude 4: want at most the mean, 3: rates are not negative"},
		{"poisson: {rate: 3}", "walk: {min: 5, max: 9, start: 4, step: 1, every: 1}", "want min ≤ start ≤ max"},
		{"poisson: {rate: 3}", "selfsimilar: {mean: 1, hurst: 0.5, on: 1, off: 1}", `hurst "0.5": want a number above 0.5 and below 1`},
		{"poisson: {rate: 3}", "instants: {at: [1, 0]}", "at: 0 after 1: want instants in order"},
		{"poisson: {rate: 3}", "trace: {}", "want file: FILE.csv, or name: NAME"},
		{"poisson: {rate: 3}", "trace: {file: testdata/none.csv}", "x.yaml:3: trace: open testdata/none.csv"},
		{"poisson: {rate: 3}", "trace: {file: testdata/tasks.csv, mean: 3}", "mean: tasks has a line per task: want speed alone"},
		{"poisson: {rate: 3}", "trace: {file: testdata/tiny.csv, speed: 3}", "speed: tiny has counts: want bin"},
		{"poisson: {rate: 3}", "trace: {file: testdata/tiny.csv, mean: 3, scale: 2}", "scale and mean: want one of them"},
		{"poisson: {rate: 3}", "trace: {file: testdata/tiny.csv, from: 4}", "from 4: want 0 to 3"},
		{"poisson: {rate: 3}", "trace: {file: testdata/tiny.csv, from: 1, bins: 4}", "bins 4: want at most 3"},
		{"poisson: {rate: 3}", "trace: {file: testdata/tiny.csv, from: 1, bins: 1}", "bins 1 to 1 are empty"},
		{"poisson: {rate: 3}", "trace: {file: testdata/tiny.csv, spacing: none}", `spacing "none": want one of poisson, even`},
		{good, "", "x.yaml"}, {good, "- 1\n", "x.yaml:1: the scenario: a list: want a mapping of fields"},
		{"horizon", "--- 1\n---\nhorizon", "x.yaml"},
	} {
		text := strings.Replace(good, c.replace, c.by, 1)
		s, err := Parse([]byte(text), "x.yaml", Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; error %v; want %q", c.by, s, err, c.want)
		}
	}
}

func TestParseLaw(t *testing.T) {
	for text, want := range map[string]Law{
		"{lognormal: {mean: 40ms, cv: 0.6}}": LogNormalOf(0.04, 0.6), "2s": Constant{2}, "0.5": Constant{0.5},
		"lognormal: {mu: 0.74, sigma: 0.16}": LogNormal{0.74, 0.16},
	} {
		if l, err := ParseLaw(text, Options{}); err != nil || l != want {
			t.Errorf("%s: %v, %v", text, l, err)
		}
	}
	for _, text := range []string{"", "fast", "{lognormal: {mean: 1}}", "-1", "{", "{lognormal}"} {
		if l, err := ParseLaw(text, Options{}); err == nil {
			t.Errorf("%q is %v", text, l)
		}
	}
}

func FuzzParse(f *testing.F) {
	for i := range builtin {
		f.Add(builtin[i].YAML())
	}
	f.Add([]byte("horizon: 1\narrivals: {markov: {rates: [1, 2], means: [1, 2], next: [[0, 1], [1, 0]]}}\nservice: {pareto: {alpha: 1, min: 1, max: 2}}\nfarm: {deadline: 0}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text, "fuzz.yaml", Options{Traces: "testdata"})
		if err != nil {
			return
		}
		if m := s.Service.Mean(); !(m > 0) || math.IsInf(m, 0) {
			t.Errorf("services of %g s", m)
		}
		again, err := Parse(s.YAML(), "again.yaml", Options{Traces: "testdata"})
		if err != nil || !slices.Equal(s.YAML(), again.YAML()) {
			t.Errorf("%v\n%s", err, s.YAML())
		}
	})
}
