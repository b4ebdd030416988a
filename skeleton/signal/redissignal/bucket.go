package redissignal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"farmhand/skeleton/signal"
)

// encode appends to args what the flush script takes: scripts/flush.lua names
// the fields. What is 0 is left out.
func encode(args []any, offset int64, keep int, t *signal.Tally) []any {
	args = append(args, offset, keep)
	count := func(field string, n int) {
		if n != 0 {
			args = append(args, field, n)
		}
	}
	count("s", t.Starts)
	count("y", t.Busy)
	count("f", t.Failed)
	count("l", t.Lost)
	for name, h := range hists(t) {
		for _, b := range h.Bins {
			args = append(args, name+strconv.Itoa(int(b.At)), b.N)
		}
		if h.N > 0 {
			args = append(args, name+"+", h.Sum, name+"*", h.Squares, name+"^", h.Max)
		}
	}
	return args
}

// hists yields the histograms of a tally with their letters.
func hists(t *signal.Tally) func(yield func(string, *signal.Hist) bool) {
	return func(yield func(string, *signal.Hist) bool) {
		_ = yield("w", &t.Wait) && yield("v", &t.Service) && yield("j", &t.Sojourn)
	}
}

// decode reads the answer of the read script.
func decode(answer []string) (r signal.Reading, err error) {
	if len(answer) == 0 {
		return r, fmt.Errorf("the answer is empty")
	}
	now, err := strconv.ParseInt(answer[0], 10, 64)
	if err != nil {
		return r, fmt.Errorf("the time of the answer: %w", err)
	}
	r.Now = time.UnixMicro(now).UTC()
	r.Seconds = make([]signal.Second, len(answer)-1)
	for i, bucket := range answer[1:] {
		if err := decodeBucket(bucket, &r.Seconds[i]); err != nil {
			return r, fmt.Errorf("a bucket: %w", err)
		}
	}
	return r, nil
}

// decodeBucket reads one bucket: second field value …. Fields it does not know
// are of a newer version, and passed over.
func decodeBucket(bucket string, sec *signal.Second) (err error) {
	unix, rest, _ := strings.Cut(bucket, " ")
	if sec.Unix, err = strconv.ParseInt(unix, 10, 64); err != nil {
		return err
	}
	for rest != "" {
		var field, value string
		field, rest, _ = strings.Cut(rest, " ")
		value, rest, _ = strings.Cut(rest, " ")
		if err := decodeField(field, value, sec); err != nil {
			return fmt.Errorf("%s of second %d: %w", field, sec.Unix, err)
		}
	}
	for _, h := range hists(&sec.Tally) {
		slices.SortFunc(h.Bins, func(a, b signal.Bin) int { return cmp.Compare(a.At, b.At) })
	}
	return nil
}

func decodeField(field, value string, sec *signal.Second) (err error) {
	switch field {
	case "n":
		return decodeSnapshot(value, &sec.Snapshot)
	case "s":
		sec.Starts, err = strconv.Atoi(value)
	case "y":
		sec.Busy, err = strconv.Atoi(value)
	case "f":
		sec.Failed, err = strconv.Atoi(value)
	case "l":
		sec.Lost, err = strconv.Atoi(value)
	default:
		if len(field) < 2 {
			return nil
		}
		for name, h := range hists(&sec.Tally) {
			if field[:1] == name {
				return decodeHist(field[1:], value, h)
			}
		}
	}
	return err
}

func decodeHist(part, value string, h *signal.Hist) (err error) {
	switch part {
	case "+":
		h.Sum, err = strconv.ParseFloat(value, 64)
	case "*":
		h.Squares, err = strconv.ParseFloat(value, 64)
	case "^":
		h.Max, err = strconv.ParseFloat(value, 64)
	default:
		at, aerr := strconv.ParseUint(part, 10, 16)
		if aerr != nil || at >= signal.Bins {
			return nil // of another version
		}
		var n uint64
		n, err = strconv.ParseUint(value, 10, 32)
		h.Bins = append(h.Bins, signal.Bin{At: uint16(at), N: uint32(n)})
		h.N += int(n)
	}
	return err
}

func decodeSnapshot(value string, s *signal.Snapshot) error {
	var at int64
	fields := [...]*int{&s.Submitted, &s.Waiting, &s.Leased, &s.Delayed, &s.Done, &s.Dead, &s.Cancelled, &s.Timed, &s.Late, &s.Lapsed}
	first, rest, _ := strings.Cut(value, ",")
	at, err := strconv.ParseInt(first, 10, 64)
	for _, field := range fields {
		if err != nil {
			break
		}
		first, rest, _ = strings.Cut(rest, ",")
		*field, err = strconv.Atoi(first)
	}
	s.At = time.UnixMicro(at).UTC()
	return err
}
