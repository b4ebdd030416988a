package jobapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"farmhand/internal/problem"
	"farmhand/skeleton"
)

func sortStrings(s []string) { slices.Sort(s) }

// sink takes decoded tasks one by one.
type sink func(skeleton.NewTask) error

// malformed is a body that is not what its type says.
func malformed(field string, err error) *problem.Problem {
	detail := "the body is not valid"
	var syntax *json.SyntaxError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(field, large.Limit)
	case errors.As(err, &syntax):
		detail = syntax.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		detail = "the body ends too early"
	case err != nil:
		detail = err.Error()
	}
	return problem.New(http.StatusBadRequest, "malformed", detail).At(field, "send a whole and valid body; nothing was accepted")
}

func tooLarge(field string, limit int64) *problem.Problem {
	return problem.New(http.StatusRequestEntityTooLarge, "body-too-large", fmt.Sprintf("it is larger than %d bytes", limit)).
		At(field, "store large input elsewhere and send a reference, or raise farmhand_max_body")
}

// decodeJSON reads {"worker": …, options…, "tasks": [body, …] | "items": [{…}, …]}.
// The options must come before the tasks, since tasks are taken as they come.
func decodeJSON(body io.Reader, o *options, limit int, begin func() error, take sink) error {
	d := json.NewDecoder(body)
	if err := expect(d, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	started := false
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return malformed("body", err)
		}
		name, _ := tok.(string)
		if seen[name] {
			return bad(name, "the key stands twice", "give it once")
		}
		seen[name] = true
		switch {
		case name == "tasks" || name == "items":
			if seen["tasks"] && seen["items"] {
				return bad(name, "both tasks and items are given", "give one of them: tasks are bodies, items describe tasks")
			}
			started = true
			if err := begin(); err != nil {
				return err
			}
			if err := decodeList(d, name, *o, limit, take); err != nil {
				return err
			}
		case setters[name] == nil:
			return bad(name, "there is no such field", "use tasks or items, and "+strings.Join(names(setters), ", "))
		case started:
			return bad(name, "an option stands after the tasks", "put all options before tasks or items: tasks are read as they come")
		default:
			if err := decodeOption(d, name, o); err != nil {
				return err
			}
		}
	}
	if err := expect(d, '}'); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return malformed("body", errors.New("there is more after the document"))
	}
	if !started {
		return begin()
	}
	return nil
}

func expect(d *json.Decoder, delim json.Delim) error {
	tok, err := d.Token()
	if err != nil {
		return malformed("body", err)
	}
	if tok != delim {
		return malformed("body", fmt.Errorf("want %q, found %v", delim.String(), tok))
	}
	return nil
}

// decodeOption reads a scalar and sets it as its text.
func decodeOption(d *json.Decoder, name string, o *options) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return malformed(name, err)
	}
	text, err := scalar(name, raw)
	if err != nil {
		return err
	}
	return setters[name](o, text)
}

func scalar(name string, raw json.RawMessage) (string, error) {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || string(raw) == "null" {
		return "", bad(name, "it must be a string, a number, true or false", "see docs/api.md")
	}
	return string(raw), nil
}

// decodeList reads the array of tasks, element by element.
func decodeList(d *json.Decoder, name string, o options, limit int, take sink) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for i := 0; d.More(); i++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return at(malformed(name, err), i)
		}
		t, err := element(raw, name == "items", o.defaults, limit)
		if err != nil {
			return at(err, i)
		}
		if err := take(t); err != nil {
			return at(err, i)
		}
	}
	return expect(d, ']')
}

// at adds which task a problem is about.
func at(err error, index int) error {
	var p *problem.Problem
	if errors.As(err, &p) && p.Index == nil {
		p.Index = &index
	}
	return err
}

// element makes a task of one JSON value: the body itself, or an item that
// describes the task.
func element(raw json.RawMessage, item bool, t skeleton.NewTask, limit int) (skeleton.NewTask, error) {
	if !item {
		if len(raw) > limit {
			return t, tooLarge("tasks", int64(limit))
		}
		t.Body, t.Type = raw, "application/json"
		return t, nil
	}
	fields, err := object(raw)
	if err != nil {
		return t, err
	}
	for _, f := range fields {
		if err := setField(&t, f); err != nil {
			return t, err
		}
	}
	if len(t.Body) > limit {
		return t, tooLarge("body", int64(limit))
	}
	return t, nil
}

// field is a member of a JSON object.
type field struct {
	name  string
	value json.RawMessage
}

// object reads the members of a JSON object and refuses a name that stands twice.
func object(raw json.RawMessage) ([]field, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := expect(d, '{'); err != nil {
		return nil, err
	}
	var fields []field
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return nil, malformed("body", err)
		}
		f := field{name: tok.(string)} // a member's name is always a string
		if slices.ContainsFunc(fields, func(have field) bool { return have.name == f.name }) {
			return nil, bad(f.name, "the key stands twice", "give it once")
		}
		if err := d.Decode(&f.value); err != nil {
			return nil, malformed(f.name, err)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// taskSetters are the fields of an item that are plain text.
var taskSetters = map[string]func(*skeleton.NewTask, string) error{
	"key": setKey, "class": setClass, "tenant": setTenant, "deadline": setDeadline, "due": setDue,
	"timeout": setTimeout, "attempts": setAttempts, "retry": setRetry,
	"type":   func(t *skeleton.NewTask, v string) error { t.Type = v; return nil },
	"stage":  func(t *skeleton.NewTask, v string) error { t.Stage = v; return nil },
	"parent": func(t *skeleton.NewTask, v string) error { t.Parent = v; return nil },
}

func setField(t *skeleton.NewTask, f field) error {
	switch f.name {
	case "body":
		t.Body = f.value
		if t.Type == "" {
			t.Type = "application/json"
		}
		return nil
	case "body_base64":
		text, err := scalar(f.name, f.value)
		if err != nil {
			return err
		}
		if t.Body, err = base64.StdEncoding.DecodeString(text); err != nil {
			return bad("body_base64", err.Error(), "standard base64 with padding")
		}
		return nil
	}
	set, ok := taskSetters[f.name]
	if !ok {
		return bad(f.name, "a task has no such field", "use body or body_base64, and "+strings.Join(names(taskSetters), ", "))
	}
	text, err := scalar(f.name, f.value)
	if err != nil {
		return err
	}
	switch f.name { // what the task says wins over the submission's default
	case "deadline":
		t.Due = skeleton.NewTask{}.Due
	case "due":
		t.Deadline = 0
	}
	return set(t, text)
}
