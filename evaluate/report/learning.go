package report

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Progress is how a learner did while it learned.
type Progress struct {
	Name   string
	Points []Looked
}

// Looked is what its policy came to after some steps.
type Looked struct {
	Steps           float64
	OnTime, Workers float64
}

// Level is what something that does not learn came to on the same work.
type Level struct {
	Name            string
	OnTime, Workers float64
}

// Learning draws the share on time above the mean workers, over the steps that were
// learned from, as SVG: one line for each learner, a dashed one for each level, and the
// target.
func Learning(w io.Writer, title string, learners []Progress, levels []Level, target float64) error {
	last := 0.0
	for _, l := range learners {
		for _, x := range l.Points {
			last = max(last, x.Steps)
		}
	}
	if last == 0 {
		return fmt.Errorf("report: %s: there is nothing to draw", title)
	}
	panel := func(label string, learnt func(Looked) float64, level func(Level) float64) (*plot.Plot, error) {
		p := plot.New()
		p.Y.Label.Text, p.X.Min, p.X.Max = label, 0, last
		for i, l := range learners {
			var xys plotter.XYs
			for _, x := range l.Points {
				xys = append(xys, plotter.XY{X: x.Steps, Y: learnt(x)})
			}
			if err := line(p, l.Name, xys, hue(i), false); err != nil {
				return nil, err
			}
		}
		for i, l := range levels {
			if y := level(l); !math.IsNaN(y) {
				if err := line(p, l.Name, plotter.XYs{{X: 0, Y: y}, {X: last, Y: y}}, hue(len(learners)+i), true); err != nil {
					return nil, err
				}
			}
		}
		return p, nil
	}
	above, err := panel("on time %", func(x Looked) float64 { return 100 * x.OnTime }, func(l Level) float64 { return 100 * l.OnTime })
	if err != nil {
		return err
	}
	if err := line(above, "target", plotter.XYs{{X: 0, Y: 100 * target}, {X: last, Y: 100 * target}}, red, true); err != nil {
		return err
	}
	// The first policies are far off; what matters lies near the target.
	above.Title.Text, above.Y.Max, above.Y.Min = title, 100, max(above.Y.Min, 100-5*100*(1-target))
	below, err := panel("mean workers", func(x Looked) float64 { return x.Workers }, func(l Level) float64 { return l.Workers })
	if err != nil {
		return err
	}
	below.X.Label.Text, below.Y.Min, below.Legend.Top = "environment steps", 0, true
	if len(levels) > 0 {
		most := 0.0
		for _, l := range levels {
			most = max(most, l.Workers)
		}
		below.Y.Max = min(below.Y.Max, 3*most)
	}
	plots := [][]*plot.Plot{{above}, {below}}
	c := vgsvg.New(20*vg.Centimeter, 16*vg.Centimeter)
	for i, row := range plot.Align(plots, draw.Tiles{Rows: 2, Cols: 1, PadY: vg.Points(4), PadRight: vg.Points(8)}, draw.New(c)) {
		plots[i][0].Draw(row[0])
	}
	_, err = c.WriteTo(w)
	return err
}

// hue is the colour of line i.
func hue(i int) color.Color { return []color.Color{blue, orange, green, violet, sky, grey}[i%6] }
