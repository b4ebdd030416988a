// Package platform is a local OpenFaaS-compatible platform for one machine: the
// gateway's API and function routes, a provider that runs replicas as
// processes, and Redis. A function needs neither container nor watchdog: the
// platform builds its program from the folder the stack file names and supplies
// the watchdog's behaviour itself.
//
// The way of a call: gateway.go (which server, which route) → proxy.go (headers,
// time limits, answers) → acquire.go (which replica, or wait for one). The way
// of a replica: system.go (what is wanted) → function.go (what is missing) →
// replica.go (start, readiness, drain, end) → internal/proc.
//
// Beside that way: secrets.go (kept as private files, given to functions as
// copies of those they name), logs.go and logread.go (what functions print, kept
// in bounded files), scheduler.go (calls by the clock, through the same gateway)
// and metrics.go.
package platform

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"time"

	"farmhand/internal/proc"
	"farmhand/internal/secret"
)

// Platform is a running platform.
type Platform struct {
	config      Config
	log         *slog.Logger
	quiet       *log.Logger // of net/http: at debug level
	state       *state
	credentials credentials
	cold        coldStart
	images      *images
	spawner     *proc.Spawner
	redis       *redisStore
	async       *async // nil without a broker
	logs        *logStore
	metrics     *metrics
	schedules   *scheduler
	upstream    *http.Transport
	proxy       *httputil.ReverseProxy
	servedBy    string
	url         string
	started     time.Time

	ctx    context.Context // of the platform's life; not of its start
	cancel context.CancelFunc
	hurry  chan struct{}  // closed when there is no more time to drain
	work   sync.WaitGroup // replicas, the saver, the scheduler and its runs

	deploys sync.Mutex   // one change of the set of functions at a time
	saving  sync.Mutex   // one writer of functions.json at a time
	secrets sync.RWMutex // held to change secrets; shared to read them and to make or remove copies

	mu        sync.Mutex // guards the rest
	functions map[string]*function
	parked    map[string]record // could not be restored; kept for the next start
	rng       *rand.Rand

	servers []*server // gateway, metrics
	dirty   chan struct{}
	once    sync.Once
	stopped chan struct{}
}

// Start starts a platform and restores what was deployed. It returns once the
// gateway answers; functions may become ready later. ctx bounds the start only.
func Start(ctx context.Context, c Config) (*Platform, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	cold, err := parseColdStart(c.ColdStart, c.Seed)
	if err != nil {
		return nil, err
	}
	st, err := openState(c.State)
	if err != nil {
		return nil, err
	}
	p := &Platform{
		config: c, log: c.Log, quiet: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug), state: st, cold: cold,
		images: newImages(c, st.path("bin")), logs: newLogStore(st.path("logs")),
		upstream: newUpstream(), servedBy: "farmhand/" + c.Version,
		functions: map[string]*function{}, parked: map[string]record{}, rng: rand.New(rand.NewPCG(c.Seed, 1)),
		started: time.Now(), hurry: make(chan struct{}), dirty: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.proxy, p.metrics = p.newProxy(), newMetrics(p)
	p.schedules = newScheduler(c.clock, c.Log, &p.work, p.callScheduled)
	if err := p.start(ctx); err != nil {
		_ = p.Stop(context.Background()) // the first error is the one to tell
		return nil, err
	}
	return p, nil
}

func (p *Platform) start(ctx context.Context) error {
	// Ports first: when they are taken nothing has happened yet.
	gate, err := listen(p.config.Listen, "--listen")
	if err != nil {
		return err
	}
	listeners := []net.Listener{gate}
	defer func() {
		for _, l := range listeners[len(p.servers):] {
			_ = l.Close() // not served, since the start failed
		}
	}()
	if p.config.MetricsListen != "none" {
		l, err := listen(p.config.MetricsListen, "--metrics-listen")
		if err != nil {
			return err
		}
		listeners = append(listeners, l)
	}
	p.url = "http://" + gate.Addr().String()

	user, err1 := p.state.readSecret("credentials", secret.GatewayUser)
	password, err2 := p.state.readSecret("credentials", secret.GatewayPass)
	_, err3 := p.Token() // functions would not start with an empty one
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	p.credentials = credentials{user, password}

	p.state.endLeftovers(p.log)
	p.spawner = proc.NewSpawner()
	if p.redis, err = p.openRedis(ctx); err != nil {
		return err
	}
	if p.async, err = p.openAsync(ctx); err != nil {
		return err
	}
	p.work.Add(1)
	go p.saver()
	p.restore(ctx)
	p.servers = append(p.servers, p.serve(gate, p.gatewayHandler(p.handlers())))
	if len(listeners) > 1 {
		p.servers = append(p.servers, p.serve(listeners[1], p.metrics.handler()))
	}
	p.work.Go(func() { p.schedules.loop(p.ctx) })
	if p.config.Deploy {
		if err := p.deployStack(ctx); err != nil {
			return err
		}
	}
	if err := p.async.start(p); err != nil {
		return err
	}
	return p.announce()
}

// announce tells other processes where the platform is.
func (p *Platform) announce() error {
	if err := writeFile(p.state.path("gateway.url"), []byte(p.url+"\n")); err != nil {
		return err
	}
	return writeJSON(p.state.path("run", "platform.json"), p.Info())
}

// Info describes the platform.
func (p *Platform) Info() Info {
	id, err := proc.Identify(os.Getpid())
	if err != nil {
		p.log.Warn("cannot tell this process from others", "error", err)
	}
	return Info{
		Process: id, URL: p.url, MetricsURL: p.MetricsURL(), State: p.state.dir,
		RedisKind: p.redis.kind, RedisAddr: p.redis.url.Host, NATSAddr: p.async.address(),
		Durability: string(p.redis.durability), Durable: p.redis.durability.String(),
		ColdStart: p.config.ColdStart, CE: p.config.CE, Version: p.config.Version, Started: p.started,
	}
}

// URL is the address of the gateway.
func (p *Platform) URL() string { return p.url }

// MetricsURL is the address of the metrics listener, or "".
func (p *Platform) MetricsURL() string {
	if len(p.servers) < 2 {
		return ""
	}
	return p.servers[1].url() + "/metrics"
}

// Credentials returns user and password of the management API.
func (p *Platform) Credentials() (user, password string) {
	return p.credentials.user, p.credentials.password
}

// Token returns the bearer token of the suite's own functions.
func (p *Platform) Token() (string, error) { return p.state.readSecret("secrets", secret.Token) }

// RedisURL returns the address of Redis with its password.
func (p *Platform) RedisURL() (string, error) {
	raw, err := os.ReadFile(p.state.path("redis.url"))
	return strings.TrimSpace(string(raw)), err
}

// Durability says what Redis keeps.
func (p *Platform) Durability() Durability { return p.redis.durability }

// Stop ends the platform: replicas finish their calls and end, then the gateway
// and Redis. When ctx ends before, the rest is killed. What was deployed is
// restored by the next start. Stopping twice is fine.
func (p *Platform) Stop(ctx context.Context) error {
	p.once.Do(func() {
		release := context.AfterFunc(ctx, func() { close(p.hurry) })
		defer release()
		p.stop(ctx)
		close(p.stopped)
	})
	<-p.stopped
	return nil
}

func (p *Platform) stop(ctx context.Context) {
	p.cancel() // ends a build under way
	p.async.drain()
	p.awaitDeployment()
	for _, f := range p.list() {
		f.close()
	}
	p.work.Wait()
	var wg sync.WaitGroup
	for _, s := range p.servers {
		wg.Go(func() { s.shutdown(ctx) })
	}
	wg.Wait()
	p.async.stop()
	if p.redis != nil {
		p.redis.stop(ctx)
	}
	if p.spawner != nil {
		p.spawner.Close()
	}
	p.upstream.CloseIdleConnections()
	p.logs.close()
	for _, file := range []string{p.state.path("gateway.url"), p.state.path("run", "platform.json"), p.state.path("run", redisRecord)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			p.log.Warn("state folder", "error", err)
		}
	}
	if err := p.state.close(); err != nil {
		p.log.Warn("state folder", "error", err)
	}
}

// awaitDeployment returns when none is under way; a later one finds that the
// platform stops.
func (p *Platform) awaitDeployment() {
	p.deploys.Lock()
	defer p.deploys.Unlock()
}

// bound is clamp, and heeds the label com.openfaas.scale.max, to which plain CE
// pays no attention when it is told how many.
func (p *Platform) bound(s *spec, n int) int {
	if !p.config.CE {
		n = s.atMost(n)
	}
	return p.clamp(n)
}

// clamp bounds a number of replicas.
func (p *Platform) clamp(n int) int {
	low, high := 0, p.config.MaxReplicas
	if p.config.CE {
		low, high = 1, min(high, 5)
	}
	return min(max(n, low), high)
}

// random returns a number below n.
func (p *Platform) random(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.IntN(n)
}

// clear removes what a replica left in run/.
func (p *Platform) clear(id string) {
	p.secrets.RLock() // or a changed secret might be put there meanwhile
	defer p.secrets.RUnlock()
	err := errors.Join(os.RemoveAll(p.state.path("run", id)), os.RemoveAll(p.state.path("run", id+".pid")))
	if err != nil {
		p.log.Warn("cannot clear a replica's folder", "error", fmt.Sprint(err))
	}
}
