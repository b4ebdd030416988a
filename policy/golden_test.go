package policy

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden decisions")

// A day in the life of a farm, as every law decides it: what a law does may only
// change on purpose (go test ./policy -update rewrites the file). Replicas follow
// the wishes and are ready at the next decision.
func TestGolden(t *testing.T) {
	idle := func(o *Observation) { o.Waiting, o.Running = 0, 0 }
	scenes := []struct {
		name   string
		after  time.Duration
		change []func(*Observation)
	}{
		{"begins", 2, []func(*Observation){idle}},
		{"steady", 120, []func(*Observation){steady(20)}},
		{"burst", 2, []func(*Observation){steady(20), rise(200), queue(300)}},
		{"burst goes on", 2, []func(*Observation){steady(20), rise(200), queue(120)}},
		{"high", 60, []func(*Observation){steady(200)}},
		{"signals missing", 2, []func(*Observation){steady(200), func(o *Observation) { o.Waiting = Unknown }}},
		{"falls", 2, []func(*Observation){steady(200), rise(20)}},
		{"low again", 120, []func(*Observation){steady(20)}},
		{"service unknown", 2, []func(*Observation){steady(20), queue(9), func(o *Observation) { o.Service = Unknown }}},
		{"a job, no deadline", 2, []func(*Observation){steady(0), queue(2000), func(o *Observation) {
			o.Deadline, o.NextDue = 0, Unknown
			o.Last.Arrivals, o.Short.Arrivals, o.Long.Arrivals = 2000, 2000, 2000
		}}},
		{"idle", 300, []func(*Observation){steady(0), idle}},
		{"idle still", 300, []func(*Observation){steady(0), idle}},
	}
	var got strings.Builder
	for _, spec := range []string{
		"static:n=4", "threshold:step=2", "reactive-average", "reactive-maximum", "staffing", "staffing:floor=4,cap=9,down=20",
		"staffing:trend=1,window=30,cooldown=30,band=0.1,boost=0.5", "timer", "forecast:bin=2,season=600", "mpc", "hpa", "keda", "kpa", "openfaas-ce",
		"openfaas-pro:type=queue,target=10", "target-tracking:period=2,up=1,down=1,cooldown=10", "step-scaling:metric=tasks,period=2", "dask-adaptive",
	} {
		p, m := make1(t, spec), Memory{}
		fmt.Fprintf(&got, "%s\n", spec)
		count, at := 2, farm().At
		for _, s := range scenes {
			at = at.Add(s.after * time.Second)
			o := farm(append([]func(*Observation){replicas(count)}, s.change...)...)
			o.At = at
			d := p.Decide(o, m)
			count = min(max(d.Replicas, o.Min), o.Max)
			hold := ""
			if d.Hold {
				hold = "hold: "
			}
			fmt.Fprintf(&got, "  %-18s %2d  %s%s\n", s.name, d.Replicas, hold, d.Reason)
		}
		memory, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "  remembers %s\n\n", memory)
	}
	file := filepath.Join("testdata", "decisions.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("decisions have changed; got\n%s\nwant\n%s", got.String(), want)
	}
}
