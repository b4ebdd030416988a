package jobapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"farmhand/skeleton"
)

// element makes a task of one JSON value: the body itself, or an item that
// describes the task.
func element(raw json.RawMessage, item bool, t skeleton.NewTask, limit int) (skeleton.NewTask, error) {
	if !item {
		if len(raw) > limit {
			return t, tooLarge("tasks", limit)
		}
		t.Body, t.Type = raw, "application/json"
		return t, nil
	}
	d := newDocument(bytes.NewReader(raw), max(limit, len(raw)))
	bodies, bounds := 0, 0
	err := d.members("items", func(name string) error {
		var value json.RawMessage
		switch {
		case name == "body" || name == "body_base64":
			bodies++
		case taskSetters[name] == nil:
			return bad(name, "a task has no such field", "use body or body_base64, and "+strings.Join(names(taskSetters), ", "))
		case name == "deadline" || name == "due":
			if bounds++; bounds > 1 {
				return bad(name, "deadline and due are both given", "give one of them")
			}
		}
		if err := d.Decode(&value); err != nil {
			return malformed(name, err)
		}
		return setField(&t, name, value)
	})
	switch {
	case err != nil:
		return t, err
	case bodies != 1:
		return t, bad("body", "a task has one body", "give body (any JSON value) or body_base64")
	case len(t.Body) > limit:
		return t, tooLarge("body", limit)
	}
	return t, nil
}

// taskSetters are the fields of an item that are plain text.
var taskSetters = map[string]func(*skeleton.NewTask, string) error{
	"key": setKey, "class": setClass, "tenant": setTenant, "deadline": setDeadline, "due": setDue,
	"timeout": setTimeout, "attempts": setAttempts, "retry": setRetry, "type": setType,
	"stage":  func(t *skeleton.NewTask, v string) error { t.Stage = v; return checkName("stage", v) },
	"parent": func(t *skeleton.NewTask, v string) error { t.Parent = v; return checkName("parent", v) },
}

func setField(t *skeleton.NewTask, name string, value json.RawMessage) error {
	if name == "body" {
		t.Body = value
		if t.Type == "" {
			t.Type = "application/json"
		}
		return nil
	}
	text, err := scalar(name, value)
	if err != nil {
		return err
	}
	switch name { // what the task says wins over the submission's default
	case "body_base64":
		if t.Body, err = base64.StdEncoding.DecodeString(text); err != nil {
			return bad(name, err.Error(), "standard base64 with padding")
		}
		return nil
	case "deadline":
		t.Due = time.Time{}
	case "due":
		t.Deadline = 0
	}
	return taskSetters[name](t, text)
}

const maxType = 200

// setType takes the media type of a body; it goes into a header of the call.
func setType(t *skeleton.NewTask, v string) error {
	if _, _, err := mime.ParseMediaType(v); err != nil || len(v) > maxType || !plain(v) {
		return bad("type", quote(v)+" is no media type", "such as image/jpeg or application/json")
	}
	t.Type = v
	return nil
}

func setKey(t *skeleton.NewTask, v string) error {
	if v == "" || len(v) > skeleton.MaxKey || !utf8.ValidString(v) {
		return bad("key", "the idempotency key is not valid", fmt.Sprintf("1 to %d bytes of text", skeleton.MaxKey))
	}
	t.Key = v
	return nil
}

func checkName(field, v string) error {
	if len(v) > skeleton.MaxKey || !plain(v) {
		return bad(field, "it is not valid", fmt.Sprintf("at most %d bytes of text without control characters", skeleton.MaxKey))
	}
	return nil
}

// plain reports whether s is text without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}
