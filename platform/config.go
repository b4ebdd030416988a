package platform

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Defaults of a Config.
const (
	DefaultListen          = "127.0.0.1:8080"
	DefaultMetricsListen   = "127.0.0.1:8082"
	DefaultRedis           = "auto"
	DefaultUpstreamTimeout = 60 * time.Second
	DefaultMaxReplicas     = 256
	DefaultMaxWaiting      = 1024
	DefaultNATSListen      = "127.0.0.1:0"
	DefaultAckWait         = time.Minute // or longer, if a call may take longer
	DefaultAsyncInflight   = 10
)

// Namespace is the only namespace of the local platform.
const Namespace = "openfaas-fn"

// headroom is how much longer the gateway reads and writes than it waits for a
// function.
const headroom = 5 * time.Second

// Config of a Platform. The zero value of a field means its default.
type Config struct {
	Listen        string // loopback address of the gateway (DefaultListen); port 0 picks one
	MetricsListen string // of GET /metrics (DefaultMetricsListen); "none" means nowhere
	State         string // state folder (DefaultState)

	Stack    string // stack file that says which image is which program; "" = none
	Prebuilt string // folder of programs named as their functions; used instead of building
	Deploy   bool   // deploy all functions of the stack file at start

	Redis     string   // "auto" (default), "memory", or a redis:// URL
	ColdStart string   // injected start-up law: "none", "constant:DUR" or "lognormal:MU,SIGMA" (DefaultColdStart)
	Seed      uint64   // of the start-up law and of random balancing
	CE        bool     // behave as plain CE: 1…5 replicas, random balancing
	AllowDirs []string // folders whose executables farmhand.local.command may run

	UpstreamTimeout time.Duration // of one call of a function (DefaultUpstreamTimeout)
	ReadTimeout     time.Duration // of the gateway's server (UpstreamTimeout + 5 s)
	WriteTimeout    time.Duration // of the gateway's server (UpstreamTimeout + 5 s)
	MaxReplicas     int           // of one function; more are not started (DefaultMaxReplicas)
	MaxWaiting      int           // calls of one function held while no replica is ready (DefaultMaxWaiting)

	NATSListen    string        // loopback address of the broker (DefaultNATSListen: the port of last time, or any); "none": no asynchronous calls
	AckWait       time.Duration // an asynchronous call that still runs is made again after this (DefaultAckWait, or longer than a call may take)
	AsyncInflight int           // asynchronous calls made at once (DefaultAsyncInflight; with CE always 1)
	CallbackAllow []string      // where their callbacks may go beside the gateway itself: hosts, *.domains or URL prefixes

	Version string       // told to clients ("dev")
	Log     *slog.Logger // (slog.Default)

	clock clock // of schedules (the wall clock)
}

// DefaultState returns the state folder: $XDG_STATE_HOME/farmhand, or
// ~/.local/state/farmhand.
func DefaultState() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "farmhand"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no state folder: %w (set --state)", err)
	}
	return filepath.Join(home, ".local", "state", "farmhand"), nil
}

// filled returns the configuration with its defaults, or says what is wrong.
func (c Config) filled() (Config, error) {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&c.Listen, DefaultListen)
	def(&c.MetricsListen, DefaultMetricsListen)
	def(&c.Redis, DefaultRedis)
	def(&c.ColdStart, DefaultColdStart)
	def(&c.Version, "dev")
	def(&c.NATSListen, DefaultNATSListen)
	if c.AsyncInflight == 0 {
		c.AsyncInflight = DefaultAsyncInflight
	}
	if c.CE {
		c.AsyncInflight = 1
	}
	if c.UpstreamTimeout == 0 {
		c.UpstreamTimeout = DefaultUpstreamTimeout
	}
	if c.AckWait == 0 {
		c.AckWait = max(DefaultAckWait, c.UpstreamTimeout+headroom+callbackTime)
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = c.UpstreamTimeout + headroom
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = c.UpstreamTimeout + headroom
	}
	if c.MaxReplicas == 0 {
		c.MaxReplicas = DefaultMaxReplicas
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = DefaultMaxWaiting
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.clock == nil {
		c.clock = wallClock{}
	}
	var err error
	if c.State == "" {
		if c.State, err = DefaultState(); err != nil {
			return c, err
		}
	}
	for _, path := range []*string{&c.State, &c.Stack, &c.Prebuilt} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return c, err
		}
	}
	return c, c.check()
}

func (c Config) check() error {
	if c.UpstreamTimeout < 0 || c.ReadTimeout <= c.UpstreamTimeout || c.WriteTimeout <= c.UpstreamTimeout {
		return fmt.Errorf("the gateway's read and write timeout (%s, %s) must be longer than its upstream timeout (%s)",
			c.ReadTimeout, c.WriteTimeout, c.UpstreamTimeout)
	}
	if c.AckWait < time.Second || c.AsyncInflight < 1 || c.AsyncInflight > 1000 {
		return fmt.Errorf("--ack-wait %s, --async-inflight %d: want at least 1s, and 1 to 1000", c.AckWait, c.AsyncInflight)
	}
	for flag, address := range map[string]string{"--listen": c.Listen, "--metrics-listen": c.MetricsListen, "--nats-listen": c.NATSListen} {
		if flag != "--listen" && address == "none" {
			continue
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("%s %q: %w (want %s)", flag, address, err, DefaultListen)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("%s %q: the platform runs programs for whoever may deploy, so it listens on loopback only (want %s)", flag, address, DefaultListen)
		}
	}
	if c.Stack == "" && c.Deploy {
		return errors.New("--deploy needs the stack file: give --stack")
	}
	if c.Stack != "" {
		if _, err := os.Stat(c.Stack); err != nil {
			return fmt.Errorf("stack file: %w (give --stack FILE)", err)
		}
	}
	if c.Prebuilt != "" {
		if st, err := os.Stat(c.Prebuilt); err != nil || !st.IsDir() {
			return fmt.Errorf("--prebuilt %s: no such folder (make build fills bin/functions)", c.Prebuilt)
		}
	}
	if strings.ContainsAny(c.State, "\n\"") {
		return fmt.Errorf("the state folder %q has a character that cannot be passed on", c.State)
	}
	return nil
}
