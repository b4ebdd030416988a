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
// returns. scripts/base.lua comes before each and documents the keys; between the
// two stand the parts that the script is built of.
var (
	scriptTouch        = script("touch")
	scriptCommit       = script("books", "queue", "commit")
	scriptAbort        = script("abort")
	scriptClose        = script("books", "close")
	scriptCancel       = script("runs", "books", "queue", "cancel")
	scriptCancelRefs   = script("runs", "books", "queue", "fate", "cancelrefs")
	scriptAck          = script("books", "ack")
	scriptRedrive      = script("runs", "books", "queue", "fate", "redrive")
	scriptTake         = script("runs", "books", "queue", "window", "fate", "taking", "take")
	scriptRenew        = script("runs", "books", "queue", "fate", "renew")
	scriptSettle       = script("runs", "books", "queue", "window", "fate", "settling", "settle")
	scriptExchange     = script("runs", "books", "queue", "window", "fate", "settling", "taking", "exchange")
	scriptBeat         = script("beat")
	scriptCallbacks    = script("callbacks")
	scriptCallbackDone = script("callbackdone")
	scriptSweep        = script("runs", "books", "queue", "window", "fate", "sweep")
	scriptRepair       = script("runs", "books", "queue", "fate", "repair")
	scriptPage         = script("page")
	scriptForget       = script("forget")
	scriptGauges       = script("runs", "books", "queue", "window", "fate", "gauges")
	scriptAudit        = script("runs", "books", "queue", "fate", "audit")
	scriptPublish      = script("window", "publish")
)

func script(files ...string) *redis.Script {
	var source strings.Builder
	for _, name := range append([]string{"base"}, files...) {
		b, err := sources.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic("redisledger: " + err.Error()) // embedded: cannot be missing
		}
		source.Write(b)
	}
	return redis.NewScript(source.String())
}

// run calls a script for the farm. The arguments are those after ARGV[1].
func (l *farm) run(ctx context.Context, s *redis.Script, args ...any) *redis.Cmd {
	return s.Run(ctx, l.store.rdb, []string{l.prefix}, l.argv(args)...)
}

func (l *farm) argv(args []any) []any {
	all := make([]any, 0, len(args)+1)
	return append(append(all, l.store.offset()), args...)
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
