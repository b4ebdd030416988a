package blocklog

import (
	"context"
	"embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var sources embed.FS

// Every script stands in a file of its own, which says what it takes and
// returns; scripts/lib.lua comes before each and documents the keys.
var (
	scriptAppend = script("lib", "write", "append")
	scriptSeal   = script("lib", "write", "seal")
	scriptRead   = script("lib", "read")
)

func script(parts ...string) *redis.Script {
	var all []byte
	for _, name := range parts {
		b, err := sources.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic("blocklog: " + err.Error()) // embedded: cannot be missing
		}
		all = append(all, b...)
	}
	return redis.NewScript(string(all))
}

// call is a script's call for one log.
type call struct {
	key  string
	args []any // those after ARGV[1]
}

// run calls a script for many logs in one round trip, three where the server
// does not know the script yet. Each call has an error of its own.
func (s *Store) run(ctx context.Context, sc *redis.Script, calls []call) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(calls))
	todo := make([]int, len(calls))
	for i := range todo {
		todo[i] = i
	}
	for taught := false; len(todo) > 0; taught = true {
		pipe := s.rdb.Pipeline()
		for _, i := range todo {
			args := append([]any{s.shift().Microseconds()}, calls[i].args...)
			cmds[i] = sc.EvalSha(ctx, pipe, []string{calls[i].key}, args...)
		}
		_, _ = pipe.Exec(ctx) // each command keeps its own error
		if taught {
			break
		}
		var unknown []int
		for _, i := range todo {
			if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
				unknown = append(unknown, i)
			}
		}
		if todo = unknown; len(todo) > 0 {
			if err := sc.Load(ctx, s.rdb).Err(); err != nil {
				for _, i := range todo {
					cmds[i].SetErr(fmt.Errorf("load a script: %w", err))
				}
				break
			}
		}
	}
	return cmds
}
