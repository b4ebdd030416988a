package platform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/secret"
)

// Durability says what a write that Redis acknowledged survives.
type Durability string

// Degrees of durability, as in the answers of POST /jobs.
const (
	InMemory  Durability = "memory"  // nothing
	InProcess Durability = "process" // a kill -9 of Redis
	OnDisk    Durability = "disk"    // a power failure
)

// String says it in words.
func (d Durability) String() string {
	switch d {
	case InProcess:
		return "acknowledged work survives a kill -9 of Redis and of the platform; up to 2 s of it are at risk if the disk stalls or the power fails"
	case OnDisk:
		return "acknowledged work survives a power failure"
	}
	return "nothing is kept: all jobs are gone when Redis or the platform ends"
}

// redisStore is the Redis that functions are given.
type redisStore struct {
	kind       string // given, redis-server or memory
	url        *url.URL
	password   string
	durability Durability
	stop       func(context.Context)
}

// redisRecord names the redis-server's record in run/.
const redisRecord = "redis.pid"

// functionURL is the address without the password, which functions read from
// the secret farmhand-redis.
func (r *redisStore) functionURL() string {
	u := *r.url
	if u.User != nil {
		u.User = nil
		if name := r.url.User.Username(); name != "" {
			u.User = url.User(name)
		}
	}
	return u.String()
}

// openRedis finds or starts Redis as the configuration says.
func (p *Platform) openRedis(ctx context.Context) (*redisStore, error) {
	choice := p.config.Redis
	if choice == "auto" {
		if v := os.Getenv("farmhand_redis_url"); v != "" {
			choice = v
		}
	}
	password, err := p.state.readSecret("secrets", secret.RedisPassword)
	if err != nil {
		return nil, err
	}
	var r *redisStore
	switch {
	case choice == "auto":
		file, lookErr := exec.LookPath("redis-server")
		if lookErr != nil {
			p.log.Warn("redis-server is not installed: an embedded Redis is used, which KEEPS NOTHING when the platform ends (apt-get install redis-server)")
			r, err = p.embeddedRedis(password)
			break
		}
		r, err = p.ownRedis(ctx, file, password)
	case choice == "memory":
		p.log.Warn("the embedded Redis KEEPS NOTHING when the platform ends")
		r, err = p.embeddedRedis(password)
	case strings.HasPrefix(choice, "redis://"), strings.HasPrefix(choice, "rediss://"):
		r, err = givenRedis(ctx, choice)
	default:
		err = errors.New("--redis: want auto, memory or a URL such as redis://:PASSWORD@HOST:6379/0") // not repeated: it may hold a password
	}
	if err != nil {
		return nil, err
	}
	full := *r.url
	if r.password != "" {
		full.User = url.UserPassword(r.url.User.Username(), r.password)
	}
	if err := writeFile(p.state.path("redis.url"), []byte(full.String()+"\n")); err != nil {
		r.stop(ctx)
		return nil, err
	}
	return r, nil
}

// givenRedis uses a server of the user's own and asks how durable it is.
func givenRedis(ctx context.Context, raw string) (*redisStore, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, errors.New("--redis: not a valid URL; want redis://:PASSWORD@HOST:6379/0")
	}
	o, err := redis.ParseURL(raw)
	if err != nil {
		return nil, errors.New("--redis: not a valid URL; want redis://:PASSWORD@HOST:6379/0")
	}
	c := redis.NewClient(o)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := ping(ctx, c); err != nil {
		return nil, fmt.Errorf("redis at %s: %w", o.Addr, err)
	}
	durability, err := askDurability(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("redis at %s: %w", o.Addr, err)
	}
	r := &redisStore{kind: "given", url: u, durability: durability, stop: func(context.Context) {}}
	r.password, _ = u.User.Password()
	return r, nil
}

// ping asks whether Redis answers. It knocks first, since the client would print
// that nobody opens.
func ping(ctx context.Context, c *redis.Client) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", c.Options().Addr)
	if err != nil {
		return err
	}
	_ = conn.Close()
	return c.Ping(ctx).Err()
}

// askDurability reads it from the server by the ledger's rule, so that up says
// what the answers of POST /jobs will: where CONFIG is forbidden, an append-only
// file counts as synced every second. A server that does not tell of its
// persistence counts as memory.
func askDurability(ctx context.Context, c *redis.Client) (Durability, error) {
	info, err := c.Info(ctx, "persistence").Result()
	var refused redis.Error
	if err != nil && !errors.As(err, &refused) {
		return "", err
	}
	if !strings.Contains(info, "aof_enabled:1") {
		return InMemory, nil
	}
	if m, err := c.ConfigGet(ctx, "appendfsync").Result(); err == nil && m["appendfsync"] == "always" {
		return OnDisk, nil
	}
	return InProcess, nil
}

// localURL is the address of a Redis of ours.
func localURL(address string) *url.URL {
	return &url.URL{Scheme: "redis", Host: address, Path: "/0"}
}

// redisAddress returns the address the last run used, when it is free, or
// another: functions and clients hold the URL.
func (p *Platform) redisAddress() (string, error) {
	if raw, err := os.ReadFile(p.state.path("redis.url")); err == nil {
		u, err := url.Parse(strings.TrimSpace(string(raw)))
		if err == nil && isLoopback(u.Host) && u.Port() != "" {
			address := net.JoinHostPort("127.0.0.1", u.Port())
			if l, err := net.Listen("tcp", address); err == nil {
				return address, l.Close()
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("redis: no free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
