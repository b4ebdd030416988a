package learned

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"farmhand/policy"
)

// random makes a policy file with random weights.
func random(seed uint64) *File {
	r := rand.New(rand.NewPCG(seed, 0))
	numbers := func(n int) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = r.NormFloat64()
		}
		return list
	}
	names, low, high := FeatureNames()
	n := len(names)
	f := &File{Meta: Meta{Rule: "staffing:down=20", Learner: "dqn", Environment: "Farm-v0", Seed: seed, Steps: 1000},
		Net: Net{Shift: numbers(n), Scale: numbers(n), Limit: 10, Activation: Relu}, Low: low, High: high}
	for _, shape := range [][2]int{{n, 64}, {64, 64}, {64, actions}} {
		f.Net.Layers = append(f.Net.Layers, Layer{In: shape[0], Out: shape[1], Weight: numbers(shape[0] * shape[1]), Bias: numbers(shape[1])})
	}
	return f
}

func written(t testing.TB, f *File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// farm is an observation of a farm at work.
func farm() *policy.Observation {
	w := policy.Window{Length: 10, Covered: 10, Arrivals: 2000, Starts: 2000, Done: 2000, Decided: 2000, Late: 40,
		Service: policy.Stats{N: 2000, Mean: 0.04, SD: 0.024, P50: 0.035, P95: 0.09, P99: 0.13, Max: 0.3},
		Sojourn: policy.Stats{N: 2000, Mean: 0.05, SD: 0.03, P50: 0.04, P95: 0.1, P99: 0.16, Max: 0.4}}
	o := &policy.Observation{Version: policy.ObservationVersion, At: time.Unix(1e9, 0), Interval: 2, Deadline: 0.15, Target: 0.97, Slots: 1, Min: 1, Max: 64,
		Desired: 10, Ready: 10, StartupLag: 2.1, Waiting: 3, Running: 8, OldestWait: 0.01, RunningAge: 0.02, Last: w, Short: w, Long: w, Service: 0.04,
		Level: policy.Level{Rate: 200, Age: 20, Load: 8}, Past: []policy.Level{{Rate: 20, Age: 60, Load: 0.8}}, PeakLoad: 8.4, Quiet: true}
	o.Draining, o.NextDue = policy.Unknown, policy.Unknown
	return o
}

func TestFileRoundTrip(t *testing.T) {
	f := random(1)
	b := written(t, f)
	if !bytes.Equal(b, written(t, random(1))) {
		t.Error("equal policies gave different bytes")
	}
	got, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, f) {
		t.Error("what was read differs from what was written")
	}
}

// What is no policy of this program is refused, with a text that says why.
func TestForeignFilesAreRefused(t *testing.T) {
	whole := written(t, random(1))
	change := func(edit func(f *File)) []byte {
		f := random(1)
		b := written(t, f)
		g, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		edit(g)
		var out bytes.Buffer
		n := len(g.Features)
		tensors := []tensor{{"normalise.shift", []int{n}, g.Net.Shift}, {"normalise.scale", []int{n}, g.Net.Scale},
			{"seen.low", []int{n}, g.Low}, {"seen.high", []int{n}, g.High}}
		for i, l := range g.Net.Layers {
			tensors = append(tensors, tensor{layerName(i, "weight"), l.shape(), l.Weight}, tensor{layerName(i, "bias"), []int{l.Out}, l.Bias})
		}
		text, err := marshal(g.Meta)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeTensors(&out, map[string]string{metaKey: text}, tensors); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	var bomb bytes.Buffer
	same := make([]float64, 100)
	if err := writeTensors(&bomb, nil, []tensor{{"a", []int{100}, same}, {"b", []int{100}, same}}); err != nil {
		t.Fatal(err)
	}
	overlapping := bytes.Replace(bomb.Bytes(), []byte("[800,1600]"), []byte("[0,800]   "), 1)[:bomb.Len()-800]
	huge := slices.Clone(whole)
	binary.LittleEndian.PutUint64(huge, 1<<63)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":               {nil, "0 bytes"},
		"truncated":           {whole[:len(whole)-9], "bytes for each of"},
		"cut in the header":   {whole[:100], "a whole safetensors file"},
		"header of 2^63":      {huge, "9223372036854775808 bytes"},
		"foreign":             {[]byte("PK\x03\x04 this is a zip file and no policy"), "safetensors"},
		"weight NaN":          {change(func(f *File) { f.Net.Layers[1].Weight[3] = math.NaN() }), "NaN"},
		"observation version": {change(func(f *File) { f.Observation = 99 }), "version 99"},
		"file version":        {change(func(f *File) { f.Version = 7 }), "version 7"},
		"features":            {change(func(f *File) { f.Features[3] = "moon" }), "train it again"},
		"actions":             {change(func(f *File) { f.Meta.Actions = f.Meta.Actions[1:] }), "actions"},
		"no such action":      {change(func(f *File) { f.Only = []string{"hold", "fly"} }), `"fly" is no action`},
		"cannot hold":         {change(func(f *File) { f.Only = []string{"rule"} }), `want "hold" among them`},
		"rule":                {change(func(f *File) { f.Rule = "magic" }), "magic"},
		"fallback":            {change(func(f *File) { f.Fallback = "magic:n=3" }), `the fallback of the policy: policy: "magic" is no law`},
		"activation":          {change(func(f *File) { f.Activation = "sine" }), "sine"},
		"overlap":             {overlapping, "overlap"},
		"blocks do not fit":   {change(func(f *File) { l := &f.Net.Layers[1]; l.Blocks, l.Weight = 3, l.Weight[:3*21*21] }), "layer 1"},
		"layers do not fit":   {change(func(f *File) { f.Net.Layers = f.Net.Layers[1:] }), "layer 0"},
	} {
		_, err := Load(c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v: want one with %q", name, err, c.want)
		}
	}
}

// A file names the law that takes the policy's place; one that does not, as those
// written before there was the field, means its rule.
func TestFallback(t *testing.T) {
	f := random(1)
	old := written(t, f)
	if bytes.Contains(old, []byte("fallback")) {
		t.Error("a file without a fallback names it")
	}
	f.Fallback = "static:n=4"
	for want, file := range map[string][]byte{"staffing:down=20": old, "static:n=4": written(t, f)} {
		p, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if p.Rule().Name() != "staffing:down=20" || p.Fallback().Name() != want {
			t.Errorf("advised by %s, falls back on %s: want %s", p.Rule().Name(), p.Fallback().Name(), want)
		}
	}
}

// A bit flipped anywhere makes another policy or an error, never a panic.
func FuzzParse(f *testing.F) {
	whole := written(f, random(2))
	f.Add(whole)
	f.Add(whole[:64])
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Load(b)
		if err == nil {
			p.Decide(farm(), policy.Memory{})
		}
	})
}

// The actions ask for what their names say, within the bounds of the farm.
func TestActions(t *testing.T) {
	rule, err := policy.New("staffing:down=0,cap=40")
	if err != nil {
		t.Fatal(err)
	}
	o := farm()
	a := Advise(rule, o, policy.Memory{})
	_, sizing := rule.(policy.Sizer).DecideAndSize(o, policy.Memory{})
	before, _ := sizing.Size(0.8)
	peak, _ := sizing.Size(8.4)
	want := map[string]int{"-50%": 5, "-2": 8, "-1": 9, "hold": 10, "+1": 11, "+2": 12, "+50%": 15, "rule": a.Wish.Replicas, "rule-before": before, "rule-peak": peak}
	for i, name := range Actions() {
		if got := a.Replicas(o, i); got != want[name] {
			t.Errorf("%s of 10 is %d: want %d", name, got, want[name])
		}
	}
	if before >= peak {
		t.Errorf("the rule wants %d for a load of 0.8 and %d for 8.4", before, peak)
	}
	o.Desired, o.Min, o.Max = 1, 1, 1
	var mask [actions]bool
	a.Mask(o, nil, mask[:])
	for i, ok := range mask {
		if ok && i != hold && i != toRule {
			t.Errorf("%s is allowed where the farm has its one replica", actionNames[i])
		}
	}
}

// A policy that may only take some actions takes no other, even where a mask allows all.
func TestActTakesOnlySome(t *testing.T) {
	f := random(3)
	f.Only = []string{"hold", "+1", "+1"} // twice is once
	f.Net.Layers[2].Bias[toRule] = 1e6
	p, err := Load(written(t, f))
	if err != nil {
		t.Fatal(err)
	}
	var all [actions]bool
	for i := range all {
		all[i] = true
	}
	if a := Actions()[p.Act(f.Low, all[:])]; a != "hold" && a != "+1" {
		t.Errorf("it takes %s: want hold or +1", a)
	}
}

// What is not a number is wished as a count that nobody has.
func TestNaNIsInvalid(t *testing.T) {
	p, err := Load(written(t, random(1)))
	if err != nil {
		t.Fatal(err)
	}
	p.Net.Layers[0].Bias[0] = math.NaN()
	p.Net.Layers[1].Weight[0] = math.Inf(1)
	if d := p.Decide(farm(), policy.Memory{}); d.Replicas != Invalid {
		t.Errorf("the wish is %d: want %d", d.Replicas, Invalid)
	}
}

// The feature farthest outside of what training saw is named. Where a feature hardly
// moved in training, a little more than that is nothing strange.
func TestStrange(t *testing.T) {
	names, lo, hi := FeatureNames()
	i, j := slices.Index(names, "load_short"), slices.Index(names, "target")
	for _, c := range []struct {
		low, high, target float64
		want              policy.Strange
	}{
		{0, 1, 0.97, policy.Strange{Feature: "load_short", Widths: math.Log1p(8) - 1}},
		{1, 3, 0.97, policy.Strange{}},
		{1, 3, 0.95, policy.Strange{Feature: "target", Widths: 0.02 / leastWidth}},
		{1, 3, 0.5, policy.Strange{Feature: "target", Widths: 0.47 / leastWidth}},
		{3, 4, 0.97, policy.Strange{Feature: "load_short", Widths: 3 - math.Log1p(8)}},
		{2.5, 2.5, 0.97, policy.Strange{Feature: "load_short", Widths: (2.5 - math.Log1p(8)) / leastWidth / (hi[i] - lo[i])}},
	} {
		f := random(1)
		f.Low[i], f.High[i] = c.low, c.high
		f.Low[j], f.High[j] = c.target, c.target
		p, err := Load(written(t, f))
		if err != nil {
			t.Fatal(err)
		}
		o := farm()
		d, got := p.Judge(o, policy.Memory{})
		if got.Feature != c.want.Feature || math.Abs(got.Widths-c.want.Widths) > 1e-9 || d != p.Decide(o, policy.Memory{}) {
			t.Errorf("range %g…%g, target %g: %+v, want %+v", c.low, c.high, c.target, got, c.want)
		}
		o.Waiting = policy.Unknown
		if _, got := p.Judge(o, policy.Memory{}); got != (policy.Strange{}) {
			t.Errorf("stale signals are strange: %+v", got)
		}
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	p, err := Load(written(t, random(1)))
	if err != nil {
		t.Fatal(err)
	}
	o, m := farm(), policy.Memory{}
	p.Decide(o, m)
	if n := testing.AllocsPerRun(100, func() { p.Decide(o, m) }); n > 0 {
		t.Errorf("%g allocations a decision", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	p, err := Load(written(b, random(1)))
	if err != nil {
		b.Fatal(err)
	}
	o, m := farm(), policy.Memory{}
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(o, m)
	}
}
