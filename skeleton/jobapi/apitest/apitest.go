// Package apitest runs a dispatcher in process, on a real Redis, for tests of
// the API and of what calls it.
package apitest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/skeleton"
	"farmhand/skeleton/dispatch"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
)

// Worker is the only farm there is.
const Worker = "echo"

// Slots are how many tasks it runs at once.
const Slots = 8

// Caller is a worker in process.
type Caller func(ctx context.Context, t skeleton.Task, body []byte) skeleton.Call

// Call implements dispatch.Caller.
func (c Caller) Call(ctx context.Context, t skeleton.Task, body []byte, _ time.Duration) skeleton.Call {
	return c(ctx, t, body)
}

// Echo answers with the task's own bytes.
func Echo(_ context.Context, t skeleton.Task, body []byte) skeleton.Call {
	return skeleton.Call{Status: 200, CallID: true, Type: t.Type, Body: body}
}

// Options of a dispatcher. Zero means: a Redis of its own, default limits, and
// no worker, so that nothing takes tasks.
type Options struct {
	Config jobapi.Config
	Limits ledger.Limits
	Redis  *redis.Client
	Worker Caller
}

// Start runs a dispatcher until the test ends. The API must be served by the
// caller, whose server must end first.
func Start(t testing.TB, o Options) (*redisledger.Store, *jobapi.API) {
	t.Helper()
	if o.Redis == nil {
		o.Redis = redistest.Client(t, redistest.Start(t))
	}
	store := redisledger.New(o.Redis, redisledger.Options{Limits: o.Limits})
	t.Cleanup(store.Close)
	settings := skeleton.DefaultSettings()
	settings.Slots = Slots
	roster := skeleton.Roster{Farms: []skeleton.Farm{{Name: Worker, Settings: settings, Ready: 1, Target: 1}}}
	if err := ledger.Publish(context.Background(), store, roster); err != nil {
		t.Fatal(err)
	}
	o.Config.Store = store
	api := jobapi.New(o.Config)
	if o.Worker != nil {
		d, err := dispatch.Start(dispatch.Config{Store: store, Caller: o.Worker, Owner: "test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := d.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(api.Close)
	return store, api
}
