package redisregistry_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"farmhand/internal/redistest"
	"farmhand/registry"
	"farmhand/registry/redisregistry"
	"farmhand/registry/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a registry and its Redis.
type bench struct {
	*testing.T
	registry.Registry
	rdb *redis.Client
}

// both runs a test on miniredis and on a real redis-server.
func both(t *testing.T, l redisregistry.Limits, test func(b *bench)) {
	t.Run("miniredis", func(t *testing.T) {
		c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		test(&bench{t, redisregistry.New(c, l), c})
	})
	t.Run("redis", func(t *testing.T) {
		c := redistest.Client(t, redistest.Start(t))
		test(&bench{t, redisregistry.New(c, l), c})
	})
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) wants(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%s: %v, want %v", what, err, want)
	}
}

// put imports the file of a seed.
func (b *bench) put(seed uint64) string {
	b.Helper()
	v, err := b.Import(b.Context(), registrytest.File(b, seed), registry.Origin{By: "test", Note: "seed"})
	b.must(err)
	return v
}

// champion is what acts for a farm.
func (b *bench) champion(farm string) string {
	b.Helper()
	v, _, err := b.Champion(b.Context(), farm)
	b.must(err)
	return v
}

// is checks a farm's aliases.
func (b *bench) is(farm, champion, challenger, previous string) {
	b.Helper()
	a, err := b.Aliases(b.Context(), farm)
	b.must(err)
	if want := (registry.Aliases{Champion: champion, Challenger: challenger, Previous: previous}); a != want {
		b.Errorf("the aliases of %s are %+v, want %+v", farm, a, want)
	}
}

func (b *bench) revision() int64 {
	b.Helper()
	n, err := b.Revision(b.Context())
	b.must(err)
	return n
}

func forced(why string) registry.Reason { return registry.Reason{By: "me", Text: why, Forced: true} }

func promoted(champion string) registry.Verdict {
	v := registry.Verdict{Champion: champion, Rule: "staffing", Checks: []registry.Check{{Metric: "worker_seconds", Value: -0.1, Lo: -0.2, Hi: -0.01, N: 20, Outcome: registry.Promoted}}}
	v.Conclude()
	return v
}

func TestImport(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		file := registrytest.File(t, 1)
		v := b.put(1)
		if v != registry.VersionOf(file) || b.put(1) != v {
			b.Errorf("the version is %s, want the hash of the bytes, however often it comes", v)
		}
		got, err := b.Policy(b.Context(), v)
		b.must(err)
		if string(got) != string(file) {
			b.Error("what comes out is not what was put in")
		}
		other := b.put(2)
		_, err = b.Import(b.Context(), file, registry.Origin{By: "another", Note: "again"})
		b.must(err)
		list, err := b.List(b.Context())
		b.must(err)
		if len(list) != 2 || list[0].Version != other || list[1].Version != v {
			b.Fatalf("the list is %+v: want the newest first", list)
		}
		if k := list[1]; k.Origin != (registry.Origin{By: "test", Note: "seed"}) || k.Bytes != len(file) || k.Summary.Learner != "dqn" || time.Since(k.At).Abs() > time.Minute || len(k.Uses) > 0 {
			b.Errorf("it is said to be %+v", k)
		}
		for _, name := range []string{v, v[:12], v[:4]} {
			got, err := b.Resolve(b.Context(), name)
			b.must(err)
			if got != v {
				b.Errorf("%s means %s", name, got)
			}
		}
		for _, name := range []string{"", v[:3], "0000", "champion", v + "0"} {
			_, err := b.Resolve(b.Context(), name)
			b.wants("resolve "+name, err, registry.ErrUnknown)
		}
		_, err = b.Policy(b.Context(), registry.VersionOf(nil))
		b.wants("unknown", err, registry.ErrUnknown)
		_, err = b.Policy(b.Context(), "champion")
		b.wants("no version", err, registry.ErrUnknown)
	})
}

// What cannot run leaves nothing behind.
func TestImportRefuses(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		file := registrytest.File(t, 1)
		long := strings.Repeat("x", registry.MaxText+1)
		for _, bad := range [][]byte{nil, []byte("{}"), file[:len(file)-8], make([]byte, registry.MaxFile+1)} {
			_, err := b.Import(b.Context(), bad, registry.Origin{})
			b.wants("import", err, registry.ErrInvalid)
		}
		_, err := b.Import(b.Context(), file, registry.Origin{Note: long})
		b.wants("a long note", err, registry.ErrInvalid)
		if n := b.rdb.DBSize(b.Context()).Val(); n != 0 {
			b.Errorf("%d keys are left", n)
		}
	})
}

// The oldest versions that no farm names make room; what a farm names stays.
func TestRoom(t *testing.T) {
	both(t, redisregistry.Limits{Versions: 3}, func(b *bench) {
		ctx := b.Context()
		named := b.put(1)
		b.must(b.Promote(ctx, "f", named, forced("first")))
		old := b.put(2)
		b.must(b.Judge(ctx, "f", old, promoted("")))
		b.put(3)
		b.put(4)
		if _, err := b.Policy(ctx, named); err != nil {
			b.Error(err)
		}
		_, err := b.Policy(ctx, old)
		b.wants("the oldest that nobody names", err, registry.ErrUnknown)
		if list, err := b.List(ctx); err != nil || len(list) != 3 {
			b.Errorf("%d versions, %v", len(list), err)
		}
		if keys := b.rdb.Keys(ctx, "*"+old+"*").Val(); len(keys) > 0 {
			b.Errorf("of the one that went there is %v", keys)
		}
		three, four := b.put(3), b.put(4)
		b.must(b.Promote(ctx, "g", three, forced("x")))
		b.must(b.Challenge(ctx, "h", four, registry.Reason{}))
		_, err = b.Import(ctx, registrytest.File(b, 5), registry.Origin{})
		b.wants("all are named", err, registry.ErrFull)
		if list, err := b.List(ctx); err != nil || len(list) != 3 {
			b.Errorf("a full registry lost something: %d versions, %v", len(list), err)
		}
		before := b.revision()
		b.must(b.Forget(ctx, "g"))
		b.is("g", "", "", "")
		if h, err := b.History(ctx, "g"); len(h) > 0 || err != nil || b.revision() == before {
			b.Errorf("of a farm that is forgotten there is %+v, %v", h, err)
		}
		b.put(5)
		_, err = b.Policy(ctx, three)
		b.wants("the one that was named by a farm that is forgotten", err, registry.ErrUnknown)
		b.is("f", named, "", "")
		b.is("h", "", four, "")
	})
	size := len(registrytest.File(t, 1))
	both(t, redisregistry.Limits{Bytes: 5 * size / 2}, func(b *bench) {
		for seed := range uint64(4) {
			b.put(seed)
		}
		if list, err := b.List(b.Context()); err != nil || len(list) != 2 {
			b.Errorf("%d versions fit, %v", len(list), err)
		}
	})
}

// The life of a farm's champions.
func TestPromotionAndRollback(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		ctx, one, two := b.Context(), b.put(1), b.put(2)
		b.is("f", "", "", "")
		_, err := b.Rollback(ctx, "f", registry.Reason{})
		b.wants("nothing to roll back", err, registry.ErrNothing)
		start := b.revision()
		b.must(b.Challenge(ctx, "f", one, registry.Reason{By: "trainer"}))
		b.is("f", "", one, "")

		b.wants("no verdict", b.Promote(ctx, "f", one, registry.Reason{}), registry.ErrRefused)
		b.must(b.Judge(ctx, "f", one, registry.Verdict{Outcome: registry.Inconclusive}))
		b.wants("inconclusive", b.Promote(ctx, "f", one, registry.Reason{}), registry.ErrRefused)
		b.must(b.Judge(ctx, "f", one, promoted("")))
		b.wants("for another farm", b.Promote(ctx, "g", one, registry.Reason{}), registry.ErrRefused)
		b.must(b.Promote(ctx, "f", one, registry.Reason{By: "gate"}))
		b.is("f", one, "", "")
		now := b.revision()
		b.must(b.Promote(ctx, "f", one, registry.Reason{By: "gate"})) // as after a redelivery
		if now == start || b.revision() != now {
			b.Errorf("the revision went from %d to %d, and to %d by nothing", start, now, b.revision())
		}

		b.must(b.Judge(ctx, "f", two, promoted("")))
		b.wants("compared with another champion", b.Promote(ctx, "f", two, registry.Reason{}), registry.ErrRefused)
		b.must(b.Judge(ctx, "f", two, registry.Verdict{Outcome: registry.Rejected, Champion: one}))
		b.wants("rejected", b.Promote(ctx, "f", two, registry.Reason{}), registry.ErrRefused)
		b.wants("forced, no reason", b.Promote(ctx, "f", two, forced(" ")), registry.ErrRefused)
		b.is("f", one, "", "")
		b.must(b.Promote(ctx, "f", two, forced("we know better")))
		b.is("f", two, "", one)

		back, err := b.Rollback(ctx, "f", registry.Reason{By: "me", Text: "we did not"})
		b.must(err)
		if back != one {
			b.Errorf("rolled back to %s", back)
		}
		b.is("f", one, "", "")
		_, err = b.Rollback(ctx, "f", registry.Reason{})
		b.wants("a second rollback", err, registry.ErrNothing)
		b.must(b.Judge(ctx, "f", two, promoted(one)))
		b.wants("what was rolled back", b.Promote(ctx, "f", two, registry.Reason{By: "gate"}), registry.ErrRefused)
		b.is("f", one, "", "")

		h, err := b.History(ctx, "f")
		b.must(err)
		var kinds []registry.Kind
		for _, c := range h {
			kinds = append(kinds, c.Kind)
		}
		if !slices.Equal(kinds, []registry.Kind{registry.Rollback, registry.Promotion, registry.Promotion, registry.Challenge}) {
			b.Fatalf("the history is %+v", h)
		}
		if c := h[1]; c.From != one || c.To != two || c.By != "me" || c.Text != "we know better" || !c.Forced || time.Since(c.At).Abs() > time.Minute {
			b.Errorf("the forced promotion is remembered as %+v", c)
		}
		b.is("g", "", "", "")
	})
}

// The first champion gives way to none.
func TestRollbackOfTheFirst(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		one := b.put(1)
		b.must(b.Promote(b.Context(), "f", one, forced("first")))
		if v, err := b.Rollback(b.Context(), "f", registry.Reason{}); v != "" || err != nil {
			b.Errorf("rolled back to %q, %v", v, err)
		}
		b.is("f", "", "", "")
	})
}

// A champion begins a new term when it is promoted again by force, which the history
// tells, and not when a gate says again what it said before.
func TestTerms(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		ctx, one, two := b.Context(), b.put(1), b.put(2)
		term := func() int64 {
			b.Helper()
			_, n, err := b.Champion(ctx, "f")
			b.must(err)
			return n
		}
		b.must(b.Promote(ctx, "f", one, forced("first")))
		b.must(b.Promote(ctx, "f", two, forced("second")))
		began, revision := term(), b.revision()
		b.must(b.Judge(ctx, "f", two, promoted(one)))
		b.must(b.Promote(ctx, "f", two, registry.Reason{By: "gate"}))
		b.must(b.Challenge(ctx, "f", one, registry.Reason{}))
		if term() != began {
			b.Error("a gate that says it again, or a challenger, begins a term")
		}
		b.wants("without a reason", b.Promote(ctx, "f", two, forced("")), registry.ErrRefused)
		b.must(b.Promote(ctx, "f", two, forced("the machine is mended")))
		if term() == began || b.revision() <= revision+1 {
			b.Errorf("term %d, revision %d: want others than %d and %d", term(), b.revision(), began, revision)
		}
		b.is("f", two, one, one)
		h, err := b.History(ctx, "f")
		b.must(err)
		if c := h[0]; c.From != two || c.To != two || c.Kind != registry.Promotion || c.Text != "the machine is mended" {
			b.Errorf("it is remembered as %+v", c)
		}
		began = term()
		_, err = b.Rollback(ctx, "f", registry.Reason{})
		b.must(err)
		if b.is("f", one, one, ""); term() == began {
			b.Error("a rollback begins no term")
		}
	})
}

func TestUnknownNames(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		ctx, missing := b.Context(), registry.VersionOf(nil)
		for _, v := range []string{"", "champion", missing} {
			b.wants("promote", b.Promote(ctx, "f", v, forced("x")), registry.ErrUnknown)
			b.wants("challenge", b.Challenge(ctx, "f", v, registry.Reason{}), registry.ErrUnknown)
			b.wants("judge", b.Judge(ctx, "f", v, promoted("")), registry.ErrUnknown)
		}
		one := b.put(1)
		for _, farm := range []string{"", "a b", "a\nb", "{x}", strings.Repeat("x", 201)} {
			if err := b.Promote(ctx, farm, one, forced("x")); err == nil {
				b.Errorf("promoted for %.20q", farm)
			}
		}
		if err := b.Promote(ctx, "f", one, forced(strings.Repeat("x", registry.MaxText+1))); err == nil {
			b.Error("promoted with a novel for a reason")
		}
	})
}

// A history keeps the last changes.
func TestHistoryIsBounded(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		versions := []string{b.put(1), b.put(2)}
		for i := range registry.HistoryLength + 3 {
			b.must(b.Promote(b.Context(), "f", versions[i%2], forced("to and fro")))
		}
		h, err := b.History(b.Context(), "f")
		b.must(err)
		if n := b.rdb.LLen(b.Context(), "farmhand:{policies}:history:f").Val(); len(h) != registry.HistoryLength || n != int64(len(h)) {
			b.Errorf("%d changes, %d kept", len(h), n)
		}
	})
}

// Of many who promote at once each sees the champion of another one or its own; one
// history says how it went.
func TestPromotionsAtOnce(t *testing.T) {
	b := &bench{T: t, rdb: redistest.Client(t, redistest.Start(t))}
	b.Registry = redisregistry.New(b.rdb, redisregistry.Limits{})
	var versions []string
	for seed := range uint64(8) {
		versions = append(versions, b.put(seed))
	}
	var all sync.WaitGroup
	for _, v := range versions {
		all.Go(func() {
			if err := b.Promote(t.Context(), "f", v, forced("race")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	h, err := b.History(t.Context(), "f")
	b.must(err)
	if len(h) != len(versions) {
		t.Fatalf("%d changes", len(h))
	}
	slices.Reverse(h)
	before := ""
	for _, c := range h {
		if c.From != before {
			t.Errorf("from %q to %q, after %q", c.From, c.To, before)
		}
		before = c.To
	}
	if b.champion("f") != before {
		t.Error("the champion is not the last of the history")
	}
}
