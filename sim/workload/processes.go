package workload

import (
	"math"
)

var processes = []kind[Arrivals]{
	{"poisson", func(f *fields) Arrivals { return Poisson{f.number("rate", required, perSec)} }},
	{"levels", readLevels},
	{"markov", readMarkov},
	{"onoff", func(f *fields) Arrivals {
		return OnOff(f.number("rate", required, perSec), f.stay("on"), f.stay("off"))
	}},
	{"sinusoid", readSinusoid},
	{"diurnal", func(f *fields) Arrivals {
		return Cycle{Rates: f.numbers("rates", 2, perSec), Period: f.seconds("period", 86400, positive)}
	}},
	{"ramp", func(f *fields) Arrivals {
		return Ramp(f.number("low", required, perSec), f.number("high", required, perSec), f.seconds("period", required, positive))
	}},
	{"flash", readFlash},
	{"walk", readWalk},
	{"selfsimilar", readSelfSimilar},
	{"phases", readPhases},
	{"instants", func(f *fields) Arrivals {
		p := &Instants{At: f.numbers("at", 1, atLeast0), Speed: f.number("speed", 1, positive)}
		for i := 1; i < len(p.At); i++ {
			if p.At[i] < p.At[i-1] {
				f.fail(f.line, "at: %g after %g: want instants in order", p.At[i], p.At[i-1])
			}
		}
		return p
	}},
	{"trace", readReplay},
}

// stay asks for the law of how long a level lasts; its mean must be above 0.
func (f *fields) stay(name string) Law {
	l := f.law(name, nil)
	if l != nil && !(l.Mean() > 0) {
		f.fail(f.values[name].line, "%s: the mean is %g: want above 0", name, l.Mean())
	}
	return l
}

// each reads the items of a list, which are mappings.
func (f *fields) each(name string, least int, read func(g *fields)) {
	for _, node := range f.list(name, least) {
		g := f.file.fields(node, f.what+": "+name)
		read(g)
		f.keep(g.done())
	}
}

func readLevels(f *fields) Arrivals {
	var p Levels
	f.each("of", 1, func(g *fields) {
		p.Levels = append(p.Levels, Level{Rate: g.number("rate", required, perSec), For: g.stay("for")})
	})
	p.Next = f.matrix("next", len(p.Levels))
	return p
}

func readMarkov(f *fields) Arrivals {
	var p Levels
	rates, means := f.numbers("rates", 2, perSec), f.numbers("means", 2, positive)
	if len(rates) != len(means) {
		f.fail(f.line, "%d rates and %d means: want as many", len(rates), len(means))
		return p
	}
	for i := range rates {
		p.Levels = append(p.Levels, Level{rates[i], Exponential{Average: means[i]}})
	}
	p.Next = f.matrix("next", len(rates))
	return p
}

// matrix asks for rows of probabilities, n by n; nil where there is none.
func (f *fields) matrix(name string, n int) [][]float64 {
	v, ok := f.get(name)
	if !ok || f.err != nil {
		return nil
	}
	var rows [][]float64
	for _, node := range f.list(name, 1) {
		row := &fields{file: f.file, what: f.what, line: line(node), values: map[string]field{name: {line(node), node}}}
		rows = append(rows, row.numbers(name, n, share))
		sum := 0.0
		for _, q := range rows[len(rows)-1] {
			sum += q
		}
		if row.err == nil && (len(rows[len(rows)-1]) != n || math.Abs(sum-1) > 1e-9) {
			row.fail(row.line, "%s: a row of %d that sums to %g: want %d probabilities that sum to 1", name, len(rows[len(rows)-1]), sum, n)
		}
		f.keep(row.err)
	}
	if len(rows) != n {
		f.fail(v.line, "%s: %d rows: want %d, one per level", name, len(rows), n)
	}
	return rows
}

func readSinusoid(f *fields) Arrivals {
	p := Sinusoid{
		Mean: f.number("mean", required, perSec), Amplitude: f.number("amplitude", required, perSec),
		Period: f.seconds("period", required, positive), Phase: f.number("phase", 0, anything),
	}
	if p.Amplitude > p.Mean {
		f.fail(f.line, "amplitude %g: want at most the mean, %g: rates are not negative", p.Amplitude, p.Mean)
	}
	return p
}

func readFlash(f *fields) Arrivals {
	p := Flash{Base: f.number("base", required, perSec)}
	f.each("plateaus", 1, func(g *fields) {
		p.Plateaus = append(p.Plateaus, Plateau{
			Rate: g.number("rate", required, positive), Start: g.law("start", nil), For: g.stay("for")})
	})
	return p
}

func readWalk(f *fields) Arrivals {
	p := Walk{
		Min: f.number("min", required, perSec), Max: f.number("max", required, perSec), Start: f.number("start", required, perSec),
		Step: f.number("step", required, atLeast0), Every: f.seconds("every", required, positive),
	}
	if p.Min > p.Max || p.Start < p.Min || p.Start > p.Max {
		f.fail(f.line, "start %g between min %g and max %g: want min ≤ start ≤ max", p.Start, p.Min, p.Max)
	}
	return p
}

func readSelfSimilar(f *fields) Arrivals {
	hurst := bounds{"a number above 0.5 and below 1", func(x float64) bool { return x > 0.5 && x < 1 }}
	return SelfSimilar{
		Mean: f.number("mean", required, perSec), Sources: f.integer("sources", 50, 1), Hurst: f.number("hurst", required, hurst),
		On: f.seconds("on", required, positive), Off: f.seconds("off", required, positive),
	}
}

func readPhases(f *fields) Arrivals {
	p := Phases{
		Window: f.seconds("window", 1, positive), Flat: f.flag("flat", false),
		Compressed: f.flag("compressed", false), Shuffled: f.flag("shuffled", false),
	}
	f.each("of", 1, func(g *fields) {
		p.Phases = append(p.Phases, Phase{
			Tasks: g.integer("tasks", required, 0), Seconds: g.seconds("seconds", required, positive),
			Amplitude: g.number("amplitude", 0, share), Cycles: g.number("cycles", 0, atLeast0)})
	})
	return p
}

func readReplay(f *fields) Arrivals {
	var t *Trace
	var err error
	switch file, name := f.text("file", ""), f.text("name", ""); {
	case (file == "") == (name == ""):
		f.fail(f.line, "want file: FILE.csv, or name: NAME from the folder of traces")
	case file != "":
		t, err = ReadTrace(f.file.path(file))
		if err == nil {
			t.value = quote(file)
		}
	default:
		t, err = f.file.options.Trace(name)
	}
	if err != nil {
		f.fail(f.line, "%w", err)
	}
	o := ReplayOptions{
		From: f.integer("from", 0, 0), Bins: f.integer("bins", 0, 0), Bin: f.seconds("bin", 0, atLeast0),
		Scale: f.number("scale", 0, atLeast0), Mean: f.number("mean", 0, perSec),
	}
	o.Even = f.text("spacing", "poisson", "poisson", "even") == "even"
	speed := f.number("speed", 0, atLeast0)
	if f.err != nil {
		return nil
	}
	if t.At != nil {
		for _, name := range []string{"from", "bins", "bin", "scale", "mean", "spacing"} {
			if f.has(name) {
				f.fail(f.values[name].line, "%s: %s has a line per task: want speed alone", name, t.Name)
			}
		}
		return &Instants{At: t.At, Speed: speed, trace: t}
	}
	if speed != 0 {
		f.fail(f.values["speed"].line, "speed: %s has counts: want bin, the seconds a bin is played as", t.Name)
	}
	p, err := NewReplay(t, o)
	if err != nil {
		f.fail(f.line, "%w", err)
	}
	return p
}
