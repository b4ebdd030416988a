package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Read reads a scenario file; docs/scenarios.md describes it. An error names file
// and line, and what is allowed.
func Read(file string, o Options) (*Scenario, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(text, file, o)
}

// Parse reads the text of a scenario file. Files named in it are relative to the
// file's folder.
func Parse(text []byte, file string, o Options) (*Scenario, error) {
	src := &source{name: file, folder: filepath.Dir(file), options: o}
	node, err := src.parse(text)
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	f := src.fields(node, "the scenario")
	s := &Scenario{Name: f.text("name", base), Doc: f.text("doc", ""), Horizon: f.seconds("horizon", required, positive)}
	if v, ok := f.need("arrivals"); ok {
		s.Arrivals, err = choose(src, v.node, "arrivals", processes)
		f.keep(err)
	}
	if v, ok := f.need("service"); ok {
		s.Service, err = src.service(v, s.Arrivals)
		f.keep(err)
		if err == nil && s.Service != nil && !(s.Service.Mean() > 0) {
			f.keep(src.wrong(v.line, "service: the mean is %g: want above 0", s.Service.Mean()))
		}
	}
	if v, ok := f.need("farm"); ok {
		s.Farm, err = readFarm(src.fields(v.node, "farm"))
		f.keep(err)
	}
	s.Platform = DefaultPlatform()
	if v, ok := f.get("platform"); ok {
		s.Platform, err = readPlatform(src.fields(v.node, "platform"))
		f.keep(err)
	}
	return s, f.done()
}

// service reads the law of service times, which a trace may have recorded.
func (s *source) service(v field, a Arrivals) (Law, error) {
	recorded := kind[Law]{"recorded", func(f *fields) Law {
		cv, mean := f.number("cv", 0, atLeast0), f.seconds("mean", 0, atLeast0)
		if f.err != nil || a == nil {
			return nil
		}
		l, err := NewRecorded(a, cv, mean)
		if err != nil {
			f.fail(f.line, "%w", err)
			return nil
		}
		return l
	}}
	return s.law(v, "service", recorded)
}

func readFarm(f *fields) (Farm, error) {
	d := DefaultFarm()
	s := Farm{
		Interval: f.seconds("interval", d.Interval, positive),
		Target:   f.number("target", d.Target, share), Timeout: f.seconds("timeout", d.Timeout, positive),
		Prior: f.seconds("prior", 0, atLeast0), Slots: f.integer("slots", float64(d.Slots), 1),
		Min: f.integer("min", float64(d.Min), 0), Max: f.integer("max", float64(d.Max), 1),
		Attempts: f.integer("attempts", float64(d.Attempts), 1), Failing: f.number("failing", 0, share), FIFO: f.flag("fifo", false),
	}
	s.Start = f.integer("start", float64(s.Min), 0)
	switch due, factor := f.has("deadline"), f.has("deadline_factor"); {
	case due == factor:
		f.fail(f.line, "want deadline (0 = none) or deadline_factor, of a task's own service time")
	case due:
		s.Deadline = f.seconds("deadline", required, atLeast0)
	default:
		s.DeadlineFactor = f.number("deadline_factor", required, positive)
	}
	if s.Min > s.Max || s.Start > s.Max {
		f.fail(f.line, "min %d, start %d, max %d: want none above max", s.Min, s.Start, s.Max)
	}
	return s, f.done()
}

func readPlatform(f *fields) (Platform, error) {
	d := DefaultPlatform()
	p := Platform{
		Startup: f.maybeLaw("startup", d.Startup), Call: f.maybeLaw("call", d.Call), Seen: f.seen(d.Seen),
		Stop: f.maybeLaw("stop", d.Stop), Answer: f.answer(d.Answer),
		Overhead: f.seconds("overhead", 0, atLeast0), Blocking: f.flag("blocking", false),
		Cap: f.integer("cap", 0, 0), Crashes: f.number("crashes", 0, atLeast0),
	}
	p.Victim = Victim(f.text("victim", string(IdleFirst), string(IdleFirst), string(RandomVictim)))
	p.Balance = Balance(f.text("balance", string(LeastBusy), string(LeastBusy), string(RandomReplica)))
	return p, f.done()
}

// YAML writes the scenario as a file that Parse reads back.
func (s *Scenario) YAML() []byte {
	var b strings.Builder
	put := func(indent, name string, v any) {
		if l, isLaw := v.(Law); v == nil || isLaw && l == nil {
			v = "null"
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, name, value(v))
	}
	put("", "name", quote(s.Name))
	put("", "doc", quote(s.Doc))
	put("", "horizon", s.Horizon)
	put("", "arrivals", s.Arrivals)
	put("", "service", s.Service)
	f := s.Farm
	b.WriteString("farm:\n")
	put("  ", "interval", f.Interval)
	if f.DeadlineFactor > 0 {
		put("  ", "deadline_factor", f.DeadlineFactor)
	} else {
		put("  ", "deadline", f.Deadline)
	}
	put("  ", "target", f.Target)
	put("  ", "timeout", f.Timeout)
	put("  ", "prior", f.Prior)
	put("  ", "slots", f.Slots)
	put("  ", "min", f.Min)
	put("  ", "max", f.Max)
	put("  ", "start", f.Start)
	put("  ", "attempts", f.Attempts)
	put("  ", "failing", f.Failing)
	put("  ", "fifo", f.FIFO)
	p := s.Platform
	b.WriteString("platform:\n")
	put("  ", "startup", p.Startup)
	put("  ", "call", p.Call)
	put("  ", "seen", p.Seen)
	put("  ", "stop", p.Stop)
	put("  ", "answer", p.Answer)
	put("  ", "overhead", p.Overhead)
	put("  ", "blocking", p.Blocking)
	put("  ", "cap", p.Cap)
	put("  ", "victim", string(p.Victim))
	put("  ", "balance", string(p.Balance))
	put("  ", "crashes", p.Crashes)
	return []byte(b.String())
}

// ParseLaw reads a law as it stands in a scenario file, or a constant time.
func ParseLaw(text string, o Options) (Law, error) {
	src := &source{name: "law " + strconv.Quote(text), folder: ".", options: o}
	node, err := src.parse([]byte(text))
	if err != nil {
		return nil, err
	}
	return src.law(field{line: 1, node: node}, "law")
}

// quote writes a text for YAML.
func quote(s string) string { return strconv.Quote(s) }

// path of a file named in a scenario file.
func (s *source) path(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(s.folder, file)
}

// quantiles reads durations/NAME.csv from the folder of traces.
func (s *source) quantiles(name string) (*Quantiles, error) {
	file, err := s.options.file("durations/" + name)
	if err != nil {
		return nil, err
	}
	return ReadQuantiles(file)
}
