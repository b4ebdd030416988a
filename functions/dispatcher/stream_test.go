package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"

	stand "github.com/nats-io/nats-streaming-server/server"
	"github.com/nats-io/nats-streaming-server/stores"

	"farmhand/internal/stantest"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/memledger"
)

// Without an address there is no stream; one that is none is not repeated, since
// it may hold a password.
func TestStreamIsOff(t *testing.T) {
	t.Setenv("secret_mount_path", t.TempDir())
	var c config
	t.Setenv("farmhand_gateway_url", "http://gateway:8080")
	if err := env.Parse(&c); err != nil || c.Stream != (streamConfig{Cluster: "faas-cluster"}) {
		t.Fatalf("%+v, %v", c.Stream, err)
	}
	log := slog.New(slog.DiscardHandler)
	s, err := startStream(c.Stream, "me", 0, nil, log)
	if s != nil || err != nil || s.stop(t.Context()) != nil {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := startStream(streamConfig{URL: "pa55word"}, "me", 0, nil, log); err == nil || strings.Contains(err.Error(), "pa55word") {
		t.Errorf("%v", err)
	}
}

// What the environment says is enough for a task to come.
func TestStreamIsOn(t *testing.T) {
	t.Setenv("secret_mount_path", t.TempDir())
	n := stantest.Start(t, func(o *stand.Options) { o.ChannelLimits = stores.ChannelLimits{} })
	t.Setenv("farmhand_gateway_url", "http://gateway:8080")
	t.Setenv("farmhand_nats_url", n.URL)
	t.Setenv("farmhand_nats_monitor_url", n.Monitor)
	var c config
	if err := env.Parse(&c); err != nil {
		t.Fatal(err)
	}
	store := memledger.New(memledger.Options{})
	if err := ledger.Publish(t.Context(), store, skeleton.Roster{Farms: []skeleton.Farm{{Name: "echo", Settings: skeleton.DefaultSettings(), Ready: 1, Target: 1}}}); err != nil {
		t.Fatal(err)
	}
	s, err := startStream(c.Stream, owner(), 1000, store, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Connect("by-hand").Publish("farmhand.tasks.echo", []byte(`{"body": 1}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	woken := make(chan struct{}, 16)
	go func() { _ = store.Farm("echo").Watch(ctx, func(ledger.Event) { woken <- struct{}{} }) }()
	for {
		taken, err := store.Farm("echo").Take(ctx, "test", 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(taken.Leases) == 1 {
			break
		}
		select {
		case <-woken:
		case <-ctx.Done():
			t.Fatal("no task comes")
		}
	}
	if err := s.stop(ctx); err != nil {
		t.Error(err)
	}
}
