// Command controller is the function that scales the workers of the gateway, and
// publishes farms, settings and replicas for the dispatchers.
//
// Environment: farmhand_redis_url, farmhand_gateway_url, farmhand_namespace,
// farmhand_capacity (replicas of all farms together; none = no limit),
// farmhand_metrics_listen (address of GET /metrics; none = no metrics),
// farmhand_kept_bytes (as the dispatcher's: with more results nothing is handed out).
// Secrets: farmhand-token, farmhand-redis (optional), basic-auth-user,
// basic-auth-password.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"farmhand/controller"
	"farmhand/controller/metrics"
	"farmhand/controller/openfaas"
	"farmhand/controller/rediskeeper"
	"farmhand/controller/redispast"
	"farmhand/gateway"
	"farmhand/internal/fn"
	"farmhand/internal/promserve"
	"farmhand/internal/redisurl"
	shipped "farmhand/policies"
	"farmhand/registry/policyapi"
	"farmhand/registry/redisregistry"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
	"farmhand/skeleton/signal/redissignal"
)

func main() { fn.Main("controller", build) }

func build(_ context.Context, log *slog.Logger) (*fn.Service, error) {
	token, err := fn.Token(log)
	if err != nil {
		return nil, err
	}
	creds, err := gateway.ReadCredentials()
	if err != nil {
		return nil, err
	}
	url := os.Getenv("farmhand_gateway_url")
	if url == "" {
		return nil, errors.New("farmhand_gateway_url is not set: name the gateway, e.g. http://gateway.openfaas:8080")
	}
	client, err := gateway.New(url, creds, gateway.Options{})
	if err != nil {
		return nil, fmt.Errorf("farmhand_gateway_url: %w", err)
	}
	rdb, err := redisurl.Client()
	if err != nil {
		return nil, err
	}
	capacity, err := number("farmhand_capacity", "a number of replicas, 0 or nothing for no limit")
	if err != nil {
		return nil, err
	}
	kept, err := number("farmhand_kept_bytes", "bytes, as the dispatcher's")
	if err != nil {
		return nil, err
	}
	store := redisledger.New(rdb, redisledger.Options{Limits: ledger.Limits{KeptBytes: kept}})
	past := redispast.New(rdb, log)
	policies := redisregistry.New(rdb, redisregistry.Limits{})
	var c *controller.Controller // made with what asks it
	told := metrics.New(func() controller.Status { return c.Status() }, time.Now)
	c, err = controller.New(controller.Config{
		Platform:  openfaas.New(client, os.Getenv("farmhand_namespace")),
		Ledgers:   store,
		Signals:   redissignal.New(rdb, redissignal.Options{}),
		Keeper:    rediskeeper.New(rdb, nil),
		Receipts:  past,
		Allocator: controller.Capacity(capacity),
		Registry:  policies,
		Default:   shipped.General,
		Referee:   referee{},
		Looked:    told.Looked,
		Log:       log,
	})
	if err != nil {
		return nil, err
	}
	registry, err := promserve.NewRegistry(told)
	if err != nil {
		return nil, err
	}
	scraped, err := promserve.Start(registry, log)
	if err != nil {
		return nil, err
	}
	unwatch, err := watchTrainings(rdb, url, token, log)
	if err != nil {
		return nil, err
	}
	protect := func(next http.Handler) http.Handler { return fn.RequireToken(token, next) }
	promotions := protect(policyapi.New(policyapi.Config{Registry: policies, Known: c.Known, Log: log}))
	api := http.NewServeMux()
	api.Handle(policyapi.Path, promotions)
	api.Handle(policyapi.Path+"/", promotions)
	api.Handle("/", c.Guard(protect))
	c.Start()
	return &fn.Service{
		Handler: api,
		Ready:   func() bool { return !c.Status().Updated.IsZero() },
		Stop: func(ctx context.Context) error {
			c.Stop()
			unwatch()
			err := errors.Join(past.Close(ctx), scraped.Stop(ctx))
			client.CloseIdle()
			store.Close()
			return errors.Join(err, rdb.Close())
		},
	}, nil
}

// number reads a whole number from the environment; 0 where it is not set.
func number(name, want string) (int, error) {
	v := os.Getenv(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not valid: want %s", name, v, want)
	}
	return n, nil
}
