package evaluate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"

	"farmhand/sim"
	"farmhand/sim/workload"
)

// Store keeps what was computed, by a key that is made of all it depends on.
type Store interface {
	// Get reads the value of a key into v; ok is false where there is none.
	Get(key string, v any) (ok bool, err error)
	Put(key string, v any) error
}

// probeSeed and probeTime say what a probe looks at: seconds of a run.
const (
	probeSeed = 1
	probeTime = 600
)

// probe makes keys for a scenario. What a result depends on is told by content: the
// tasks that the scenario draws, the settings of farm, platform and guard, and what
// the simulator and the policy do in the first ten minutes. A change of a law or of
// the simulator that leaves these minutes as they were goes unnoticed; one that
// matters hardly does.
type probe struct {
	settings *Settings
	head     sim.Config // of the first minutes
	base     string
}

func (s *Settings) probe(scenario *workload.Scenario) *probe {
	tasks := scenario.Draw(probeSeed)
	h := sha256.New()
	fmt.Fprintf(h, "%s %g %+v %+v %+v\n", scenario.Name, scenario.Horizon, scenario.Farm, scenario.Platform, s.Guard)
	floats(h, tasks.At, tasks.Service, tasks.Deadline)
	return &probe{settings: s, head: stretch(scenario, tasks, probeSeed, 0, probeTime), base: sum(h)}
}

// Fingerprint tells scenarios apart by their content: what they draw, and the settings
// of farm and platform.
func Fingerprint(s *workload.Scenario) string { return (&Settings{}).probe(s).base }

// Fingerprint tells pasts apart by their content.
func (p *Past) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "%+v %g %v\n", p.Farm, p.Lead, p.Bins)
	r := workload.Stream(probeSeed, workload.StreamService)
	for range 100 {
		floats(h, []float64{p.Service.Draw(r), p.Startup.Draw(r)})
	}
	return sum(h)
}

func floats(h hash.Hash, slices ...[]float64) {
	var b []byte
	for _, x := range slices {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(len(x)))
		for _, v := range x {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		h.Write(b)
	}
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:16]) }

// contender is the key of a contender on the scenario.
func (p *probe) contender(ctx context.Context, c *Contender) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %q %q %v\n", p.base, c.Name, c.Spec, c.Version, c.Unguarded)
	seen := *c
	if c.Version != "" { // it may be costly to make
		seen = Contender{Spec: "static"}
	}
	r, err := seen.play(ctx, p.settings.runner(), p.settings.Guard, p.head)
	if err != nil {
		return "", fmt.Errorf("%s on %s: %w", c.Spec, p.head.Scenario.Name, err)
	}
	if err := json.NewEncoder(h).Encode(r); err != nil {
		return "", err
	}
	return sum(h), nil
}

func episodeKey(contender string, seed uint64) string {
	return fmt.Sprintf("episode %s %d", contender, seed)
}
