package jobapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"farmhand/internal/problem"
	"farmhand/skeleton"
)

// options are what a submission says of all its tasks. They come as fields of
// the JSON document or as query parameters of the same names.
type options struct {
	worker   string
	defaults skeleton.NewTask // what every task starts from
	ordered  bool
	open     bool
	callback string
	wait     time.Duration
	given    map[string]bool // by name
}

// bad is a problem with a field.
func bad(field, detail, fix string) *problem.Problem {
	return problem.New(http.StatusUnprocessableEntity, "bad-field", detail).At(field, fix)
}

// setter takes the text of one option.
type setter func(o *options, v string) error

var setters = map[string]setter{
	"worker":   func(o *options, v string) error { o.worker = v; return nil },
	"class":    func(o *options, v string) error { return setClass(&o.defaults, v) },
	"tenant":   func(o *options, v string) error { return setTenant(&o.defaults, v) },
	"deadline": func(o *options, v string) error { return setDeadline(&o.defaults, v) },
	"due":      func(o *options, v string) error { return setDue(&o.defaults, v) },
	"timeout":  func(o *options, v string) error { return setTimeout(&o.defaults, v) },
	"attempts": func(o *options, v string) error { return setAttempts(&o.defaults, v) },
	"retry":    func(o *options, v string) error { return setRetry(&o.defaults, v) },
	"ordered":  func(o *options, v string) error { return setBool("ordered", &o.ordered, v) },
	"open":     func(o *options, v string) error { return setBool("open", &o.open, v) },
	"callback": func(o *options, v string) error { o.callback = v; return nil },
	"wait": func(o *options, v string) error {
		d, err := duration("wait", v)
		o.wait = d
		return err
	},
}

// set takes the text of an option that is known.
func (o *options) set(name, v string) error {
	if o.given == nil {
		o.given = map[string]bool{}
	}
	o.given[name] = true
	return setters[name](o, v)
}

// ofJob refuses options that a job has had since its first submission.
func (o *options) ofJob() error {
	for _, name := range []string{"ordered", "callback"} {
		if o.given[name] {
			return bad(name, "it is of the whole job and cannot be changed by appending", "give it with the first submission of the job")
		}
	}
	if o.given["open"] && !o.open {
		return bad("open", "appending does not close the job", "POST /jobs/{id}/close when everything is appended")
	}
	return nil
}

// only in the query: how the body is to be read.
const paramItems = "items"

// fromQuery reads the options that stand in the URL.
func fromQuery(q url.Values) (options, error) {
	o := options{defaults: skeleton.NewTask{Class: skeleton.DefaultClass}}
	for name, values := range q {
		if name == paramItems {
			continue
		}
		if err := o.set(name, values[0]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func names[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func setClass(t *skeleton.NewTask, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n >= skeleton.Classes {
		return bad("class", quote(v)+" is no class", fmt.Sprintf("0 (served first) to %d; %d is the default", skeleton.Classes-1, skeleton.DefaultClass))
	}
	t.Class = n
	return nil
}

func setTenant(t *skeleton.NewTask, v string) error {
	if len(v) > skeleton.MaxTenant || !plain(v) {
		return bad("tenant", "the tenant's name is not valid", fmt.Sprintf("at most %d bytes of text without control characters", skeleton.MaxTenant))
	}
	t.Tenant = v
	return nil
}

const maxDeadline = 30 * 24 * time.Hour

func setDeadline(t *skeleton.NewTask, v string) error {
	d, err := duration("deadline", v)
	if err != nil {
		return err
	}
	if !t.Due.IsZero() {
		return bad("deadline", "deadline and due are both given", "give one of them")
	}
	if d <= 0 || d > maxDeadline {
		return bad("deadline", quote(v)+" is out of range", "a positive duration of at most 30 days, such as 150ms or 1h")
	}
	t.Deadline = d
	return nil
}

// The years in which a due may lie: the ledger counts microseconds from 1970 on,
// and the zero time means that there is none.
const firstYear, lastYear = 2000, 2200

func setDue(t *skeleton.NewTask, v string) error {
	at, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return bad("due", quote(v)+" is no time", "RFC 3339, such as 2026-01-31T12:00:00Z")
	}
	if y := at.UTC().Year(); y < firstYear || y > lastYear {
		return bad("due", quote(v)+" is out of range", fmt.Sprintf("a time in the years %d to %d; leave due out for none", firstYear, lastYear))
	}
	if t.Deadline > 0 {
		return bad("due", "deadline and due are both given", "give one of them")
	}
	t.Due = at
	return nil
}

func setTimeout(t *skeleton.NewTask, v string) error {
	d, err := duration("timeout", v)
	if err != nil {
		return err
	}
	if d < time.Millisecond || d > 24*time.Hour {
		return bad("timeout", quote(v)+" is out of range", "a duration from 1ms to 24h; the farm's own timeout is the most")
	}
	t.Timeout = d
	return nil
}

func setAttempts(t *skeleton.NewTask, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > skeleton.MaxAttempts {
		return bad("attempts", quote(v)+" is out of range", fmt.Sprintf("a whole number from 1 to %d; %d is the default", skeleton.MaxAttempts, skeleton.DefaultAttempts))
	}
	t.Attempts = n
	return nil
}

func setRetry(t *skeleton.NewTask, v string) error {
	if v != "never" {
		return bad("retry", quote(v)+" is not known", `"never": a lost or timed-out attempt is not repeated`)
	}
	t.NoRetry = true
	return nil
}

func setBool(name string, into *bool, v string) error {
	switch v {
	case "true", "1":
		*into = true
	case "false", "0":
		*into = false
	default:
		return bad(name, quote(v)+" is neither true nor false", "true or false")
	}
	return nil
}

func duration(name, v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, bad(name, quote(v)+" is no duration", "a number with a unit, such as 150ms, 30s or 2h")
	}
	if d < 0 {
		return 0, bad(name, quote(v)+" is negative", "a positive duration, such as 150ms")
	}
	return d, nil
}

// quote shows a client's text in a message, shortened.
func quote(s string) string { return strconv.Quote(clip(s)) }

func clip(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return s
}

// splitJob takes FARM~ULID apart.
func splitJob(id string) (farm string, ok bool) {
	farm, unit, found := strings.Cut(id, "~")
	foreign := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._", r)
	}
	if !found || farm == "" || len(farm) > 127 || strings.ContainsFunc(farm, foreign) {
		return "", false
	}
	u, err := ulid.ParseStrict(unit)
	return farm, err == nil && u.String() == unit // lower case is another id to the ledger
}
