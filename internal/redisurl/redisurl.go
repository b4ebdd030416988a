// Package redisurl connects the suite's functions to their Redis.
package redisurl

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/secret"
)

// Env is the environment variable that names Redis.
const Env = "farmhand_redis_url"

// Client connects to the Redis named by farmhand_redis_url, with the password
// of the secret farmhand-redis where the URL has none. It does not wait for the
// server: a function starts, and is not ready, while Redis is away.
func Client() (*redis.Client, error) {
	url := os.Getenv(Env)
	if url == "" {
		return nil, fmt.Errorf("%s is not set: name Redis, e.g. redis://redis:6379/0", Env)
	}
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("%s is not valid: want redis://host:port/db", Env) // the URL may hold a password
	}
	if opts.Password == "" {
		password, err := secret.Read(secret.RedisPassword)
		if err != nil && !errors.Is(err, secret.ErrMissing) {
			return nil, err
		}
		opts.Password = password
	}
	opts.DialerRetries = 1
	opts.MaxRetries = -1 // the ledger decides what is tried again
	opts.DialTimeout = 2 * time.Second
	opts.ReadTimeout = 5 * time.Second
	opts.WriteTimeout = 5 * time.Second
	return redis.NewClient(opts), nil
}
