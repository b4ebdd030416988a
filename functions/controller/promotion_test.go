package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/controller"
	"farmhand/controller/rediskeeper"
	"farmhand/controller/redispast"
	"farmhand/internal/redistest"
	"farmhand/policy"
	"farmhand/registry"
	"farmhand/registry/redisregistry"
	"farmhand/registry/registrytest"
	"farmhand/skeleton/ledger/redisledger"
	"farmhand/skeleton/signal/redissignal"
)

// worker is a platform with one farm.
type worker struct{ n int }

func (w worker) Workers(context.Context) ([]controller.Worker, error) {
	return []controller.Worker{{Name: "f", Labels: map[string]string{"farmhand.worker": "true"}, Desired: w.n, Ready: w.n,
		Annotations: map[string]string{"farmhand.policy": "learned", "farmhand.interval": "3s"}}}, nil
}
func (w worker) Replicas(context.Context, string) (int, int, error) { return w.n, w.n, nil }
func (w worker) Scale(context.Context, string, int) error           { return nil }
func (w worker) Usage(context.Context, string) (u controller.Usage, ok bool, err error) {
	return u, false, nil
}

// old is a policy that has learned from other observations.
type old struct{ policy.Learned }

func (old) Made() int { return policy.ObservationVersion + 1 }

// begin starts a controller on Redis to which some policies are old, by their names,
// and returns its receipts.
func begin(t *testing.T, rdb redis.UniversalClient, owner string, outdated *sync.Map) (*controller.Controller, chan *controller.Receipt) {
	t.Helper()
	receipts := make(chan *controller.Receipt, 100)
	ledgers := redisledger.New(rdb, redisledger.Options{})
	t.Cleanup(ledgers.Close)
	c, err := controller.New(controller.Config{Platform: worker{3}, Ledgers: ledgers, Signals: redissignal.New(rdb, redissignal.Options{}),
		Keeper: rediskeeper.New(rdb, nil), Receipts: redispast.New(rdb, nil), Registry: redisregistry.New(rdb, redisregistry.Limits{}), Referee: referee{}, Owner: owner,
		Load: func(file []byte) (policy.Learned, error) {
			p, err := controller.Load(file)
			if err != nil {
				return nil, err
			}
			if _, is := outdated.Load(p.Name()); is {
				return old{p}, nil
			}
			return p, nil
		},
		Looked: func(l controller.Look) {
			if l.Receipt != nil {
				select {
				case receipts <- l.Receipt:
				default: // nobody waits any more
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	c.Start()
	return c, receipts
}

// await returns the first receipt that is as it should be.
func await(t *testing.T, receipts chan *controller.Receipt, what string, is func(*controller.Receipt) bool) *controller.Receipt {
	t.Helper()
	patience := time.After(20 * time.Second)
	for {
		select {
		case r := <-receipts:
			if is(r) {
				return r
			}
		case <-patience:
			t.Fatalf("no receipt within 20 s: %s", what)
		}
	}
}

// On a real Redis: a promotion reaches the acting controller within one interval; a
// hand-back outlives the controller that made it, and ends with the next promotion.
func TestPromotionsAndHandBacksInRedis(t *testing.T) {
	rdb := redistest.Client(t, redistest.Start(t))
	policies := redisregistry.New(rdb, redisregistry.Limits{})
	outdated := &sync.Map{}
	promote := func(seed uint64, isOld bool) string {
		t.Helper()
		file := registrytest.File(t, seed)
		p, err := controller.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if isOld {
			outdated.Store(p.Name(), true)
		}
		version, err := policies.Import(t.Context(), file, registry.Origin{})
		if err == nil {
			err = policies.Promote(t.Context(), "f", version, registry.Reason{Text: "for the test", Forced: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		return p.Name()
	}
	first := promote(1, true)
	a, receipts := begin(t, rdb, "A", outdated)
	r := await(t, receipts, "a hand-back", func(r *controller.Receipt) bool { return r.HandedBack != nil })
	if r.HandedBack.Cause != "version" || r.By == first || r.Learned.Version != first {
		t.Errorf("%s, %+v", r.Why(), r.HandedBack)
	}
	a.Stop()

	_, receipts = begin(t, rdb, "B", outdated)
	r = await(t, receipts, "a decision of B", func(r *controller.Receipt) bool { return !r.Learned.Loading })
	if r.Controller != "B" || !r.HandNext.Back() || r.HandedBack != nil || r.Hand.Pause != 1800 || r.By == first {
		t.Errorf("%s: %s, %+v", r.Controller, r.Why(), r.Hand)
	}
	var names []string
	for seed := range uint64(3) {
		name := promote(2+seed, false)
		names = append(names, name)
		promoted := time.Now()
		r = await(t, receipts, "a decision of "+name, func(r *controller.Receipt) bool { return r.By == name })
		if took := time.Since(promoted); took > 3*time.Second {
			t.Errorf("the promotion took %s to act, more than the interval", took)
		} else {
			t.Logf("a promotion acted after %s", took)
		}
		if r.HandNext.Back() || r.HandNext.Pause != 0 {
			t.Errorf("%+v", r.HandNext)
		}
	}
	if _, err := policies.Rollback(t.Context(), "f", registry.Reason{}); err != nil {
		t.Fatal(err)
	}
	await(t, receipts, "the policy before the last", func(r *controller.Receipt) bool { return r.By == names[1] })
}

// Where the bytes of the champion in Redis are damaged, the last good policy goes on and
// the farm says so; importing the file again mends it (P86: corrupt weights).
func TestDamagedRegistryInRedis(t *testing.T) {
	rdb := redistest.Client(t, redistest.Start(t))
	policies := redisregistry.New(rdb, redisregistry.Limits{})
	var names, versions []string
	for seed := range uint64(2) {
		file := registrytest.File(t, 1+seed)
		p, err := controller.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		version, err := policies.Import(t.Context(), file, registry.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		names, versions = append(names, p.Name()), append(versions, version)
	}
	promote := func(version string) {
		if err := policies.Promote(t.Context(), "f", version, registry.Reason{Text: "for the test", Forced: true}); err != nil {
			t.Fatal(err)
		}
	}
	promote(versions[0])
	_, receipts := begin(t, rdb, "A", &sync.Map{})
	await(t, receipts, "the first champion", func(r *controller.Receipt) bool { return r.By == names[0] })
	key := "farmhand:{policies}:file:" + versions[1]
	good, err := rdb.Get(t.Context(), key).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	spoilt := bytes.Clone(good)
	spoilt[len(spoilt)-3] ^= 1
	// Between the check of a promotion and the controller's reading.
	pipe := rdb.TxPipeline()
	pipe.Set(t.Context(), key, spoilt, 0)
	pipe.HSet(t.Context(), "farmhand:{policies}:aliases", "champion f", versions[1])
	pipe.Incr(t.Context(), "farmhand:{policies}:revision")
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := await(t, receipts, "a champion that cannot be had", func(r *controller.Receipt) bool { return r.Learned.Note != "" })
	if r.By != names[0] || !strings.Contains(r.Learned.Note, "import the file again") {
		t.Errorf("%s decides: %s", r.By, r.Learned.Note)
	}
	if _, err := policies.Import(t.Context(), good, registry.Origin{}); err != nil {
		t.Fatal(err)
	}
	await(t, receipts, "the mended champion", func(r *controller.Receipt) bool { return r.By == names[1] && r.Learned.Note == "" })
}
