package workload

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Trace is what was recorded of a real load: counts per bin, or the instant of
// each task. Times begin at 0 with the first.
type Trace struct {
	Name string // of its file, without .csv

	key, value string // how a scenario file names it

	// Counts are the arrivals of each bin of Width seconds, Service the mean
	// service times of them (0: none recorded; nil: no such column).
	Width           float64
	Counts, Service []float64

	// At are the arrivals of single tasks, Durations their service times (nil: no
	// such column). A trace has either bins or tasks.
	At, Durations []float64
}

const traceShapes = `want a header "seconds_since_start,arrivals[,mean_service_s]" and a line per bin, or "time[,duration]" and a line per task`

// ReadTrace reads a CSV file in one of two shapes, told by the header:
//
//	seconds_since_start,arrivals[,mean_service_s]   a line per bin of constant width
//	time[,duration]                                 a line per task, in order
//
// All numbers are seconds but for the counts. Lines that begin with # are left
// out. An error names file and line, and what is allowed.
func ReadTrace(file string) (*Trace, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	t, err := parseTrace(f)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	t.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	t.key, t.value = "file", strconv.Quote(file)
	return t, nil
}

// flow writes the trace and how it is played as a scenario file has it.
func (t *Trace) flow(fields ...any) string {
	return flow("trace", append([]any{t.key, t.value}, fields...)...)
}

func parseTrace(r io.Reader) (*Trace, error) {
	rows, err := newTable(r)
	if err != nil {
		return nil, err
	}
	switch header := strings.Join(rows.header, ","); header {
	case "seconds_since_start,arrivals", "seconds_since_start,arrivals,mean_service_s":
		return readBins(rows)
	case "time", "time,duration":
		return readTasks(rows)
	default:
		return nil, rows.wrong("columns %q: %s", header, traceShapes)
	}
}

func readBins(rows *table) (*Trace, error) {
	t := &Trace{}
	var first, last float64
	for {
		x, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		n := len(t.Counts)
		switch {
		case n == 0:
			first = x[0]
		case n == 1:
			t.Width = x[0] - first
			if t.Width <= 0 {
				return nil, rows.wrong("seconds_since_start %g after %g: want times that rise", x[0], last)
			}
		case math.Abs(x[0]-first-float64(n)*t.Width) > 1e-6*t.Width:
			return nil, rows.wrong("seconds_since_start %g after %g: want %g, as all bins are %g s wide", x[0], last, first+float64(n)*t.Width, t.Width)
		}
		last = x[0]
		t.Counts = append(t.Counts, x[1])
		if len(x) > 2 {
			t.Service = append(t.Service, x[2])
		}
	}
	if len(t.Counts) < 2 {
		return nil, rows.wrong("%d bins: want two or more, the width of a bin is the time between them", len(t.Counts))
	}
	if slices.Max(t.Counts) == 0 {
		return nil, rows.wrong("no arrivals in any bin: want a count above 0")
	}
	return t, nil
}

func readTasks(rows *table) (*Trace, error) {
	t := &Trace{}
	var first, last float64
	for {
		x, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(t.At) == 0 {
			first, last = x[0], x[0]
		}
		if x[0] < last {
			return nil, rows.wrong("time %g after %g: want tasks in the order of their times", x[0], last)
		}
		last = x[0]
		t.At = append(t.At, x[0]-first)
		if len(x) > 1 {
			if x[1] == 0 {
				return nil, rows.wrong("duration 0: want seconds above 0")
			}
			t.Durations = append(t.Durations, x[1])
		}
	}
	if len(t.At) == 0 {
		return nil, rows.wrong("no tasks: want a line for each")
	}
	return t, nil
}

// ReadQuantiles reads a table of quantiles: a header "quantile,NAME", then levels
// from 0 to 1 with their values.
func ReadQuantiles(file string) (*Quantiles, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	rows, err := newTable(f)
	if err == nil && (len(rows.header) != 2 || rows.header[0] != "quantile") {
		err = rows.wrong(`columns %q: want "quantile,NAME" and a line per level from 0 to 1`, strings.Join(rows.header, ","))
	}
	var at, values []float64
	for err == nil {
		var x []float64
		if x, err = rows.next(); err == nil {
			at, values = append(at, x[0]), append(values, x[1])
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	l, err := NewQuantiles(at, values)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return l, nil
}

// table reads the rows of a CSV file as numbers. Its errors begin with the line.
type table struct {
	csv    *csv.Reader
	header []string
	line   int
	row    []float64
}

func newTable(r io.Reader) (*table, error) {
	in := bufio.NewReader(r)
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = in.Discard(3) // what Excel writes first
	}
	t := &table{csv: csv.NewReader(in), line: 1}
	t.csv.Comment, t.csv.ReuseRecord, t.csv.TrimLeadingSpace = '#', true, true
	header, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, t.wrong("the file is empty: %s", traceShapes)
	}
	if err != nil {
		return nil, t.csvError(err)
	}
	for _, name := range header {
		t.header = append(t.header, strings.TrimSpace(name))
	}
	return t, nil
}

// next reads a row into memory that is used again; io.EOF after the last.
func (t *table) next() ([]float64, error) {
	record, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, t.csvError(err)
	}
	t.line, _ = t.csv.FieldPos(0)
	t.row = t.row[:0]
	for i, text := range record {
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err == nil {
			err = isNumber(x)
		}
		if err != nil {
			return nil, t.wrong("%s %q: want a number, 0 or more", t.header[i], text)
		}
		t.row = append(t.row, x)
	}
	return t.row, nil
}

func (t *table) wrong(format string, args ...any) error {
	return fmt.Errorf("%d: "+format, append([]any{t.line}, args...)...)
}

func (t *table) csvError(err error) error {
	var bad *csv.ParseError
	if !errors.As(err, &bad) {
		return fmt.Errorf(" %w", err)
	}
	t.line = bad.Line
	if errors.Is(bad.Err, csv.ErrFieldCount) {
		return t.wrong("not as many columns as the header has: want %s", strings.Join(t.header, ","))
	}
	return t.wrong("%v", bad.Err)
}

// isNumber refuses what no time, rate or count can be.
func isNumber(x float64) error {
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return fmt.Errorf("%g: want a number, 0 or more", x)
	}
	return nil
}
