package redisregistry_test

import (
	"strings"
	"testing"

	"farmhand/registry"
	"farmhand/registry/redisregistry"
	"farmhand/registry/registrytest"
)

const keys = "farmhand:{policies}:"

// Bytes that are not those of their version are an error that says so. Nothing is
// promoted, or rolled back to, that is damaged; the champion stays. Importing the file
// again mends it.
func TestDamagedBytes(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		ctx, one, two, three := b.Context(), b.put(1), b.put(2), b.put(3)
		b.must(b.Promote(ctx, "f", one, forced("x")))
		b.must(b.Promote(ctx, "f", two, forced("x")))
		for name, spoil := range map[string]func(version string){
			"changed": func(v string) {
				file := registrytest.File(b, 1)
				file[len(file)-3] ^= 1
				b.rdb.Set(ctx, keys+"file:"+v, file, 0)
			},
			"another policy": func(v string) { b.rdb.Set(ctx, keys+"file:"+v, registrytest.File(b, 9), 0) },
			"empty":          func(v string) { b.rdb.Set(ctx, keys+"file:"+v, "", 0) },
			"gone":           func(v string) { b.rdb.Del(ctx, keys+"file:"+v) },
			"another type":   func(v string) { b.rdb.Del(ctx, keys+"file:"+v); b.rdb.LPush(ctx, keys+"file:"+v, "x") },
		} {
			spoil(one)
			spoil(three)
			_, err := b.Policy(ctx, one)
			b.wants(name, err, registry.ErrDamaged)
			_, err = b.Rollback(ctx, "f", registry.Reason{})
			b.wants(name+": rollback", err, registry.ErrDamaged)
			b.wants(name+": promote", b.Promote(ctx, "f", three, forced("x")), registry.ErrDamaged)
			b.is("f", two, "", one)
			if got := b.put(1); got != one {
				b.Fatal("another version")
			}
			b.put(3)
			if _, err := b.Policy(ctx, one); err != nil {
				b.Errorf("%s: not mended: %v", name, err)
			}
		}
	})
}

// Of a farm's aliases the damaged one alone is not usable: the error names it, and a
// forced promotion, also of the champion itself, mends it.
func TestOneDamagedAlias(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		ctx, one, two := b.Context(), b.put(1), b.put(2)
		for _, c := range []struct {
			alias, text, promote string
			rest, mended         registry.Aliases
			back                 error
		}{
			{"champion", "not a version", one, registry.Aliases{Challenger: one, Previous: one}, registry.Aliases{Champion: one}, nil},
			{"challenger", "garbage", one, registry.Aliases{Champion: two, Previous: one}, registry.Aliases{Champion: one, Previous: two}, nil},
			{"challenger", strings.Repeat("x", 64), two, registry.Aliases{Champion: two, Previous: one}, registry.Aliases{Champion: two, Previous: one}, nil},
			{"previous", "garbage", two, registry.Aliases{Champion: two, Challenger: one}, registry.Aliases{Champion: two, Challenger: one}, registry.ErrDamaged},
		} {
			damage := func() {
				b.rdb.HSet(ctx, keys+"aliases", "champion f", two, "challenger f", one, "previous f", one)
				b.is("f", two, one, one)
				b.rdb.HSet(ctx, keys+"aliases", c.alias+" f", c.text)
			}
			damage()
			a, err := b.Aliases(ctx, "f")
			if b.wants(c.alias, err, registry.ErrDamaged); a != c.rest || !strings.Contains(err.Error(), "the "+c.alias+" of f is ") {
				b.Errorf("%s is damaged: %+v, %v", c.alias, a, err)
			}
			_, err = b.Rollback(ctx, "f", registry.Reason{})
			b.wants(c.alias+": rollback", err, c.back)
			damage()
			b.must(b.Promote(ctx, "f", c.promote, forced("mended")))
			b.is("f", c.mended.Champion, c.mended.Challenger, c.mended.Previous)
			h, err := b.History(ctx, "f")
			b.must(err)
			if h[0].From != c.rest.Champion {
				b.Errorf("%s was damaged: from %q, want %q", c.alias, h[0].From, c.rest.Champion)
			}
		}
	})
}

// Aliases, lists and histories that are not what was written are errors too, and who
// insists may put another champion in their place.
func TestDamagedAliases(t *testing.T) {
	both(t, redisregistry.Limits{}, func(b *bench) {
		ctx, one := b.Context(), b.put(1)
		b.must(b.Judge(ctx, "f", one, promoted("")))
		b.rdb.HSet(ctx, keys+"aliases", "champion f", "nonsense")
		_, _, err := b.Champion(ctx, "f")
		b.wants("champion", err, registry.ErrDamaged)
		b.wants("promote", b.Promote(ctx, "f", one, registry.Reason{}), registry.ErrDamaged)
		b.must(b.Promote(ctx, "f", one, forced("the registry is damaged")))
		b.is("f", one, "", "")
		b.rdb.HSet(ctx, keys+"terms", "f", "many")
		_, _, err = b.Champion(ctx, "f")
		b.wants("term", err, registry.ErrDamaged)
		b.must(b.Promote(ctx, "f", one, forced("the term is damaged")))
		b.is("f", one, "", "")

		b.rdb.LPush(ctx, keys+"history:f", "garbage")
		h, err := b.History(ctx, "f")
		b.wants("history", err, registry.ErrDamaged)
		if len(h) != 2 || h[1].From != "" || h[1].To != one || h[1].Text != "the registry is damaged" {
			b.Errorf("the rest of the history is %+v", h)
		}
		b.rdb.HSet(ctx, keys+"verdicts:"+one, "f", "{")
		_, err = b.List(ctx)
		b.wants("verdict", err, registry.ErrDamaged)
		b.rdb.HSet(ctx, keys+"meta", one, "{")
		_, err = b.List(ctx)
		b.wants("meta", err, registry.ErrDamaged)
		b.rdb.HDel(ctx, keys+"verdicts:"+one, "f")
		b.put(1)
		if list, err := b.List(ctx); err != nil || list[0].Origin.By != "test" {
			b.Errorf("after the file came again: %+v, %v", list, err)
		}

		for _, key := range []string{"aliases", "history:f", "order", "meta"} {
			b.rdb.Del(ctx, keys+key)
			b.rdb.Set(ctx, keys+key, "x", 0)
		}
		_, _, err = b.Champion(ctx, "f")
		b.wants("champion of another type", err, registry.ErrDamaged)
		_, err = b.History(ctx, "f")
		b.wants("history of another type", err, registry.ErrDamaged)
		_, err = b.Resolve(ctx, one[:8])
		b.wants("order of another type", err, registry.ErrDamaged)
		_, err = b.Import(ctx, registrytest.File(b, 7), registry.Origin{})
		b.wants("import", err, registry.ErrDamaged)
	})
}
