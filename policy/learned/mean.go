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
		case f.Net.Activation != first.Net.Activation || f.Net.Limit != first.Net.Limit || len(f.Net.Layers) != len(first.Net.Layers):
			return nil, fmt.Errorf("learned: a mean of %d layers with %s and %d with %s: want as many, of one activation and limit",
				len(first.Net.Layers), first.Net.Activation, len(f.Net.Layers), f.Net.Activation)
		case len(f.Members) > 0:
			return nil, fmt.Errorf("learned: a mean of the mean of %s: want policies that each learned alone", f.Seeds())
		}
		m.Steps += f.Steps
		m.Members = append(m.Members, f.Seed)
	}
	m.Net = Net{Shift: first.Net.Shift, Scale: first.Net.Scale, Limit: first.Net.Limit, Activation: first.Net.Activation}
	for i := range first.Net.Layers {
		m.Net.Layers = append(m.Net.Layers, stack(files, i))
	}
	return m, nil
}

// stack is layer i of all nets as one: the first takes the features as the first net
// normalises them, the last makes the mean of the outputs.
func stack(files []*File, i int) Layer {
	last := i == len(files[0].Net.Layers)-1
	var all Layer
	for _, f := range files {
		l := &f.Net.Layers[i]
		if i == 0 {
			all.In = l.In
		} else {
			all.In += l.In
		}
		if last {
			all.Out = l.Out
		} else {
			all.Out += l.Out
		}
	}
	all.Weight, all.Bias = make([]float64, all.In*all.Out), make([]float64, all.Out)
	row, column, share := 0, 0, 1.0
	if last {
		share = 1 / float64(len(files))
	}
	for _, f := range files {
		l := &f.Net.Layers[i]
		for to, b := range l.Bias {
			all.Bias[column+to] += share * b
		}
		for from := range l.In {
			scale, shift := 1.0, 0.0
			if i == 0 {
				scale, shift = f.Net.after(&files[0].Net, from)
			}
			for to := range l.Out {
				w := share * l.Weight[from*l.Out+to]
				all.Weight[(row+from)*all.Out+column+to] += w * scale
				all.Bias[column+to] += w * shift
			}
		}
		if i > 0 {
			row += l.In
		}
		if !last {
			column += l.Out
		}
	}
	return all
}

// after is how a net normalises a feature that another has normalised: x·scale + shift. A
// feature that the other does not see is one that neither does.
func (n *Net) after(other *Net, feature int) (scale, shift float64) {
	if other.Scale[feature] == 0 {
		return 0, 0
	}
	return n.Scale[feature] / other.Scale[feature], (other.Shift[feature] - n.Shift[feature]) * n.Scale[feature]
}
