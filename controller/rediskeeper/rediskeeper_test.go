package rediskeeper_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"farmhand/controller"
	"farmhand/controller/rediskeeper"
	"farmhand/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lease = 10 * time.Second

// bench is a keeper whose clock the test moves.
type bench struct {
	*testing.T
	rdb   *redis.Client
	keep  *rediskeeper.Store
	shift time.Duration
}

// both runs a test on miniredis and on a real redis-server.
func both(t *testing.T, test func(b *bench)) {
	run := func(name string, client func(t *testing.T) *redis.Client) {
		t.Run(name, func(t *testing.T) {
			b := &bench{T: t, rdb: client(t)}
			b.keep = rediskeeper.New(b.rdb, func() time.Duration { return b.shift })
			test(b)
		})
	}
	run("miniredis", func(t *testing.T) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		return c
	})
	run("redis", func(t *testing.T) *redis.Client { return redistest.Client(t, redistest.Start(t)) })
}

func (b *bench) claim(owner string, claims ...controller.Claim) []controller.Held {
	b.Helper()
	held, err := b.keep.Claim(b.Context(), owner, lease, claims)
	if err != nil {
		b.Fatal(err)
	}
	return held
}

// one claims one farm.
func (b *bench) one(owner, farm string, fence int64) controller.Held {
	b.Helper()
	return b.claim(owner, controller.Claim{Farm: farm, Fence: fence})[0]
}

func (b *bench) save(farm string, fence int64, state string) bool {
	b.Helper()
	kept, err := b.keep.Save(b.Context(), []controller.Save{{Farm: farm, Fence: fence, State: []byte(state)}})
	if err != nil {
		b.Fatal(err)
	}
	return kept[0]
}

func (b *bench) kept(farm string) controller.Held {
	b.Helper()
	h, err := b.keep.Kept(b.Context(), farm)
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func (b *bench) is(what string, got, want any) {
	b.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("%s: %v, want %v", what, got, want)
	}
}

// A lease is one controller's until it is over by Redis TIME, or given back. Each
// new holder has a higher fence; with an older one nothing is kept.
func TestLease(t *testing.T) {
	both(t, func(b *bench) {
		for _, farm := range []string{"f", "f.dev", ""} { // "" is the roster
			b.shift = 0
			h := b.one("A", farm, 0)
			b.is("first holder", []any{h.Fence, h.Owner, h.State == nil, h.Overrides == nil}, []any{1, "A", true, true})
			if d := time.Since(h.Now).Abs(); d > time.Minute || h.Now.Location() != time.UTC {
				b.Errorf("the time is %s", h.Now)
			}
			b.is("saved", b.save(farm, 1, "one"), true)
			h = b.one("B", farm, 0)
			b.is("while the lease holds", []any{h.Fence, h.Owner, h.State == nil}, []any{0, "A", true})
			b.is("saved without a lease", b.save(farm, 0, "zero"), false)

			b.shift = lease - time.Second
			h = b.one("A", farm, 1)
			b.is("renewed", []any{h.Fence, h.Owner, h.State == nil}, []any{1, "A", true})
			b.shift += lease - time.Second
			b.is("as long again", b.one("B", farm, 0).Fence, 0)
			b.is("saved late", b.save(farm, 1, "late"), true)

			b.shift += 2 * time.Second // nobody renewed it
			b.is("saved after the lease, which nobody took", b.save(farm, 1, "later"), true)
			h = b.one("B", farm, 0)
			b.is("taken over", []any{h.Fence, h.Owner, string(h.State)}, []any{2, "B", "later"})
			b.is("saved after the takeover", b.save(farm, 1, "too late"), false)
			h = b.one("A", farm, 1)
			b.is("the first one asks again", []any{h.Fence, h.Owner}, []any{0, "B"})
			k := b.kept(farm)
			b.is("kept", []any{k.Fence, k.Owner, string(k.State)}, []any{2, "B", "later"})
			if d := k.Now.Sub(h.Now); d < 0 || d > time.Minute {
				b.Errorf("two clocks: %s apart", d)
			}
		}
	})
}

// Who lost its memory is told the state even of its own lease.
func TestStateOfOnesOwn(t *testing.T) {
	both(t, func(b *bench) {
		b.one("A", "f", 0)
		b.save("f", 1, "one")
		h := b.one("A", "f", 0)
		b.is("own lease", []any{h.Fence, string(h.State)}, []any{1, "one"})
	})
}

func TestRelease(t *testing.T) {
	both(t, func(b *bench) {
		b.one("A", "f", 0)
		b.one("A", "g", 0)
		release := func(owner, farm string, fence int64) {
			if err := b.keep.Release(b.Context(), owner, []controller.Claim{{Farm: farm, Fence: fence}}); err != nil {
				b.Fatal(err)
			}
		}
		release("B", "f", 1) // not its own
		release("A", "f", 7)
		b.is("still held", b.one("B", "f", 0).Fence, 0)
		release("A", "f", 1)
		release("A", "none", 1)
		h := b.one("B", "f", 0)
		b.is("taken at once", []any{h.Fence, h.Owner}, []any{2, "B"})
		b.is("the other one", b.one("B", "g", 0).Fence, 0)
		release("A", "f", 1) // again, late
		b.is("B keeps it", b.one("C", "f", 0).Owner, "B")
		if n := b.rdb.Exists(b.Context(), "farmhand:{none}:control").Val(); n != 0 {
			b.Error("a release made a farm")
		}
	})
}

// A lease moves with Redis TIME only: a clock that is set back keeps it longer,
// never shorter.
func TestClockSetBack(t *testing.T) {
	both(t, func(b *bench) {
		b.one("A", "f", 0)
		b.shift = -30 * time.Second
		b.is("thirty seconds before", b.one("B", "f", 0).Owner, "A")
		b.is("renewed then", b.one("A", "f", 1).Fence, 1)
		b.shift += lease + time.Second
		b.is("it lasts as long as ever", b.one("B", "f", 0).Fence, 2)
	})
}

func TestOverrides(t *testing.T) {
	both(t, func(b *bench) {
		set := func(old, new string) bool {
			done, err := b.keep.Override(b.Context(), "f", []byte(old), []byte(new))
			if err != nil {
				b.Fatal(err)
			}
			return done
		}
		b.is("from nothing", set("", `{"a":1}`), true)
		b.is("from what is not there any more", set("", `{"a":2}`), false)
		b.is("from what is there", set(`{"a":1}`, `{"a":3}`), true)
		b.is("in the claim", string(b.one("A", "f", 0).Overrides), `{"a":3}`)
		b.is("in the claim of another", string(b.one("B", "f", 0).Overrides), `{"a":3}`)
		b.is("in what is kept", string(b.kept("f").Overrides), `{"a":3}`)
		b.is("to nothing", set(`{"a":3}`, ""), true)
		if h := b.kept("f"); h.Overrides != nil || h.Fence != 1 {
			b.Errorf("%+v", h)
		}
	})
}

// Many farms are one round trip, and each has its own answer.
func TestBatches(t *testing.T) {
	both(t, func(b *bench) {
		const n = 200
		var claims []controller.Claim
		var saves []controller.Save
		for i := range n {
			farm := fmt.Sprint("f", i)
			claims = append(claims, controller.Claim{Farm: farm})
			saves = append(saves, controller.Save{Farm: farm, Fence: 1, State: bytes.Repeat([]byte{byte(i), 0, '\n'}, 1000)})
		}
		b.one("B", "f7", 0)
		b.one("B", "f8", 0)
		b.shift = lease
		b.one("B", "f8", 1)
		for i, h := range b.claim("A", claims...) {
			want := []any{1, "A"}
			switch i {
			case 7:
				want = []any{2, "A"}
			case 8:
				want = []any{0, "B"}
			}
			b.is(claims[i].Farm, []any{h.Fence, h.Owner}, want)
		}
		kept, err := b.keep.Save(b.Context(), saves)
		if err != nil {
			b.Fatal(err)
		}
		for i, ok := range kept {
			b.is("saved "+saves[i].Farm, ok, i != 7)
		}
		b.is("state", bytes.Equal(b.kept("f99").State, saves[99].State), true)
		if held := b.claim("A"); len(held) != 0 {
			b.Errorf("of no farms: %v", held)
		}
		if kept, err := b.keep.Save(b.Context(), nil); err != nil || len(kept) != 0 {
			b.Errorf("of no farms: %v, %v", kept, err)
		}
	})
}

// A server that forgot the scripts, as after a restart, is taught them again.
func TestScriptsForgotten(t *testing.T) {
	both(t, func(b *bench) {
		for i := range int64(3) {
			if err := b.rdb.ScriptFlush(b.Context()).Err(); err != nil {
				b.Fatal(err)
			}
			b.is("claims", len(b.claim("A", controller.Claim{Farm: "f", Fence: min(i, 1)}, controller.Claim{Farm: "g"})), 2)
			b.rdb.ScriptFlush(b.Context())
			b.is("saves", b.save("f", 1, fmt.Sprint(i)), true)
			b.rdb.ScriptFlush(b.Context())
			if done, err := b.keep.Override(b.Context(), "f", b.kept("f").Overrides, []byte(fmt.Sprint(i))); !done || err != nil {
				b.Errorf("override: %v, %v", done, err)
			}
			b.rdb.ScriptFlush(b.Context())
			if err := b.keep.Release(b.Context(), "A", []controller.Claim{{Farm: "g", Fence: 1}}); err != nil {
				b.Error(err)
			}
		}
		b.is("fence", b.kept("f").Fence, 1)
	})
}

// Of many that ask at once exactly one gets the lease.
func TestOneHolder(t *testing.T) {
	both(t, func(b *bench) {
		for round := range 5 {
			var got sync.Map
			var asks sync.WaitGroup
			for i := range 8 {
				owner := fmt.Sprint("owner", round, i)
				asks.Go(func() {
					held, err := b.keep.Claim(context.Background(), owner, lease, []controller.Claim{{Farm: "f"}})
					if err != nil {
						b.Error(err)
					} else if held[0].Fence > 0 {
						got.Store(owner, held[0].Fence)
					}
				})
			}
			asks.Wait()
			holders := 0
			got.Range(func(owner, fence any) bool {
				holders++
				b.is("fence of "+owner.(string), fence, round+1)
				return true
			})
			b.is("holders", holders, 1)
			b.shift += lease + time.Second
		}
	})
}

// A Redis that is away is an error that says so, of every call.
func TestAway(t *testing.T) {
	s := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	k := rediskeeper.New(c, nil)
	s.SetError("LOADING Redis is loading the dataset in memory")
	for name, call := range map[string]func() error{
		"claim":    func() error { _, err := k.Claim(t.Context(), "A", lease, []controller.Claim{{Farm: "f"}}); return err },
		"release":  func() error { return k.Release(t.Context(), "A", []controller.Claim{{Farm: "f"}}) },
		"save":     func() error { _, err := k.Save(t.Context(), []controller.Save{{Farm: "f"}}); return err },
		"override": func() error { _, err := k.Override(t.Context(), "f", nil, nil); return err },
		"kept":     func() error { _, err := k.Kept(t.Context(), "f"); return err },
	} {
		if call() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s.SetError("")
	if _, err := k.Kept(t.Context(), "f"); err != nil {
		t.Error(err)
	}
}
