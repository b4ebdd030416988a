package redisledger

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"farmhand/skeleton/ledger"
)

//go:embed scripts/*.lua
var sources embed.FS

// Every script stands in a file of its own, which says what it takes and
// returns; scripts/lib.lua comes before each and documents the keys.
var (
	scriptTouch        = script("touch")
	scriptCommit       = script("commit")
	scriptAbort        = script("abort")
	scriptClose        = script("close")
	scriptCancel       = script("cancel")
	scriptCancelRefs   = script("cancelrefs")
	scriptAck          = script("ack")
	scriptRedrive      = script("redrive")
	scriptTake         = script("take")
	scriptRenew        = script("renew")
	scriptSettle       = script("settle")
	scriptBeat         = script("beat")
	scriptCallbacks    = script("callbacks")
	scriptCallbackDone = script("callbackdone")
	scriptSweep        = script("sweep")
	scriptRepair       = script("repair")
	scriptPage         = script("page")
	scriptForget       = script("forget")
	scriptGauges       = script("gauges")
	scriptAudit        = script("audit")
	scriptPublish      = script("publish")
)

func script(name string) *redis.Script {
	read := func(name string) string {
		b, err := sources.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic("redisledger: " + err.Error()) // embedded: cannot be missing
		}
		return string(b)
	}
	return redis.NewScript(read("lib") + read(name))
}

// run calls a script for the farm. The arguments are those after ARGV[1].
func (l *farm) run(ctx context.Context, s *redis.Script, args ...any) *redis.Cmd {
	return s.Run(ctx, l.store.rdb, []string{l.prefix}, l.argv(args)...)
}

func (l *farm) argv(args []any) []any {
	all := make([]any, 0, len(args)+1)
	return append(append(all, l.store.offset()), args...)
}

// call is a script with its arguments.
type call struct {
	script *redis.Script
	args   []any
}

// runBoth calls two scripts in one round trip. A server that does not know them
// yet is taught, one by one: were only the second known, it would come first.
func (l *farm) runBoth(ctx context.Context, a, b call) (first, second *redis.Cmd) {
	if !l.store.taught.Load() {
		if first = l.run(ctx, a.script, a.args...); first.Err() != nil {
			return first, first
		}
		second = l.run(ctx, b.script, b.args...)
		l.store.taught.Store(second.Err() == nil)
		return first, second
	}
	pipe := l.store.rdb.Pipeline()
	keys := []string{l.prefix}
	first = a.script.EvalSha(ctx, pipe, keys, l.argv(a.args)...)
	second = b.script.EvalSha(ctx, pipe, keys, l.argv(b.args)...)
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	if redis.HasErrorPrefix(first.Err(), "NOSCRIPT") {
		l.store.taught.Store(false)
		first = l.run(ctx, a.script, a.args...)
	}
	if redis.HasErrorPrefix(second.Err(), "NOSCRIPT") {
		second = l.run(ctx, b.script, b.args...)
	}
	return first, second
}

// refusals are the answers of a server that cannot serve now. A script checks
// for them before its first write, so nothing was half done.
var refusals = []string{"LOADING", "READONLY", "MISCONF", "OOM", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "NOAUTH", "WRONGPASS", "NOSCRIPT", "ERR max number of clients"}

// check tells a store that cannot serve apart from everything else.
func check(op string, err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	unavailable := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, redis.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, context.DeadlineExceeded)
	var netErr net.Error
	unavailable = unavailable || errors.As(err, &netErr)
	var opErr *net.OpError
	unavailable = unavailable || errors.As(err, &opErr)
	for _, prefix := range refusals {
		unavailable = unavailable || strings.HasPrefix(err.Error(), prefix)
	}
	// Redis wraps an error inside a script as "ERR … OOM command not allowed …".
	unavailable = unavailable || strings.Contains(err.Error(), "OOM command not allowed") || strings.Contains(err.Error(), "MISCONF")
	if unavailable {
		return fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, op, err)
	}
	return fmt.Errorf("redisledger: %s: %w", op, err)
}
