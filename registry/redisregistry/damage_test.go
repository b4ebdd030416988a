package redisregistry_test

import (
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

		b.rdb.LPush(ctx, keys+"history:f", "garbage")
		_, err = b.History(ctx, "f")
		b.wants("history", err, registry.ErrDamaged)
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
