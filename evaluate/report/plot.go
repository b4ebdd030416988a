package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

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
	violet = color.RGBA{204, 121, 167, 255}
	sky    = color.RGBA{86, 180, 233, 255}
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
		p.Y.Label.Text = panel.label
		if i < len(panels)-1 {
			p.Y.Min = 0
		}
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
		last.Y.Scale, last.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(ticks)
		positive(last)
	}
	c := vgsvg.New(20*vg.Centimeter, 16*vg.Centimeter)
	for i, row := range plot.Align(plots, draw.Tiles{Rows: len(plots), Cols: 1, PadY: vg.Points(4), PadRight: vg.Points(8)}, draw.New(c)) {
		plots[i][0].Draw(row[0])
	}
	_, err := c.WriteTo(w)
	return err
}

// ticks of a logarithmic axis: 1, 2 and 5 times the powers of ten.
func ticks(lo, hi float64) (list []plot.Tick) {
	for decade := math.Pow(10, math.Floor(math.Log10(lo))); decade <= hi; decade *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if x := m * decade; lo <= x && x <= hi {
				list = append(list, plot.Tick{Value: x, Label: strconv.FormatFloat(x, 'g', 3, 64)})
			}
		}
	}
	return list
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

// wide is how many times what the target allows may be late to be drawn, and narrow
// the part of it below which all are drawn alike.
const (
	wide   = 12
	narrow = 0.02
)

// Pareto draws lateness against mean workers of the entries of one scenario, as SVG:
// better is down and to the left. Those that are much too late are left out. A front is
// drawn as a line.
func Pareto(w io.Writer, title string, entries []evaluate.Entry, fronts map[string]evaluate.Front) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "late %", "mean workers"
	if len(entries) == 0 {
		return fmt.Errorf("report: %s: there is nothing to draw", title)
	}
	allowed := 100 * max(1-entries[0].Scenario.Farm.Target, 1e-4)
	place := func(e *evaluate.Entry) (xy plotter.XY, ok bool) {
		late := 100 * (1 - e.Mean(evaluate.OnTime))
		return plotter.XY{X: max(late, narrow*allowed), Y: e.Mean(evaluate.MeanWorkers)}, late <= wide*allowed // no, where it is unknown
	}
	var names labels
	for i := range entries {
		xy, ok := place(&entries[i])
		if !ok {
			continue
		}
		dot, err := plotter.NewScatter(plotter.XYs{xy})
		if err != nil {
			return err
		}
		dot.Radius = vg.Points(3)
		dot.Color, dot.Shape = style(entries[i].Contender.Origin)
		p.Add(dot)
		names.add(xy, entries[i].Contender.Name)
	}
	if err := names.draw(p); err != nil {
		return err
	}
	for name, front := range fronts {
		var xys plotter.XYs
		for i := range front {
			if xy, ok := place(&front[i]); ok {
				xys = append(xys, xy)
			}
		}
		if err := line(p, name, xys, grey, false); err != nil {
			return err
		}
	}
	p.X.Min, p.X.Max = min(p.X.Min, allowed/4)/1.3, max(p.X.Max*2, 2*allowed)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(ticks)
	p.Y.Min /= 1.2
	if p.Y.Max > 4*p.Y.Min {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(ticks)
		positive(p)
	}
	if err := line(p, "target", plotter.XYs{{X: allowed, Y: p.Y.Min}, {X: allowed, Y: p.Y.Max}}, red, true); err != nil {
		return err
	}
	p.Legend.Top, p.Legend.Left = true, true
	c := vgsvg.New(18*vg.Centimeter, 12*vg.Centimeter)
	p.Draw(draw.Crop(draw.New(c), 0, -vg.Points(10), 0, 0))
	_, err := c.WriteTo(w)
	return err
}

// line adds a line with its name, where it has points.
func line(p *plot.Plot, name string, xys plotter.XYs, c color.Color, dashed bool) error {
	if len(xys) == 0 {
		return nil
	}
	l, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	l.Color = c
	if dashed {
		l.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
	}
	p.Add(l)
	p.Legend.Add(name, l)
	return nil
}

// labels name points; those that lie together have one label.
type labels struct {
	at   plotter.XYs
	text []string
	more []int
}

func (l *labels) add(xy plotter.XY, name string) {
	for i, o := range l.at {
		if math.Abs(math.Log(o.X/xy.X)) < 0.2 && math.Abs(math.Log(o.Y/xy.Y)) < 0.05 {
			if l.text[i] != name {
				l.more[i]++
			}
			return
		}
	}
	l.at, l.text, l.more = append(l.at, xy), append(l.text, name), append(l.more, 0)
}

func (l *labels) draw(p *plot.Plot) error {
	if len(l.at) == 0 {
		return nil
	}
	for i, n := range l.more {
		if n > 0 {
			l.text[i] = fmt.Sprintf("%s and %d more", l.text[i], n)
		}
	}
	drawn, err := plotter.NewLabels(plotter.XYLabels{XYs: l.at, Labels: l.text})
	if err != nil {
		return err
	}
	drawn.Offset = vg.Point{X: vg.Points(5), Y: vg.Points(2)}
	for i := range drawn.TextStyle {
		drawn.TextStyle[i].Font.Size = vg.Points(8)
	}
	p.Add(drawn)
	return nil
}

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
