package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"farmhand/internal/problem"
)

// Limits of a task. Within them every figure stays finite.
const (
	maxPaths     = 50_000_000 // about one second
	defaultPaths = 100_000
)

// Task is one option to price.
type Task struct {
	Option
	Paths int
	Seed  uint64
}

// ParseTask reads a task. It is stricter than encoding/json: no field twice, no
// unknown one, no other spelling of its name, no null, nothing after the object.
func ParseTask(body []byte) (Task, error) {
	t := Task{Paths: defaultPaths}
	fields := []struct {
		name string
		to   any
		need bool
	}{
		{"spot", &t.Spot, true}, {"strike", &t.Strike, true}, {"rate", &t.Rate, true},
		{"volatility", &t.Volatility, true}, {"maturity", &t.Maturity, true}, {"kind", &t.Kind, true},
		{"paths", &t.Paths, false}, {"seed", &t.Seed, false},
	}
	raw, err := object(body)
	if err != nil {
		return t, err
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
		v, ok := raw[f.name]
		switch {
		case !ok && f.need:
			return t, bad(f.name, "the task does not have this field", "add it")
		case !ok:
		case string(v) == "null" || json.Unmarshal(v, f.to) != nil:
			return t, bad(f.name, fmt.Sprintf("%.40s is not a value for it", v), "give "+kindOf(f.to))
		}
		delete(raw, f.name)
	}
	for name := range raw {
		return t, bad(name, "no such field", "use only "+strings.Join(names, ", "))
	}
	return t, t.validate()
}

func kindOf(to any) string {
	switch to.(type) {
	case *float64:
		return "a finite number"
	case *Kind:
		return `"call" or "put"`
	default:
		return "a whole number from 0 up"
	}
}

// validate names the first field out of its range.
func (t Task) validate() error {
	for _, f := range []struct {
		name     string
		v        float64
		min, max float64
	}{
		{"spot", t.Spot, 1e-6, 1e9},
		{"strike", t.Strike, 1e-6, 1e9},
		{"rate", t.Rate, -1, 1},
		{"volatility", t.Volatility, 1e-4, 3},
		{"maturity", t.Maturity, 1e-4, 50},
		{"paths", float64(t.Paths), 1, maxPaths},
	} {
		if !(f.v >= f.min && f.v <= f.max) { // so that NaN is refused too
			return bad(f.name, fmt.Sprintf("%v is out of range", f.v), fmt.Sprintf("give a number from %v to %v", f.min, f.max))
		}
	}
	if !slices.Contains([]Kind{Call, Put}, t.Kind) {
		return bad("kind", fmt.Sprintf("%.40q is no kind of option", t.Kind), kindOf(&t.Kind))
	}
	return nil
}

// object splits a JSON object into its fields.
func object(body []byte) (map[string]json.RawMessage, error) {
	syntax := func(err error) error {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return problem.New(http.StatusBadRequest, "bad-json", fmt.Sprintf("the body is not one JSON object: %v", err))
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if open, err := dec.Token(); err != nil {
		return nil, syntax(err)
	} else if open != json.Delim('{') {
		return nil, syntax(fmt.Errorf("it begins with %.40v", open))
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, syntax(err)
		}
		name, _ := key.(string) // a key of an object is one
		if _, ok := fields[name]; ok {
			return nil, bad(name, "the field is there twice", "keep one")
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, syntax(err)
		}
		fields[name] = v
	}
	if _, err := dec.Token(); err != nil {
		return nil, syntax(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, syntax(errors.New("something follows it"))
	}
	return fields, nil
}

func bad(field, detail, fix string) error {
	return problem.New(http.StatusUnprocessableEntity, "bad-task", detail).At(fmt.Sprintf("%.80s", field), fix)
}
