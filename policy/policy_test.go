package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestLaws(t *testing.T) {
	var names []string
	for _, law := range Laws() {
		names = append(names, law.Name)
		if law.Doc == "" || strings.Contains(law.Doc, "\n") {
			t.Errorf("%s: the doc is one line", law.Name)
		}
		for _, q := range law.Params {
			if q.Doc == "" || len(q.Choices) == 0 && (q.Default < q.Min || q.Default > q.Max) {
				t.Errorf("%s of %s: %+v", q.Name, law.Name, q)
			}
		}
		if p := make1(t, law.Name); p.Name() != law.Name {
			t.Errorf("%s is called %s", law.Name, p.Name())
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("not in order of their names: %v", names)
	}
}

// A policy's name is the shortest specification of it.
func TestSpec(t *testing.T) {
	for spec, want := range map[string]string{
		"static":                       "static",
		" static:n=4 ":                 "static:n=4",
		"static:n=0":                   "static",
		"threshold:":                   "threshold",
		"threshold:step=2,up=0.5":      "threshold:up=0.5,step=2",
		"staffing:down=30, floor=2,":   "staffing:floor=2,down=30",
		"staffing:headroom=1.10":       "staffing",
		"reactive-maximum:horizon=1e1": "reactive-maximum:horizon=10",
	} {
		p := make1(t, spec)
		if p.Name() != want {
			t.Errorf("%q is called %q, want %q", spec, p.Name(), want)
		}
		if q := make1(t, p.Name()); q != p {
			t.Errorf("%q made again differs: %+v and %+v", spec, p, q)
		}
	}
}

func TestSpecErrors(t *testing.T) {
	var names []string
	for _, law := range Laws() {
		names = append(names, law.Name)
	}
	all := strings.Join(names, ", ")
	for spec, want := range map[string]string{
		"":                     `policy: "" is no law: want one of ` + all,
		"magic:n=1":            `policy: "magic" is no law: want one of ` + all,
		"hpa:metric=cpu":       `policy: metric of hpa: "cpu" is not valid: want one of busy, tasks`,
		"static:m=1":           `policy: "m=1" is no parameter of static: want n=0…10000`,
		"static:4":             `policy: "4" is no parameter of static: want n=0…10000`,
		"static:n=four":        `policy: n of static: "four" is not valid: want a whole number from 0 to 10000`,
		"static:n=-1":          `policy: n of static: "-1" is not valid: want a whole number from 0 to 10000`,
		"static:n=2.5":         `policy: n of static: "2.5" is not valid: want a whole number from 0 to 10000`,
		"static:n=NaN":         `policy: n of static: "NaN" is not valid: want a whole number from 0 to 10000`,
		"threshold:cooldown=x": `policy: cooldown of threshold: "x" is not valid: want a number from 0 to 3600`,
	} {
		if _, err := New(spec); err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", spec, err, want)
		}
	}
}

func TestUnknownParameterPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != "policy: law static has no parameter m" {
			t.Errorf("panic %v", got)
		}
	}()
	Params{law: &static}.Get("m")
}
