package learned

import (
	"errors"
	"fmt"
	"slices"
)

// Mean makes one policy of several that learned apart: it does what is best by the mean of
// their outputs (an ensemble; Lakshminarayanan et al., arXiv 1612.01474), so that what one
// has learned by luck is outvoted. Its net has all of theirs side by side. A feature is cut
// off where the first cuts it off, and has the range that it has there. The error says in
// what they differ that they must share.
func Mean(files ...*File) (*File, error) {
	if len(files) == 0 {
		return nil, errors.New("learned: a mean of no policies: want one or more")
	}
	first := files[0]
	m := &File{Meta: first.Meta, Low: first.Low, High: first.High}
	m.Steps, m.Training, m.Evaluation, m.Members = 0, nil, nil, nil
	for _, f := range files {
		switch {
		case f.Rule != first.Rule || f.Fallback != first.Fallback:
			return nil, fmt.Errorf("learned: a mean of policies that %s and %s advise: want one rule and one fallback", first.Rule, f.Rule)
		case !slices.Equal(f.Only, first.Only) || !slices.Equal(f.Hidden, first.Hidden):
			return nil, errors.New("learned: a mean of policies that may take, or see, other things: want the same only and hidden")
		case f.Net.Activation != first.Net.Activation || f.Net.Limit != first.Net.Limit || !slices.Equal(f.Net.widths(), first.Net.widths()):
			return nil, fmt.Errorf("learned: a mean of nets %v wide with %s and %v with %s: want the same widths, activation and limit",
				first.Net.widths(), first.Net.Activation, f.Net.widths(), f.Net.Activation)
		case len(f.Members) > 0 || slices.ContainsFunc(f.Net.Layers, func(l Layer) bool { return l.Blocks > 1 }):
			return nil, fmt.Errorf("learned: a mean of the mean of %s: want policies that each learned alone", f.Seeds())
		}
		m.Steps += f.Steps
		m.Members = append(m.Members, f.Seed)
	}
	if len(first.Net.Layers) < 2 {
		return nil, fmt.Errorf("learned: a mean of nets %v wide: want two layers or more", first.Net.widths())
	}
	m.Net = Net{Shift: first.Net.Shift, Scale: first.Net.Scale, Limit: first.Net.Limit, Activation: first.Net.Activation}
	for i := range first.Net.Layers {
		m.Net.Layers = append(m.Net.Layers, stack(files, i))
	}
	return m, nil
}

// stack is layer i of all nets as one: the first takes the features as the first net
// normalises them, the last makes the mean of the outputs; between, each net is a block.
func stack(files []*File, i int) Layer {
	var all Layer
	for k, f := range files {
		l := f.Net.Layers[i]
		if i == 0 {
			l = f.Net.fitted(&files[0].Net)
		}
		if k == 0 {
			all = Layer{In: l.In, Out: l.Out, Weight: slices.Clone(l.Weight), Bias: slices.Clone(l.Bias)}
			continue
		}
		switch i {
		case 0:
			all = all.beside(&l)
		case len(f.Net.Layers) - 1:
			all.above(&l)
		default:
			all.In, all.Out, all.Blocks = all.In+l.In, all.Out+l.Out, k+1
			all.Weight, all.Bias = append(all.Weight, l.Weight...), append(all.Bias, l.Bias...)
		}
	}
	if i == len(files[0].Net.Layers)-1 {
		for _, list := range [][]float64{all.Weight, all.Bias} {
			for j := range list {
				list[j] /= float64(len(files))
			}
		}
	}
	return all
}

// beside is a layer that makes what both make of the same numbers.
func (l *Layer) beside(other *Layer) Layer {
	both := Layer{In: l.In, Out: l.Out + other.Out, Bias: slices.Concat(l.Bias, other.Bias)}
	for row := range l.In {
		both.Weight = append(both.Weight, l.Weight[row*l.Out:(row+1)*l.Out]...)
		both.Weight = append(both.Weight, other.Weight[row*other.Out:(row+1)*other.Out]...)
	}
	return both
}

// above lets a layer take what another takes too, and add what that makes.
func (l *Layer) above(other *Layer) {
	l.In += other.In
	l.Weight = append(l.Weight, other.Weight...)
	for i, b := range other.Bias {
		l.Bias[i] += b
	}
}

// widths of a net's layers: what each makes.
func (n *Net) widths() (list []int) {
	for _, l := range n.Layers {
		list = append(list, l.Out)
	}
	return list
}

// fitted is a net's first layer for features that another has normalised.
func (n *Net) fitted(other *Net) Layer {
	l := n.Layers[0]
	fit := Layer{In: l.In, Out: l.Out, Bias: slices.Clone(l.Bias)}
	for from := range l.In {
		scale, shift := n.after(other, from)
		for to, w := range l.Weight[from*l.Out : (from+1)*l.Out] {
			fit.Weight = append(fit.Weight, w*scale)
			fit.Bias[to] += w * shift
		}
	}
	return fit
}

// after is how a net normalises a feature that another has normalised: x·scale + shift. A
// feature that the other does not see is one that neither does.
func (n *Net) after(other *Net, feature int) (scale, shift float64) {
	if other.Scale[feature] == 0 {
		return 0, 0
	}
	return n.Scale[feature] / other.Scale[feature], (other.Shift[feature] - n.Shift[feature]) * n.Scale[feature]
}
