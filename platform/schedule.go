package platform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Annotations of a function that the clock calls. The first two are those of
// OpenFaaS' cron-connector. For the third that has a setting for all functions,
// asynchronous_invocation; the name is the one proposed in
// https://github.com/openfaas/faas/issues/1571.
const (
	annTopic    = "topic"
	annSchedule = "schedule"
	annAsync    = "async"
	cronTopic   = "cron-function"
)

// maxSchedule bounds the text of a schedule.
const maxSchedule = 200

// Schedule describes when a function is called by the clock.
type Schedule struct {
	Schedule   string    `json:"schedule"`
	Async      bool      `json:"async,omitempty"` // runs are queued: they are over once that is done
	NextRun    time.Time `json:"next_run"`
	Running    bool      `json:"running,omitempty"`
	LastRun    time.Time `json:"last_run,omitzero"`
	LastStatus int       `json:"last_status,omitempty"` // of the last run that is over; 0 = there was no answer
	Skipped    uint64    `json:"skipped,omitempty"`     // runs left out since the one before was not over
}

// plan is a schedule that was checked.
type plan struct {
	text  string
	times cron.Schedule
	async bool // by /async-function/
}

// next is the first time of the plan after now; zero = there is none.
func (p *plan) next(now time.Time) time.Time { return p.times.Next(now.Round(0)) } // by the wall clock alone

var cronFormat = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// readSchedule reads when the clock shall call the function, if ever. What a
// connector would pass over in silence is refused.
func (s *spec) readSchedule(now time.Time) error {
	annotations := deref(s.Annotations)
	topics := strings.Split(annotations[annTopic], ",")
	if !slices.ContainsFunc(topics, func(t string) bool { return strings.TrimSpace(t) == cronTopic }) {
		return nil
	}
	text, ok := annotations[annSchedule]
	if !ok {
		return badRequest(`annotation %s of %s: missing, and annotation %s is %s; add one such as "*/5 * * * *" or "@every 30s"`, annSchedule, s.Service, annTopic, cronTopic)
	}
	p, err := parsePlan(text, now)
	if err != nil {
		return badRequest(`annotation %s=%.*q of %s: %v; want five fields (minute hour day month weekday) such as "*/5 * * * *", or @hourly, @daily, @weekly, @monthly, @yearly, or @every with a duration, such as "@every 30s"`,
			annSchedule, maxSchedule, text, s.Service, err)
	}
	switch v, ok := annotations[annAsync]; {
	case v == "true":
		p.async = true
	case ok && v != "false":
		return badRequest(`annotation %s=%.40q of %s: want "true", to queue the calls of its schedule, or "false"`, annAsync, v, s.Service)
	}
	s.plan = p
	return nil
}

func parsePlan(text string, now time.Time) (*plan, error) {
	if len(text) > maxSchedule {
		return nil, fmt.Errorf("it has %d characters", len(text))
	}
	if strings.Contains(text, ";") {
		return nil, errors.New("it has several schedules; give one, without ;")
	}
	if zone, _, more := strings.Cut(text, " "); strings.Contains(zone, "TZ=") && !more {
		return nil, errors.New("there is nothing after the time zone") // the parser would panic
	}
	if len(strings.Fields(text)) == 6 && !strings.Contains(text, "TZ=") {
		return nil, errors.New("it has six fields; leave out the seconds")
	}
	times, err := cronFormat.Parse(text)
	if err != nil {
		return nil, err
	}
	if _, every, ok := strings.Cut(text, "@every "); ok {
		if d, err := time.ParseDuration(every); err != nil || d < time.Second {
			return nil, errors.New("it is too often; give a second or more")
		}
	}
	p := &plan{text: text, times: times}
	if p.next(now).IsZero() {
		return nil, errors.New("it never comes: there is no such day")
	}
	return p, nil
}
