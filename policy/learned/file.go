package learned

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"farmhand/policy"
)

// Version of policy files.
const Version = 1

// File is a learned policy, as it is kept: a net, and what it takes to run it and to
// judge it.
type File struct {
	Meta
	Net Net
	// Low and High are the range of each feature in training, all but a thousandth at
	// each end. What lies far outside was never met.
	Low, High []float64
}

// Meta is what is said of a policy beside its numbers.
type Meta struct {
	Version     int      `json:"version"`
	Observation int      `json:"observation_version"`
	Features    []string `json:"features"`
	Actions     []string `json:"actions"`
	Only        []string `json:"only,omitempty"`     // the actions that it may take, "hold" among them; none = all
	Rule        string   `json:"rule"`               // the specification of the rule that advises
	Fallback    string   `json:"fallback,omitempty"` // and of the law that decides where the policy may not; "" = the rule
	Limit       float64  `json:"input_limit"`
	Activation  string   `json:"activation"`

	Learner     string             `json:"learner"`
	Environment string             `json:"environment"`
	Scenario    string             `json:"scenario,omitempty"`
	Seed        uint64             `json:"seed"`
	Members     []uint64           `json:"members,omitempty"` // seeds of the policies that it is the mean of
	Trust       float64            `json:"trust,omitempty"`   // in the rule: what is added to the output of the action that does what it wishes
	Steps       int                `json:"steps"`
	Hidden      []string           `json:"hidden,omitempty"`     // features that do not count
	Settings    json.RawMessage    `json:"settings,omitempty"`   // of the learner
	Training    map[string]float64 `json:"training,omitempty"`   // how it ended
	Evaluation  json.RawMessage    `json:"evaluation,omitempty"` // rows, against calibrated peers
}

// Seeds of training, as text: one, or those of the policies that it is the mean of.
func (m *Meta) Seeds() string {
	if len(m.Members) == 0 {
		return fmt.Sprint("seed ", m.Seed)
	}
	return fmt.Sprint("seeds ", strings.Trim(fmt.Sprint(m.Members), "[]"))
}

// metaKey is where the Meta stand in a file's metadata.
const metaKey = "farmhand"

// Write a policy. Equal policies give equal bytes.
func (f *File) Write(w io.Writer) error {
	f.Version, f.Observation, f.Actions = Version, policy.ObservationVersion, Actions()
	f.Features, _, _ = FeatureNames()
	f.Limit, f.Activation = f.Net.Limit, string(f.Net.Activation)
	if err := f.check(); err != nil {
		return err
	}
	text, err := marshal(f.Meta)
	if err != nil {
		return err
	}
	n := len(f.Features)
	tensors := []tensor{{"normalise.shift", []int{n}, f.Net.Shift}, {"normalise.scale", []int{n}, f.Net.Scale},
		{"seen.low", []int{n}, f.Low}, {"seen.high", []int{n}, f.High}}
	for i, l := range f.Net.Layers {
		tensors = append(tensors, tensor{layerName(i, "weight"), l.shape(), l.Weight}, tensor{layerName(i, "bias"), []int{l.Out}, l.Bias})
	}
	return writeTensors(w, map[string]string{metaKey: text}, tensors)
}

func marshal(m Meta) (string, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("learned: %w", err)
	}
	return string(text), nil
}

func layerName(i int, part string) string { return fmt.Sprintf("layer%d.%s", i, part) }

// maxLayers is how many layers a net has at most.
const maxLayers = 16

// Parse reads a policy. Where it cannot run with this program, the error says why.
func Parse(b []byte) (*File, error) {
	metadata, tensors, err := readTensors(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("learned: no policy file: %w", err)
	}
	f := &File{}
	if err := json.Unmarshal([]byte(metadata[metaKey]), &f.Meta); err != nil {
		return nil, fmt.Errorf("learned: no policy file of Farmhand: its metadata %q: %w", metaKey, err)
	}
	f.Net = Net{Shift: tensors["normalise.shift"].values, Scale: tensors["normalise.scale"].values, Limit: f.Limit, Activation: Activation(f.Activation)}
	f.Low, f.High = tensors["seen.low"].values, tensors["seen.high"].values
	for i := range maxLayers {
		w, ok := tensors[layerName(i, "weight")]
		if !ok {
			break
		}
		l := Layer{Weight: w.values, Bias: tensors[layerName(i, "bias")].values}
		switch len(w.shape) {
		case 2:
			l.In, l.Out = w.shape[0], w.shape[1]
		case 3:
			l.In, l.Out, l.Blocks = w.shape[0]*w.shape[1], w.shape[0]*w.shape[2], w.shape[0]
		default:
			return nil, fmt.Errorf("learned: tensor %q has the shape %v: want in × out, or blocks × in × out", w.name, w.shape)
		}
		f.Net.Layers = append(f.Net.Layers, l)
	}
	return f, f.check()
}

// check says why a policy cannot run.
func (f *File) check() error {
	features, _, _ := FeatureNames()
	switch {
	case f.Version != Version:
		return fmt.Errorf("learned: the policy file has version %d: this program runs %d", f.Version, Version)
	case f.Observation != policy.ObservationVersion:
		return &VersionError{Observation: f.Observation}
	case !slices.Equal(f.Features, features):
		return fmt.Errorf("learned: the policy looks at %d features that are not those of this program: train it again", len(f.Features))
	case !slices.Equal(f.Meta.Actions, Actions()):
		return fmt.Errorf("learned: the policy has the actions %v: want %v", f.Meta.Actions, Actions())
	case len(f.Low) != len(features) || len(f.High) != len(features):
		return fmt.Errorf("learned: the policy says the range of %d features: want %d", len(f.Low), len(features))
	}
	if _, err := Denied(f.Only); err != nil {
		return err
	}
	if _, err := policy.New(f.Rule); err != nil {
		return fmt.Errorf("learned: the rule of the policy: %w", err)
	}
	if _, err := policy.New(cmp.Or(f.Fallback, f.Rule)); err != nil {
		return fmt.Errorf("learned: the fallback of the policy: %w", err)
	}
	if err := f.Net.check(len(features), actions); err != nil {
		return fmt.Errorf("learned: %w", err)
	}
	return nil
}

// Read a policy file.
func Read(name string) (*Policy, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("learned: %w", err)
	}
	p, err := Load(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Load makes a policy of a policy file.
func Load(b []byte) (*Policy, error) {
	f, err := Parse(b)
	if err != nil {
		return nil, err
	}
	rule, err := policy.New(f.Rule)
	if err != nil {
		return nil, err
	}
	fallback, err := policy.New(cmp.Or(f.Fallback, f.Rule))
	if err != nil {
		return nil, err
	}
	return newPolicy(f, rule, fallback, NameOf(b)), nil
}

// NameOf is the name of the policy in a policy file, whether it can run or not.
func NameOf(b []byte) string { return fmt.Sprintf("learned:%x", sha256.Sum256(b))[:len("learned:")+12] }

// VersionError says that a policy has learned from observations of another version
// than this program makes.
type VersionError struct{ Observation int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("learned: the policy looks at observations of version %d: this program makes %d; train it again", e.Observation, policy.ObservationVersion)
}
