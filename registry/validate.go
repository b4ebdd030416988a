package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"farmhand/policy/learned"
)

// VersionOf a policy file: the SHA-256 of its bytes, in 64 hexadecimal digits.
func VersionOf(file []byte) string {
	h := sha256.Sum256(file)
	return hex.EncodeToString(h[:])
}

// IsVersion reports whether a text has the form of a version.
func IsVersion(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// Short is a version as people read it: its first twelve digits, which are those in
// the policy's name.
func Short(version string) string { return version[:min(len(version), 12)] }

// Summary is what is shown of a policy file.
type Summary struct {
	Learner     string             `json:"learner"`
	Environment string             `json:"environment"`
	Scenario    string             `json:"scenario,omitempty"`
	Seed        uint64             `json:"seed"`
	Members     []uint64           `json:"members,omitempty"` // seeds of the policies that it is the mean of
	Steps       int                `json:"steps"`
	Rule        string             `json:"rule"`
	Fallback    string             `json:"fallback,omitempty"` // empty: the rule
	Observation int                `json:"observation_version"`
	Training    map[string]float64 `json:"training,omitempty"`
}

// Validate returns what is shown of a policy file that can run with this program.
// Else the error wraps ErrInvalid and says why.
func Validate(file []byte) (Summary, error) {
	if len(file) > MaxFile {
		return Summary{}, fmt.Errorf("%w: it has %d bytes: want at most %d", ErrInvalid, len(file), MaxFile)
	}
	p, err := learned.Load(file)
	if err != nil {
		return Summary{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := sound(p); err != nil {
		return Summary{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	m := p.Meta
	s := Summary{Learner: clip(m.Learner), Environment: clip(m.Environment), Scenario: clip(m.Scenario), Seed: m.Seed, Members: m.Members[:min(len(m.Members), maxMembers)], Steps: m.Steps,
		Rule: clip(m.Rule), Fallback: clip(m.Fallback), Observation: m.Observation}
	s.Training = map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(m.Training))[:min(len(m.Training), maxTraining)] {
		s.Training[clip(name)] = m.Training[name]
	}
	return s, nil
}

// maxMembers is how many members are shown at most.
const maxMembers = 32

// maxTraining is how many numbers of a training record are shown at most.
const maxTraining = 32

// sound asks a policy where its training's features lay: at their least, their most
// and in the middle.
func sound(p *learned.Policy) error {
	middle := make([]float64, len(p.Low))
	for i := range middle {
		if !(p.Low[i] <= p.High[i]) || math.IsInf(p.Low[i], 0) || math.IsInf(p.High[i], 0) {
			return fmt.Errorf("feature %s was in %g…%g in training: want finite numbers in their order", p.Features[i], p.Low[i], p.High[i])
		}
		middle[i] = p.Low[i]/2 + p.High[i]/2
	}
	for _, x := range [][]float64{p.Low, middle, p.High} {
		for i, y := range p.Outputs(x) {
			if math.IsNaN(y) || math.IsInf(y, 0) {
				return fmt.Errorf("it makes %g of what it met in training, for %s: want finite numbers", y, p.Meta.Actions[i])
			}
		}
	}
	return nil
}

// Verify reports whether bytes are those of a version. Else the error wraps ErrDamaged.
func Verify(version string, file []byte) error {
	if got := VersionOf(file); got != version {
		return fmt.Errorf("%w: the bytes of policy %s are those of %s; import the file again", ErrDamaged, Short(version), Short(got))
	}
	return nil
}

// Check a Reason before an alias is moved: r of a forced promotion needs a text.
func (r Reason) Check() error {
	for name, s := range map[string]string{"by": r.By, "reason": r.Text} {
		if len(s) > MaxText {
			return fmt.Errorf("%w: %s has %d bytes: want at most %d", ErrRefused, name, len(s), MaxText)
		}
	}
	if r.Forced && strings.TrimSpace(r.Text) == "" {
		return fmt.Errorf("%w: it is forced, and no reason is given: want one, which is kept", ErrRefused)
	}
	return nil
}

// Permit reports whether a verdict lets a version become champion in the place of
// another one. Else the error wraps ErrRefused and says why. v may be nil.
func Permit(v *Verdict, champion string) error {
	switch {
	case v == nil:
		return fmt.Errorf("%w: no gate has judged it for this farm", ErrRefused)
	case v.Outcome == Rejected:
		return fmt.Errorf("%w: the gate rejected it%s", ErrRefused, v.first(Rejected))
	case v.Outcome != Promoted:
		return fmt.Errorf("%w: what the gate found is inconclusive%s", ErrRefused, v.first(Inconclusive))
	case v.Champion != champion:
		return fmt.Errorf("%w: the gate compared it with %s, and the champion is %s now", ErrRefused, named(v.Champion), named(champion))
	}
	return nil
}

// first describes the first check with an outcome.
func (v *Verdict) first(o Outcome) string {
	for _, c := range v.Checks {
		if c.Outcome == o {
			return fmt.Sprintf(": %s on %s against %s is %.4g (%.4g to %.4g), the limit %.4g", c.Metric, c.Work, c.Against,
				float64(c.Value), float64(c.Lo), float64(c.Hi), c.Limit)
		}
	}
	return ""
}

func named(version string) string {
	if version == "" {
		return "no champion"
	}
	return Short(version)
}

func clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
