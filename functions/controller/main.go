// Command controller is the function that watches the workers of the gateway
// and publishes farms, settings and replicas for the dispatchers.
//
// Environment: farmhand_redis_url, farmhand_gateway_url, farmhand_namespace.
// Secrets: farmhand-token, farmhand-redis (optional), basic-auth-user,
// basic-auth-password.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"farmhand/controller"
	"farmhand/controller/openfaas"
	"farmhand/gateway"
	"farmhand/internal/fn"
	"farmhand/internal/redisurl"
	"farmhand/internal/secret"
	"farmhand/skeleton/ledger/redisledger"
)

func main() { fn.Main("controller", build) }

func build(_ context.Context, log *slog.Logger) (*fn.Service, error) {
	token, err := fn.Token(log)
	if err != nil {
		return nil, err
	}
	creds, err := gateway.ReadCredentials()
	if err != nil && !errors.Is(err, secret.ErrMissing) {
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
	store := redisledger.New(rdb, redisledger.Options{})
	c, err := controller.New(controller.Config{
		Platform:  openfaas.New(client, os.Getenv("farmhand_namespace")),
		Publisher: store,
		Log:       log,
	})
	if err != nil {
		return nil, err
	}
	c.Start()
	return &fn.Service{
		Handler: fn.RequireToken(token, c.Handler()),
		Ready:   func() bool { return !c.Status().Updated.IsZero() },
		Stop: func(context.Context) error {
			c.Stop()
			client.CloseIdle()
			store.Close()
			return rdb.Close()
		},
	}, nil
}
