package workload

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options of Find.
type Options struct {
	Traces   string  // folder of traces; empty: FARMHAND_TRACES
	Service  Law     // of a CSV file; nil: as it recorded
	Deadline float64 // of a CSV file; 0: it must have none given
	Mean     float64 // tasks per second of trace:NAME over what is played; 0: 200
	Length   float64 // seconds of trace:NAME that are played; 0: two hours
}

// shuffled after the name of a published benchmark plays its phases in any order.
const shuffled = ":shuffled"

// Find returns a scenario: a built-in one by its name, trace:NAME from the folder
// of traces, or that of a YAML or CSV file. One that is too large to be played is
// refused.
func Find(name string, o Options) (*Scenario, error) {
	s, err := find(name, o)
	if err == nil {
		err = s.Fits()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func find(name string, o Options) (*Scenario, error) {
	if i := slices.IndexFunc(builtin, func(s Scenario) bool { return s.Name == strings.TrimSuffix(name, shuffled) }); i >= 0 {
		s := builtin[i]
		if s.Name == name {
			return &s, nil
		}
		if p, ok := s.Arrivals.(Phases); ok {
			p.Shuffled = true
			s.Name, s.Arrivals = name, p
			return &s, nil
		}
	}
	if trace, ok := strings.CutPrefix(name, "trace:"); ok {
		return traceScenario(trace, o)
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return Read(name, o)
	case ".csv":
		return fileScenario(name, o)
	}
	return nil, fmt.Errorf("no scenario %q: want one of %s, trace:NAME, or a .yaml or .csv file", name, strings.Join(Names(), ", "))
}

// Names lists the built-in scenarios.
func Names() []string {
	var names []string
	for _, s := range builtin {
		names = append(names, s.Name)
	}
	return names
}

// How a trace of the folder is played, which is fixed as the built-in scenarios.
const (
	traceHorizon = 7200.0 // s
	traceBin     = 5.0    // s
	traceMean    = 200.0  // tasks per second
	traceMax     = 256
)

// traceScenario plays a trace of the folder: its first bins, as 5 s each, scaled
// to a mean of 200/s unless Options say otherwise.
func traceScenario(name string, o Options) (*Scenario, error) {
	t, err := o.Trace(name)
	if err != nil {
		return nil, err
	}
	if t.Counts == nil {
		return nil, fmt.Errorf("trace %s has a line per task: want counts per bin", name)
	}
	mean, length := traceMean, traceHorizon
	if o.Mean > 0 {
		mean = o.Mean
	}
	if o.Length > 0 {
		length = o.Length
	}
	bins := min(len(t.Counts), int(math.Ceil(length/traceBin)))
	p, err := NewReplay(t, ReplayOptions{Bins: bins, Bin: traceBin, Mean: mean})
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", name, err)
	}
	s := usual("trace:"+name, fmt.Sprintf("recorded counts at %g/s in the mean, bins as 5 s", mean), p)
	s.Horizon, s.Farm.Max = p.Length(), traceMax
	return &s, nil
}

// fileScenario plays somebody's own trace as it was recorded.
func fileScenario(file string, o Options) (*Scenario, error) {
	t, err := ReadTrace(file)
	if err != nil {
		return nil, err
	}
	if !(o.Deadline > 0) {
		return nil, fmt.Errorf("%s says no deadline: want one with --deadline, or a scenario file (docs/scenarios.md)", file)
	}
	s := usual(t.Name, "as recorded in "+filepath.Base(file), nil)
	if o.Service != nil && t.service() > 0 {
		return nil, fmt.Errorf("%s says how long its tasks take: want no --service, or a file without that column", file)
	}
	s.Farm.Deadline = o.Deadline
	if t.At != nil {
		p := &Instants{At: t.At, trace: t}
		s.Arrivals, s.Horizon = p, p.Length()+o.Deadline
	} else {
		p, err := NewReplay(t, ReplayOptions{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		s.Arrivals, s.Horizon = p, p.Length()
	}
	if s.Service = o.Service; s.Service == nil {
		l, err := NewRecorded(s.Arrivals, 0, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: with --service, or in a scenario file (docs/scenarios.md)", file, err)
		}
		s.Service = l
	}
	return &s, nil
}

var errNoTraces = errors.New("the folder of traces is not known: name it with --traces or FARMHAND_TRACES")

// Folder of the traces.
func (o Options) Folder() (string, error) {
	folder := o.Traces
	if folder == "" {
		folder = os.Getenv("FARMHAND_TRACES")
	}
	if folder == "" {
		return "", errNoTraces
	}
	return folder, nil
}

// List the names of the traces in the folder.
func (o Options) List() ([]string, error) {
	folder, err := o.Folder()
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".csv"); ok && !f.IsDir() {
			names = append(names, name)
		}
	}
	return names, nil
}

// Trace reads a trace: one of the folder by its name, or a .csv file.
func (o Options) Trace(name string) (*Trace, error) {
	if strings.EqualFold(filepath.Ext(name), ".csv") {
		return ReadTrace(name)
	}
	file, err := o.file(name)
	if err != nil {
		return nil, err
	}
	t, err := ReadTrace(file)
	if errors.Is(err, os.ErrNotExist) {
		names, err := o.List()
		if err != nil {
			return nil, fmt.Errorf("no trace %q: %w: want the folder of traces", name, err)
		}
		return nil, fmt.Errorf("no trace %q in %s: want one of %s", name, filepath.Dir(file), strings.Join(names, ", "))
	}
	if err != nil {
		return nil, err
	}
	t.key, t.value = "name", name
	return t, nil
}

// file of a name in the folder of traces.
func (o Options) file(name string) (string, error) {
	folder, err := o.Folder()
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%q is no name of a trace: want a file's name without .csv", name)
	}
	return filepath.Join(folder, name+".csv"), nil
}
