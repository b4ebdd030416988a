// Package problem writes and reads RFC 9457 problem documents: the one shape
// in which every HTTP API of the suite refuses a request.
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ContentType is the media type of a problem document.
const ContentType = "application/problem+json"

// Problem says what is wrong with a request, where, and how to mend it.
type Problem struct {
	Type   string `json:"type"`            // about:blank, or a short stable code such as "queue-full"
	Title  string `json:"title"`           // the status in words
	Status int    `json:"status"`          // HTTP status
	Detail string `json:"detail"`          // what is wrong with this request
	Field  string `json:"field,omitempty"` // the offending field, header or query parameter
	Fix    string `json:"fix,omitempty"`   // what to do about it
	Line   int    `json:"line,omitempty"`  // 1-based line of an NDJSON body
	Index  *int   `json:"index,omitempty"` // 0-based task of a submission
	Retry  int    `json:"retry,omitempty"` // seconds after which to try again; also sent as Retry-After
	Extra  any    `json:"extra,omitempty"` // further data, e.g. the existing job
}

// New makes a problem. The code is short, stable and meant for programs.
func New(status int, code, detail string) *Problem {
	return &Problem{Type: code, Title: http.StatusText(status), Status: status, Detail: detail}
}

// maxField bounds the name of a field: it may be the client's own words.
const maxField = 80

// At names the offending field and what to do about it. A long name is
// shortened.
func (p *Problem) At(field, fix string) *Problem {
	if len(field) > maxField {
		field = strings.ToValidUTF8(field[:maxField], "") + "…"
	}
	p.Field, p.Fix = field, fix
	return p
}

// After asks the client to try again after d, rounded up to whole seconds.
func (p *Problem) After(d time.Duration) *Problem {
	p.Retry = max(1, int(math.Ceil(d.Seconds())))
	return p
}

// Error implements error.
func (p *Problem) Error() string {
	s := p.Detail
	if p.Field != "" {
		s = p.Field + ": " + s
	}
	if p.Line > 0 {
		s = fmt.Sprintf("line %d: %s", p.Line, s)
	}
	if p.Fix != "" {
		s += " (" + p.Fix + ")"
	}
	return s
}

// Write sends err to the client. An error that is no Problem is written as an
// internal one, without its text: the caller logs it.
func Write(w http.ResponseWriter, err error) {
	var p *Problem
	if !errors.As(err, &p) {
		p = New(http.StatusInternalServerError, "internal", "an internal error; the function's log has it")
	}
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("X-Content-Type-Options", "nosniff")
	if p.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(p.Retry))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that went away needs no answer
}

// Read turns a failed response into an error: its problem document, or one
// made of the status and the beginning of the body.
func Read(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what could be read is all there is to report
	p := &Problem{}
	if resp.Header.Get("Content-Type") == ContentType && json.Unmarshal(body, p) == nil && p.Status != 0 {
		return p
	}
	p = New(resp.StatusCode, "about:blank", string(body[:min(len(body), 300)]))
	p.Retry, _ = strconv.Atoi(resp.Header.Get("Retry-After")) // absent or a date: no hint
	return p
}
