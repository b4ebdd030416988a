package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/platform"
	"farmhand/skeleton/ledger/redisledger"
)

// redisURL finds Redis, where it can be reached from here; "" where it cannot.
func (d *doctor) redisURL() (string, error) {
	if d.redis != "" {
		return d.redis, nil
	}
	if !d.local() {
		return "", nil
	}
	return readTrimmed(filepath.Join(d.stateDir(), "redis.url"))
}

func (d *doctor) localCE() bool {
	info, err := platform.Running(d.stateDir())
	return err == nil && info.CE
}

const redisFix = "on a cluster deploy/redis.yaml has what it takes; on one machine install redis-server, and start farmhand up anew"

// examineRedis looks whether Redis keeps what it has acknowledged.
func (d *doctor) examineRedis(ctx context.Context) {
	url, err := d.redisURL()
	if err == nil && url == "" {
		if d.dispatches {
			d.warn("redis", "kubectl -n openfaas-fn port-forward svc/redis 6379:6379, then --redis redis://127.0.0.1:6379 --redis-password-file .secrets/farmhand-redis",
				"the dispatcher reaches it; whether it is durable cannot be seen from here")
		}
		return
	}
	var opts *redis.Options
	if err == nil {
		if opts, err = redis.ParseURL(url); err != nil {
			err = errors.New("the URL is not valid") // it may hold a password
		}
	}
	if err == nil && d.redisPasswordFile != "" {
		opts.Password, err = readTrimmed(d.redisPasswordFile)
	}
	if err != nil {
		d.fail("redis", "want --redis redis://HOST:6379/0", "%v", err)
		return
	}
	opts.MaxRetries, opts.DialerRetries, opts.DialTimeout = -1, 1, 3*time.Second
	redis.SetLogger(silent{}) // what goes wrong is a finding
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(ctx, doctorCall)
	defer cancel()
	before := time.Now()
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		fix := "look whether Redis runs, and reaches its disk"
		if strings.Contains(err.Error(), "NOAUTH") || strings.Contains(err.Error(), "WRONGPASS") {
			fix = "give its password, the value of the secret farmhand-redis: --redis-password-file"
		}
		d.fail("redis", fix, "%s: %v", opts.Addr, err)
		return
	}
	if skew := now.Sub(before.Add(time.Since(before) / 2)); skew.Abs() > clockSlack {
		d.warn("clock", "let both machines follow NTP; a due that you give as a time of day is off by as much", "Redis' clock is %s from this one", skew.Round(100*time.Millisecond))
	}
	d.ok("redis", "%s answers in %s", opts.Addr, time.Since(before).Round(10*time.Microsecond))
	d.durable(ctx, rdb)
	d.room(ctx, rdb)
}

// silent keeps the client of Redis from talking.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// durable asks for the append-only file.
func (d *doctor) durable(ctx context.Context, rdb *redis.Client) {
	store := redisledger.New(rdb, redisledger.Options{})
	defer store.Close()
	durability, err := store.Durability(ctx)
	text, ierr := rdb.Info(ctx, "persistence").Result()
	info := parseInfo(text)
	switch {
	case err != nil:
		d.warn("durability", redisFix, "it cannot be told: %v", err)
	case durability == "memory":
		d.fail("durability", redisFix, "Redis keeps nothing on disk: its end loses every task")
	case ierr == nil && info["aof_last_write_status"] == "err":
		d.fail("durability", "make room on its disk, or mend it", "Redis cannot write its append-only file")
	default:
		d.ok("durability", "%s: %s", durability, map[string]string{"process": "a write survives the end of Redis; the last two seconds are at risk if the power fails", "disk": "a write survives a power failure", "replica": "a write survives the loss of a server"}[durability])
	}
}

// room asks what happens when memory is full.
func (d *doctor) room(ctx context.Context, rdb *redis.Client) {
	text, err := rdb.Info(ctx, "memory").Result()
	info := parseInfo(text)
	policy := info["maxmemory_policy"]
	used, most := number(info["used_memory"]), number(info["maxmemory"])
	switch {
	case err != nil || policy == "":
		d.warn("eviction", "see to it that maxmemory-policy is noeviction", "the server does not tell its maxmemory-policy")
	case policy != "noeviction":
		d.fail("eviction", "CONFIG SET maxmemory-policy noeviction, and the same in its configuration: full must mean refused", "maxmemory-policy is %s: Redis may drop tasks", policy)
	case most > 0 && used > 0.8*most:
		d.warn("eviction", "collect results (farmhand jobs), or give Redis more memory: at 100 % new work is refused", "%.0f %% of its memory is used", 100*used/most)
	case most == 0 && !d.local():
		d.warn("eviction", "set maxmemory to half of what the container may have", "noeviction, but no maxmemory: a full queue ends Redis instead of being refused")
	case most == 0:
		d.ok("eviction", "noeviction, and no maxmemory")
	default:
		d.ok("eviction", "noeviction; %.0f of %.0f MB are used", used/(1<<20), most/(1<<20))
	}
}

// parseInfo reads the lines of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func number(text string) float64 {
	x, _ := strconv.ParseFloat(text, 64) // what is no number is not told: 0
	return x
}
