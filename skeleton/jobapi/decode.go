package jobapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"farmhand/internal/problem"
	"farmhand/skeleton"
)

// sink takes decoded tasks one by one.
type sink func(skeleton.NewTask) error

// malformed is a body that is not what its type says, or that did not come.
func malformed(field string, err error) error {
	var known *problem.Problem
	var long overlong
	var syntax *json.SyntaxError
	var silent net.Error
	detail := err.Error()
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &long):
		return tooLarge(field, int(long))
	case errors.As(err, &silent) && silent.Timeout():
		return problem.New(http.StatusRequestTimeout, "too-slow", fmt.Sprintf("the body stopped coming for %s; nothing was accepted", silence)).
			At("body", "send it again")
	case errors.As(err, &syntax):
		detail = syntax.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		detail = "the body ends too early"
	}
	return problem.New(http.StatusBadRequest, "malformed", detail).At(field, "send a whole and valid body; nothing was accepted")
}

func tooLarge(field string, limit int) *problem.Problem {
	return problem.New(http.StatusRequestEntityTooLarge, "body-too-large", fmt.Sprintf("it is larger than %d bytes", limit)).
		At(field, "store large input elsewhere and send a reference, or raise farmhand_max_body")
}

// overlong is the limit that an element exceeds.
type overlong int

// Error implements error.
func (o overlong) Error() string { return fmt.Sprintf("larger than %d bytes", int(o)) }

// slack is what may stand around a body: the other fields of an item, spaces.
const slack = 64 << 10

// document reads a JSON document element by element, and of one element never
// much more than a body may have: encoding/json holds a whole element in memory.
type document struct {
	*json.Decoder
	body  io.Reader
	read  int64
	limit int
}

func newDocument(body io.Reader, limit int) *document {
	d := &document{body: body, limit: limit}
	d.Decoder = json.NewDecoder(d)
	return d
}

// Read implements io.Reader, for the decoder.
func (d *document) Read(b []byte) (int, error) {
	most := int64(d.limit) + int64(d.limit)/3 + slack // base64 takes four bytes for three
	left := d.InputOffset() + most - d.read
	if left <= 0 {
		return 0, overlong(d.limit)
	}
	n, err := d.body.Read(b[:min(int64(len(b)), left)])
	d.read += int64(n)
	return n, err
}

// decodeJSON reads {"worker": …, options…, "tasks": [body, …] | "items": [{…}, …]}.
// The options must come before the tasks, since tasks are taken as they come.
func decodeJSON(body io.Reader, o *options, limit int, begin func() error, take sink) error {
	d := newDocument(body, limit)
	started := false
	err := d.members("body", func(name string) error {
		switch {
		case name == "tasks" || name == "items":
			if started {
				return bad(name, "both tasks and items are given", "give one of them: tasks are bodies, items describe tasks")
			}
			started = true
			if err := begin(); err != nil {
				return err
			}
			return d.list(name, *o, take)
		case setters[name] == nil:
			return bad(name, "there is no such field", "use tasks or items, and "+strings.Join(names(setters), ", "))
		case started:
			return bad(name, "an option stands after the tasks", "put all options before tasks or items: tasks are read as they come")
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return malformed(name, err)
		}
		text, err := scalar(name, raw)
		if err != nil {
			return err
		}
		return o.set(name, text)
	})
	if err != nil {
		return err
	}
	if !started {
		return begin()
	}
	return nil
}

// members reads an object that ends the input, and refuses a name that stands
// twice. member is called when a name was read, and reads the value; it must
// refuse names it does not know.
func (d *document) members(field string, member func(name string) error) error {
	if err := d.expect(field, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return malformed(field, err)
		}
		name := tok.(string) // the decoder takes nothing else for a name
		if seen[name] {
			return bad(name, "the key stands twice", "give it once")
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	if err := d.expect(field, '}'); err != nil {
		return err
	}
	if _, err := d.Token(); err == nil {
		return malformed(field, errors.New("there is more after the document"))
	} else if !errors.Is(err, io.EOF) {
		return malformed(field, err)
	}
	return nil
}

func (d *document) expect(field string, delim json.Delim) error {
	tok, err := d.Token()
	if err != nil {
		return malformed(field, err)
	}
	if tok != delim {
		return malformed(field, fmt.Errorf("want %s, found %v", kinds[delim], tok))
	}
	return nil
}

// kinds say what a delimiter is of.
var kinds = map[json.Delim]string{'{': "an object", '}': "the end of the object", '[': "an array", ']': "the end of the array"}

// scalar is the text of a JSON string, number or truth value.
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

// list reads the array of tasks, element by element.
func (d *document) list(name string, o options, take sink) error {
	if err := d.expect(name, '['); err != nil {
		return err
	}
	for i := 0; d.More(); i++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return at(malformed(name, err), i)
		}
		t, err := element(raw, name == "items", o.defaults, d.limit)
		if err != nil {
			return at(err, i)
		}
		if err := take(t); err != nil {
			return at(err, i)
		}
	}
	return d.expect("body", ']')
}

// at adds which task a problem is about.
func at(err error, index int) error {
	var p *problem.Problem
	if errors.As(err, &p) && p.Index == nil {
		p.Index = &index
	}
	return err
}
