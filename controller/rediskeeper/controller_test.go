package rediskeeper_test

import (
	"context"
	"encoding/json"
	"testing"

	"farmhand/controller"
	"farmhand/skeleton/ledger/memledger"
	"farmhand/skeleton/signal"
)

// platform has one worker.
type platform struct{ desired int }

func (p *platform) Workers(context.Context) ([]controller.Worker, error) {
	return []controller.Worker{{Name: "f", Labels: map[string]string{"farmhand.worker": "true"}, Desired: p.desired, Ready: p.desired}}, nil
}

func (p *platform) Replicas(context.Context, string) (int, int, error) {
	return p.desired, p.desired, nil
}
func (p *platform) Scale(_ context.Context, _ string, n int) error { p.desired = n; return nil }
func (p *platform) Usage(context.Context, string) (u controller.Usage, ok bool, err error) {
	return u, false, nil
}

// nothing has been measured.
type nothing struct{}

func (nothing) Read(context.Context, map[string]int64) (map[string]signal.Reading, error) {
	return nil, nil
}

// memory is a log, by farm, newest first.
type memory map[string][][]byte

func (m memory) Append(_ context.Context, entries []controller.Entry) error {
	for _, e := range entries {
		m[e.Farm] = append([][]byte{e.Data}, m[e.Farm]...)
	}
	return nil
}

func (m memory) Tail(_ context.Context, farm string, n int) ([][]byte, error) {
	return m[farm][:min(n, len(m[farm]))], nil
}

// Controllers hand a farm over through Redis.
func TestControllers(t *testing.T) {
	both(t, func(b *bench) {
		p, ledgers := &platform{desired: 1}, memledger.New(memledger.Options{})
		log := memory{}
		create := func(owner string) *controller.Controller {
			c, err := controller.New(controller.Config{Platform: p, Ledgers: ledgers, Signals: nothing{}, Keeper: b.keep, Receipts: log, Owner: owner})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(c.Stop)
			return c
		}
		step := func(c *controller.Controller) {
			if err := c.Step(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		a, other := create("A"), create("B")
		step(a)
		step(other) // in vain
		slots := "3"
		if err := other.Override(b.Context(), "f", map[string]*string{"slots": &slots}, 0); err != nil {
			b.Fatal(err)
		}
		a.Stop()
		c := create("C")
		step(c)
		list, err := log.Tail(b.Context(), "f", 9)
		if err != nil || len(list) != 2 {
			b.Fatalf("%d receipts, %v", len(list), err)
		}
		var r controller.Receipt
		if err := json.Unmarshal(list[0], &r); err != nil {
			b.Fatal(err)
		}
		if err := r.Replay(); err != nil {
			b.Error(err)
		}
		b.is("last receipt", []any{r.Controller, r.Seq, r.Fence, r.Observation.Slots}, []any{"C", 2, 2, 3})
	})
}
