package redissignal

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"farmhand/skeleton/signal"
)

// encode is a tally as the flush script takes it.
func encode(t *signal.Tally) (string, error) {
	if t.Events() == 0 {
		return "", nil
	}
	raw, err := t.AppendBinary(make([]byte, 0, 512))
	return string(raw), err
}

// decode reads the answer of the read script.
func decode(answer []any) (r signal.Reading, err error) {
	if len(answer) == 0 {
		return r, fmt.Errorf("the answer is empty")
	}
	if r.Now, err = instant(answer[0]); err != nil {
		return r, err
	}
	r.Seconds = make([]signal.Second, len(answer)-1)
	for i, bucket := range answer[1:] {
		if err := decodeBucket(bucket.([]any), &r.Seconds[i]); err != nil {
			return r, fmt.Errorf("a bucket: %w", err)
		}
	}
	return r, nil
}

// decodeBucket reads a bucket; what several flushes brought is merged.
func decodeBucket(bucket []any, sec *signal.Second) (err error) {
	if sec.Unix, err = strconv.ParseInt(bucket[0].(string), 10, 64); err != nil {
		return err
	}
	tallies := 0
	for _, v := range bucket[1:] {
		value := v.(string)
		if value[0] >= '0' && value[0] <= '9' {
			if err := decodeSnapshot(value, &sec.Snapshot); err != nil {
				return err
			}
			continue
		}
		var t signal.Tally
		if err := t.UnmarshalBinary([]byte(value)); err != nil {
			return err
		}
		if tallies++; tallies == 1 {
			sec.Tally = t
		} else {
			sec.Merge(&t)
		}
	}
	return nil
}

// decodeSnapshot reads counters as scripts/flush.lua writes them.
func decodeSnapshot(value string, s *signal.Snapshot) (err error) {
	first, rest, _ := strings.Cut(value, ",")
	if s.At, err = instant(first); err != nil {
		return err
	}
	for _, field := range []*int{&s.Submitted, &s.Waiting, &s.Leased, &s.Delayed, &s.Done, &s.Dead, &s.Cancelled, &s.Timed, &s.Late, &s.Lapsed} {
		first, rest, _ = strings.Cut(rest, ",")
		if *field, err = strconv.Atoi(first); err != nil {
			return fmt.Errorf("counters: %w", err)
		}
	}
	return nil
}

// instant reads microseconds since 1970.
func instant(v any) (time.Time, error) {
	us, err := strconv.ParseInt(v.(string), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("an instant: %w", err)
	}
	return time.UnixMicro(us).UTC(), nil
}
