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

	"farmhand/evaluate"
)

// Colours that differ for the colour-blind too (Okabe and Ito).
var (
	blue   = color.RGBA{0, 114, 178, 255}
	orange = color.RGBA{230, 159, 0, 255}
	green  = color.RGBA{0, 158, 115, 255}
	red    = color.RGBA{213, 94, 0, 255}
	grey   = color.RGBA{120, 120, 120, 255}
)

// Moment is what a timeline shows of a decision.
type Moment struct {
	At       float64 // s
	Arrivals float64 // tasks per second
	Waiting  float64
	Wanted   float64 // replicas
	Ready    float64
	P95      float64 // sojourn in the last interval, s; NaN: none ended
}

// Timeline draws a stretch of a run: arrivals, queue, replicas, and latency against
// the deadline (0: there is none), one above the other, as SVG.
func Timeline(w io.Writer, title string, run []Moment, deadline float64) error {
	series := func(value func(m *Moment) float64) plotter.XYs {
		var xy plotter.XYs
		for i := range run {
			if y := value(&run[i]); !math.IsNaN(y) && !math.IsInf(y, 0) {
				xy = append(xy, plotter.XY{X: run[i].At, Y: y})
			}
		}
		return xy
	}
	type line struct {
		name  string
		of    plotter.XYs
		c     color.Color
		steps bool
	}
	panels := []struct {
		label string
		lines []line
	}{
		{"arrivals/s", []line{{"", series(func(m *Moment) float64 { return m.Arrivals }), blue, true}}},
		{"waiting", []line{{"", series(func(m *Moment) float64 { return m.Waiting }), orange, true}}},
		{"replicas", []line{
			{"wanted", series(func(m *Moment) float64 { return m.Wanted }), grey, true},
			{"ready", series(func(m *Moment) float64 { return m.Ready }), green, true}}},
		{"p95 sojourn s", []line{{"", series(func(m *Moment) float64 { return m.P95 }), red, false}}},
	}
	plots := make([][]*plot.Plot, len(panels))
	for i, panel := range panels {
		p := plot.New()
		p.Y.Label.Text, p.Y.Min = panel.label, 0
		for _, l := range panel.lines {
			if len(l.of) == 0 {
				continue
			}
			drawn, err := plotter.NewLine(l.of)
			if err != nil {
				return fmt.Errorf("report: %s: %w", panel.label, err)
			}
			drawn.Color = l.c
			if l.steps {
				drawn.StepStyle = plotter.PostStep
			}
			p.Add(drawn)
			if l.name != "" {
				p.Legend.Add(l.name, drawn)
				p.Legend.Top = true
			}
		}
		plots[i] = []*plot.Plot{p}
	}
	plots[0][0].Title.Text = title
	last := plots[len(plots)-1][0]
	last.X.Label.Text = "s"
	if deadline > 0 && len(run) > 0 {
		due, err := plotter.NewLine(plotter.XYs{{X: run[0].At, Y: deadline}, {X: run[len(run)-1].At, Y: deadline}})
		if err != nil {
			return err
		}
		due.Color, due.Dashes = grey, []vg.Length{vg.Points(3), vg.Points(3)}
		last.Add(due)
		last.Legend.Add("deadline", due)
		last.Legend.Top = true
		last.Y.Scale, last.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		positive(last)
	}
	c := vgsvg.New(20*vg.Centimeter, 16*vg.Centimeter)
	for i, row := range plot.Align(plots, draw.Tiles{Rows: len(plots), Cols: 1, PadY: vg.Points(4), PadRight: vg.Points(8)}, draw.New(c)) {
		plots[i][0].Draw(row[0])
	}
	_, err := c.WriteTo(w)
	return err
}

// positive keeps an axis fit for logarithms.
func positive(p *plot.Plot) {
	if !(p.Y.Min > 0) {
		p.Y.Min = 1e-3
	}
	if !(p.Y.Max > p.Y.Min) {
		p.Y.Max = 10 * p.Y.Min
	}
}

// Pareto draws lateness against mean workers of the entries of one scenario, as SVG:
// better is down and to the left. A front is drawn as a line.
func Pareto(w io.Writer, title string, entries []evaluate.Entry, fronts map[string]evaluate.Front) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "late %", "mean workers"
	var target float64
	for i := range entries {
		e := &entries[i]
		target = 100 * (1 - e.Scenario.Farm.Target)
		late, workers := 100*(1-e.Mean(evaluate.OnTime)), e.Mean(evaluate.MeanWorkers)
		if math.IsNaN(late) {
			continue
		}
		dot, err := plotter.NewScatter(plotter.XYs{{X: shown(late), Y: workers}})
		if err != nil {
			return err
		}
		dot.Radius = vg.Points(3)
		dot.Color, dot.Shape = style(e.Contender.Origin)
		name, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: shown(late), Y: workers}}, Labels: []string{e.Contender.Name}})
		if err != nil {
			return err
		}
		name.Offset = vg.Point{X: vg.Points(4), Y: vg.Points(2)}
		name.TextStyle[0].Font.Size = vg.Points(8)
		p.Add(dot, name)
	}
	for name, front := range fronts {
		var xy plotter.XYs
		for _, e := range front {
			xy = append(xy, plotter.XY{X: shown(100 * (1 - e.Mean(evaluate.OnTime))), Y: e.Mean(evaluate.MeanWorkers)})
		}
		line, err := plotter.NewLine(xy)
		if err != nil {
			return err
		}
		line.Color = grey
		p.Add(line)
		p.Legend.Add(name, line)
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Min, p.X.Max = max(least, min(p.X.Min, target/2)), max(p.X.Max*1.5, 2*target)
	p.Y.Min = 0
	limit, err := plotter.NewLine(plotter.XYs{{X: max(least, target), Y: p.Y.Min}, {X: max(least, target), Y: p.Y.Max}})
	if err != nil {
		return err
	}
	limit.Color, limit.Dashes = red, []vg.Length{vg.Points(3), vg.Points(3)}
	p.Add(limit)
	p.Legend.Add("target", limit)
	p.Legend.Top = true
	c := vgsvg.New(18*vg.Centimeter, 12*vg.Centimeter)
	p.Draw(draw.New(c))
	_, err = c.WriteTo(w)
	return err
}

// least lateness that a logarithmic axis shows, in percent.
const least = 0.01

func shown(late float64) float64 { return max(late, least) }

// style tells calibrated from default parameters and from bounds.
func style(o evaluate.Origin) (color.Color, draw.GlyphDrawer) {
	switch o {
	case evaluate.Bound:
		return green, draw.PyramidGlyph{}
	case evaluate.Default:
		return grey, draw.RingGlyph{}
	}
	return blue, draw.CircleGlyph{}
}
