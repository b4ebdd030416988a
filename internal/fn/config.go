package fn

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"
)

// Defaults of a Config.
const (
	DefaultListen  = "127.0.0.1:8082" // the upstream of a watchdog
	DefaultTimeout = time.Minute
)

// idleTimeout keeps idle connections longer than any proxy's pool does: the
// side that closes must be the client, or a call in that very moment is lost.
const idleTimeout = 10 * time.Minute

// Config of a function's server, as OpenFaaS names it. Zero means the default.
type Config struct {
	Listen         string        // farmhand_listen (DefaultListen)
	ReadTimeout    time.Duration // read_timeout (DefaultTimeout)
	WriteTimeout   time.Duration // write_timeout (DefaultTimeout); also the time to drain
	HealthInterval time.Duration // healthcheck_interval (0): served on after SIGTERM
}

func (c Config) withDefaults() Config {
	if c.ReadTimeout <= 0 {
		c.ReadTimeout = DefaultTimeout
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = DefaultTimeout
	}
	return c
}

// stopTime is the part of WriteTimeout that calls leave to Service.Stop however
// long they last: the platform kills the process when both are over.
func (c Config) stopTime() time.Duration { return min(c.WriteTimeout/5, 5*time.Second) }

// FromEnv reads the configuration from the environment. Durations are whole
// seconds or Go durations.
func FromEnv() (Config, error) {
	c := Config{Listen: os.Getenv("farmhand_listen"), ReadTimeout: DefaultTimeout, WriteTimeout: DefaultTimeout}
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	for _, v := range []struct {
		name string
		min  time.Duration
		to   *time.Duration
	}{
		{"read_timeout", time.Millisecond, &c.ReadTimeout},
		{"write_timeout", time.Millisecond, &c.WriteTimeout},
		{"healthcheck_interval", 0, &c.HealthInterval},
	} {
		s := os.Getenv(v.name)
		if s == "" {
			continue
		}
		d, err := duration(s)
		if err != nil || d < v.min {
			return c, fmt.Errorf("environment %s=%q: want whole seconds or a duration such as 30s", v.name, s)
		}
		*v.to = d
	}
	return c, nil
}

func duration(s string) (time.Duration, error) {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(s)
}

// Logger returns the logger of a function: standard error, text or JSON
// (farmhand_log=json), level by farmhand_log_level (info). A level that cannot
// be read counts as info; Main refuses it.
func Logger(name string) *slog.Logger {
	log, _ := newLogger(name)
	return log
}

func newLogger(name string) (*slog.Logger, error) {
	var level slog.Level
	var err error
	if s := os.Getenv("farmhand_log_level"); s != "" {
		if err = level.UnmarshalText([]byte(s)); err != nil {
			err = fmt.Errorf("environment farmhand_log_level=%q: want debug, info, warn or error", s)
		}
	}
	opts := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(os.Stderr, opts)
	if os.Getenv("farmhand_log") == "json" {
		h = slog.NewJSONHandler(os.Stderr, opts)
	}
	return slog.New(h).With("function", name), err
}
