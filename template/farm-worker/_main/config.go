package main

import (
	"fmt"
	"strconv"
	"time"
)

// config is read from the environment, by the names that OpenFaaS has for it.
type config struct {
	listen         string        // farmhand_listen; the default is the watchdog's upstream
	maxBody        int64         // farmhand_max_body: bytes of a task
	readTimeout    time.Duration // read_timeout: of a task's body
	writeTimeout   time.Duration // write_timeout: of a call; also the time to drain
	execTimeout    time.Duration // exec_timeout: of Handle; 0 = no limit but the caller's
	healthInterval time.Duration // healthcheck_interval: served on after SIGTERM
}

func fromEnv(getenv func(string) string) (config, error) {
	c := config{
		listen:       "127.0.0.1:8082",
		maxBody:      16 << 20,
		readTimeout:  time.Minute,
		writeTimeout: time.Minute,
	}
	if v := getenv("farmhand_listen"); v != "" {
		c.listen = v
	}
	if v := getenv("farmhand_max_body"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 {
			return c, fmt.Errorf("environment farmhand_max_body=%q: want a number of bytes", v)
		}
		c.maxBody = n
	}
	for name, to := range map[string]*time.Duration{
		"read_timeout": &c.readTimeout, "write_timeout": &c.writeTimeout,
		"exec_timeout": &c.execTimeout, "healthcheck_interval": &c.healthInterval,
	} {
		v := getenv(name)
		if v == "" {
			continue
		}
		d, err := duration(v)
		if err != nil || d < 0 {
			return c, fmt.Errorf("environment %s=%q: want whole seconds or a duration such as 30s", name, v)
		}
		*to = d
	}
	if c.writeTimeout == 0 || c.execTimeout > c.writeTimeout {
		return c, fmt.Errorf("environment write_timeout=%s, exec_timeout=%s: an answer in time would be cut off; raise write_timeout", c.writeTimeout, c.execTimeout)
	}
	return c, nil
}

// duration reads whole seconds, or a duration as Go writes it.
func duration(v string) (time.Duration, error) {
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(v)
}
