package policy

import (
	"strings"
	"testing"
	"time"
)

func TestThreshold(t *testing.T) {
	running := func(n Maybe) func(*Observation) { return func(o *Observation) { o.Running = n } }
	now := float64(farm().At.Unix())
	for _, c := range []struct {
		name   string
		spec   string
		o      *Observation
		m      Memory
		want   int
		reason string
	}{
		{"5 waiting on 4 slots", "threshold", farm(replicas(4), queue(5)), Memory{}, 5, "1.25 waiting per ready slot, over 1: up by 1"},
		{"a step of three", "threshold:step=3", farm(replicas(4), queue(5)), Memory{}, 7, "up by 3"},
		{"up within the cooldown", "threshold", farm(replicas(4), queue(5)), Memory{"stepped": now - 1}, 5, "up by 1"},
		{"at the threshold", "threshold", farm(replicas(4), queue(4)), Memory{}, 4, "nothing to do"},
		{"none ready counts as one slot", "threshold", farm(func(o *Observation) { o.Desired, o.Ready, o.Waiting = 3, 0, 2 }), Memory{}, 4, "2 waiting per ready slot"},
		{"from zero", "threshold", farm(replicas(0), func(o *Observation) { o.Waiting = 3 }), Memory{}, 1, "up by 1"},
		{"idle", "threshold", farm(replicas(4), running(2)), Memory{}, 3, "at most 0.1: down by 1"},
		{"idle, after the cooldown", "threshold", farm(replicas(4)), Memory{"stepped": now - 60}, 3, "down by 1"},
		{"idle, within the cooldown", "threshold", farm(replicas(4)), Memory{"stepped": now - 59}, 4, "the last step was 59 s ago"},
		{"busy and in time", "threshold", farm(replicas(4), running(4)), Memory{}, 4, "but 4 tasks run"},
		{"down to none, not below", "threshold:step=9", farm(replicas(4)), Memory{}, 0, "down by 4"},
		{"none", "threshold", farm(replicas(0)), Memory{}, 0, "nothing to do"},
		{"two slots each", "threshold", farm(replicas(4), func(o *Observation) { o.Slots, o.Waiting = 2, 9 }), Memory{}, 5, "1.12 waiting per ready slot"},
	} {
		d := make1(t, c.spec).Decide(c.o, c.m)
		if d.Replicas != c.want || d.Hold || !strings.Contains(d.Reason, c.reason) {
			t.Errorf("%s: %+v, want %d for %q", c.name, d, c.want, c.reason)
		}
		if at, ok := c.m["stepped"]; (d.Replicas != c.o.Desired) != (ok && at == now) {
			t.Errorf("%s: remembers %v", c.name, c.m)
		}
	}
}

// An idle farm goes down one replica a minute.
func TestThresholdDescends(t *testing.T) {
	p, m, o := make1(t, "threshold"), Memory{}, farm(replicas(4))
	for range 61 {
		d := p.Decide(o, m)
		o.Desired, o.Ready, o.At = d.Replicas, d.Replicas, o.At.Add(2*time.Second)
	}
	if o.Desired != 1 { // at 0, 60 and 120 s
		t.Errorf("%d replicas after two minutes", o.Desired)
	}
}
