package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"farmhand/policy/learned"
	"farmhand/registry"
)

// agreePoints is how many points two policies are compared at.
const agreePoints = 10_000

// policyDiff is what differs between two policies.
type policyDiff struct {
	A         string      `json:"a"` // versions
	B         string      `json:"b"`
	Fields    []fieldDiff `json:"fields"`                   // that differ
	Weights   *float64    `json:"weights_change,omitempty"` // ‖b − a‖ ÷ ‖a‖, where the nets have the same shape
	Agreement float64     `json:"same_action"`              // share of the points of A's training range
	Points    int         `json:"points"`
}

type fieldDiff struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

func policyDiffCmd() *cobra.Command {
	var c connection
	var seed uint64
	cmd := &cobra.Command{
		Use: "diff A B", Short: "Compare two policies: how they were trained, their weights, what they choose", Args: exactly("A", "B"),
		Long: `Compare two policies, versions or .safetensors files: how they were trained, how far their
weights are apart, and how often both choose the same action at points drawn evenly from
the range of features that training of A saw.`,
		Example: "  farmhand policy diff thumbnail:champion thumbnail:challenger\n  farmhand policy diff thumbnail:champion p.safetensors",
		RunE: func(cmd *cobra.Command, args []string) error {
			var p [2]*learned.Policy
			d := policyDiff{Points: agreePoints, Fields: []fieldDiff{}}
			for i, to := range []*string{&d.A, &d.B} {
				file, err := c.policyBytes(cmd.Context(), args[i])
				if err != nil {
					return err
				}
				if p[i], err = learned.Load(file); err != nil {
					return fmt.Errorf("%s: %w", args[i], err)
				}
				*to = registry.VersionOf(file)
			}
			d.compare(p[0], p[1], seed)
			return c.print(cmd, d, func() { d.write(cmd.OutOrStdout()) })
		},
	}
	c.flags(cmd)
	cmd.Flags().Uint64Var(&seed, "seed", 1, "of the points at which the choices are compared")
	return cmd
}

func (d *policyDiff) compare(a, b *learned.Policy, seed uint64) {
	fields := [2]map[string]string{describe(a), describe(b)}
	names := slices.Concat(slices.Collect(maps.Keys(fields[0])), slices.Collect(maps.Keys(fields[1])))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if x, y := fields[0][name], fields[1][name]; x != y {
			d.Fields = append(d.Fields, fieldDiff{name, x, y})
		}
	}
	if x := apart(a, b); shape(a) == shape(b) && !math.IsInf(x, 0) {
		d.Weights = &x
	}
	r := rand.New(rand.NewPCG(seed, 0))
	mask, point, same := make([]bool, len(a.Meta.Actions)), make([]float64, len(a.Low)), 0
	for i := range mask {
		mask[i] = true
	}
	for range d.Points {
		for i := range point {
			point[i] = a.Low[i] + r.Float64()*(a.High[i]-a.Low[i])
		}
		if a.Act(point, mask) == b.Act(point, mask) {
			same++
		}
	}
	d.Agreement = float64(same) / float64(d.Points)
}

// describe is what is said of a policy, as text.
func describe(p *learned.Policy) map[string]string {
	m := p.Meta
	fields := map[string]string{"learner": m.Learner, "environment": m.Environment, "scenario": m.Scenario, "seed": fmt.Sprint(m.Seed), "steps": fmt.Sprint(m.Steps),
		"rule": m.Rule, "fallback": cmp.Or(m.Fallback, m.Rule), "net": shape(p), "activation": m.Activation,
		"trust": fmt.Sprint(m.Trust), "only": strings.Join(m.Only, ", "), "hidden": strings.Join(m.Hidden, ", ")}
	if len(m.Members) > 0 {
		fields["members"] = fmt.Sprint(m.Members)
	}
	for name, x := range m.Training {
		fields["training: "+name] = fmt.Sprintf("%.4g", x)
	}
	var settings map[string]any
	if json.Unmarshal(m.Settings, &settings) == nil { // else there are none
		for name, x := range settings {
			fields["setting: "+name] = fmt.Sprint(x)
		}
	}
	return fields
}

// shape of a net: 53-64-64-10.
func shape(p *learned.Policy) string {
	s := fmt.Sprint(len(p.Low))
	for _, l := range p.Net.Layers {
		s += fmt.Sprintf("-%d", l.Out)
	}
	return s
}

// apart is how far the weights of nets of one shape are apart: ‖b − a‖ ÷ ‖a‖.
func apart(a, b *learned.Policy) float64 {
	diff, norm := 0.0, 0.0
	for i, l := range a.Net.Layers[:min(len(a.Net.Layers), len(b.Net.Layers))] {
		x, y := slices.Concat(l.Weight, l.Bias), slices.Concat(b.Net.Layers[i].Weight, b.Net.Layers[i].Bias)
		for j := range x[:min(len(x), len(y))] {
			diff, norm = diff+(y[j]-x[j])*(y[j]-x[j]), norm+x[j]*x[j]
		}
	}
	if diff == 0 {
		return 0
	}
	return math.Sqrt(diff / norm)
}

func (d *policyDiff) write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "\t%s\t%s\n", registry.Short(d.A), registry.Short(d.B))
	for _, f := range d.Fields {
		fmt.Fprintf(w, "%s\t%s\t%s\n", oneLine(f.Name), cmp.Or(oneLine(f.A), unknown), cmp.Or(oneLine(f.B), unknown))
	}
	_ = w.Flush() // standard output
	if d.Weights != nil {
		fmt.Fprintf(out, "weights: %.3g of their size apart\n", *d.Weights)
	} else {
		fmt.Fprintln(out, "weights: the nets have different shapes")
	}
	fmt.Fprintf(out, "the same action at %.1f %% of %d points of the first one's training\n", 100*d.Agreement, d.Points)
}
