package platform

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// Defaults of a function's settings, as the watchdog has them.
const (
	defaultExecTimeout  = 30 * time.Second
	defaultWriteTimeout = 30 * time.Second
	defaultReadyPath    = "/_/ready"
	defaultFactor       = 20 // percent
)

// maxSetting bounds each of a function's times, so that sums of them are times.
const maxSetting = 24 * time.Hour

// Labels and annotations that the platform reads.
const (
	labelMin     = "com.openfaas.scale.min"
	labelMax     = "com.openfaas.scale.max"
	labelFactor  = "com.openfaas.scale.factor"
	annReadyPath = "com.openfaas.ready.http.path"
	annCommand   = "farmhand.local.command"
)

// maxNotes bounds a deployment's labels and annotations: every listing has them
// all.
const maxNotes = 64 << 10

// maxEnvironment bounds a deployment's environment, fprocess included. Linux
// starts no process with a variable of 128 KiB (MAX_ARG_STRLEN, execve(2)).
const maxEnvironment = 120 << 10

// maxImage bounds the name of an image.
const maxImage = 1024

// refusal is an error that the client caused, with the status that says so.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return refuse(http.StatusBadRequest, format, args...)
}

// spec is a deployment that was checked, with the program it runs.
type spec struct {
	types.FunctionDeployment
	command []string // program and arguments
	sum     string   // of the program's content

	min, max       int // com.openfaas.scale.*; max 0 = none
	factor         int // percent of the most that an alert adds; 0 = alerts change nothing
	maxInflight    int // 0 = no limit
	execTimeout    time.Duration
	writeTimeout   time.Duration
	healthInterval time.Duration // 0 when not given: the routing forgets a replica before its process is told
	readyPath      string
	plan           *plan // when the clock calls it; nil = never
}

// drainTime is how long a replica may take to finish its calls, and again how
// long its process may take to end after SIGTERM.
func (s *spec) drainTime() time.Duration { return s.writeTimeout + s.healthInterval }

var (
	nameRule   = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`) // RFC 1035 label
	secretRule = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)
)

// checkDeployment reads the settings of a deployment. It does not look for the
// program.
func checkDeployment(d types.FunctionDeployment, now time.Time) (*spec, error) {
	if !nameRule.MatchString(d.Service) {
		return nil, badRequest("service %q: want a name of at most 63 lower-case letters, digits and dashes that begins with a letter", d.Service)
	}
	if d.Image == "" {
		return nil, badRequest("image of %s: missing", d.Service)
	}
	if len(d.Image) > maxImage {
		return nil, badRequest("image of %s: its name has %d characters; shorten it to %d", d.Service, len(d.Image), maxImage)
	}
	s := &spec{FunctionDeployment: d, min: 1, factor: defaultFactor, readyPath: defaultReadyPath}
	size := len(d.EnvProcess)
	for name, value := range d.EnvVars {
		size += len(name) + len(value)
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, badRequest("environment variable %q: not a valid name or value", name)
		}
	}
	if size > maxEnvironment {
		return nil, badRequest("environment of %s: %d bytes; shorten it to %d in all, and put what is large into a secret or a file", d.Service, size, maxEnvironment)
	}
	notes := 0
	for _, list := range []map[string]string{deref(d.Labels), deref(d.Annotations)} {
		for name, value := range list {
			notes += len(name) + len(value)
		}
	}
	if notes > maxNotes {
		return nil, badRequest("labels and annotations of %s: %d bytes; shorten them to %d in all", d.Service, notes, maxNotes)
	}
	if err := s.readLabels(); err != nil {
		return nil, err
	}
	if err := s.readSchedule(now); err != nil {
		return nil, err
	}
	return s, s.readTimeouts()
}

func (s *spec) readLabels() error {
	labels, annotations := deref(s.Labels), deref(s.Annotations)
	for _, l := range []struct {
		name string
		to   *int
	}{{labelMin, &s.min}, {labelMax, &s.max}, {labelFactor, &s.factor}} {
		v, ok := labels[l.name]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return badRequest("label %s=%q: want a whole number of at least 0", l.name, v)
		}
		*l.to = n
	}
	if s.factor > 100 {
		return badRequest("label %s=%d: want 0 to 100 percent; 0 leaves the scaling to others", labelFactor, s.factor)
	}
	if _, ok := labels[labelMax]; ok && s.min > s.max {
		return badRequest("labels %s=%d, %s=%d: the least must not exceed the most", labelMin, s.min, labelMax, s.max)
	}
	if p, ok := annotations[annReadyPath]; ok {
		_, err := url.Parse("http://127.0.0.1" + p) // as a probe has it
		if !strings.HasPrefix(p, "/") || strings.Contains(p, " ") || err != nil {
			return badRequest("annotation %s=%q: no path that can be asked for; begin it with /, write %% only before two hexadecimal digits, and leave out spaces and control characters", annReadyPath, p)
		}
		s.readyPath = p
	}
	return nil
}

func (s *spec) readTimeouts() error {
	env := s.EnvVars
	s.execTimeout, s.writeTimeout = defaultExecTimeout, defaultWriteTimeout
	var read time.Duration
	for name, to := range map[string]*time.Duration{
		"exec_timeout": &s.execTimeout, "write_timeout": &s.writeTimeout, "read_timeout": &read, "healthcheck_interval": &s.healthInterval,
	} {
		if env[name] == "" {
			continue
		}
		d, err := parseDuration(env[name])
		if err != nil || d < 0 || d > maxSetting {
			return badRequest("environment %s=%q: want whole seconds or a duration such as 30s, at most %s", name, env[name], maxSetting)
		}
		*to = d
	}
	if s.writeTimeout == 0 {
		return badRequest("environment write_timeout=%q: want more than 0", env["write_timeout"])
	}
	switch {
	case env["exec_timeout"] == "":
		s.execTimeout = min(s.execTimeout, s.writeTimeout)
	case s.writeTimeout < s.execTimeout:
		return badRequest("environment write_timeout=%s is shorter than exec_timeout=%s: an answer in time would be cut off; raise write_timeout", s.writeTimeout, s.execTimeout)
	}
	if v := env["max_inflight"]; v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return badRequest("environment max_inflight=%q: want a whole number of at least 0", v)
		}
		s.maxInflight = n
	}
	return nil
}

// atMost bounds a number of replicas by com.openfaas.scale.max.
func (s *spec) atMost(n int) int {
	if s.max > 0 {
		return min(n, s.max)
	}
	return n
}

// answersReady reports whether a probe's answer says that the replica is ready.
// A function with a path of its own says so with 200. At the default path one
// that was written to stand behind a watchdog answers anything: that it answers
// is then all the watchdog would know.
func (s *spec) answersReady(status int) bool {
	if _, own := deref(s.Annotations)[annReadyPath]; own {
		return status == http.StatusOK
	}
	return status < 500 && status != http.StatusTooManyRequests
}

// timeout is the time a call may take: exec_timeout, or less when the caller
// says so. 0 means no limit.
func (s *spec) timeout(xTimeout string) time.Duration {
	d, err := time.ParseDuration(xTimeout)
	if err != nil || d <= 0 || s.execTimeout > 0 && d > s.execTimeout {
		return s.execTimeout
	}
	return d
}

// same reports whether two specs would run the same process.
func (s *spec) same(o *spec) bool {
	return s.Image == o.Image && s.sum == o.sum && fmt.Sprint(s.command) == fmt.Sprint(o.command) &&
		s.EnvProcess == o.EnvProcess && maps.Equal(s.EnvVars, o.EnvVars) && fmt.Sprint(s.Secrets) == fmt.Sprint(o.Secrets) && s.readyPath == o.readyPath
}

// parseDuration reads whole seconds or a Go duration.
func parseDuration(s string) (time.Duration, error) {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(s)
}

func deref(m *map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	return *m
}
