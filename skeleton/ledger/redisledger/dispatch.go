package redisledger

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Take implements ledger.Dispatch.
func (l *farm) Take(ctx context.Context, owner string, max int) (ledger.Taken, error) {
	return l.take(ctx, max, false)
}

// TakeAny implements ledger.Dispatch.
func (l *farm) TakeAny(ctx context.Context, owner string, max int) (ledger.Taken, error) {
	return l.take(ctx, max, true)
}

func (l *farm) take(ctx context.Context, max int, anyway bool) (ledger.Taken, error) {
	a, err := l.run(ctx, scriptTake, l.takeArgs(l.dispatchArgs(0), max, anyway)...).Slice()
	if err != nil {
		return ledger.Taken{}, check("take", err)
	}
	return l.taken(ctx, a)
}

// dispatchArgs begins the arguments of the scripts take, settle and exchange, with
// room for n more.
func (l *farm) dispatchArgs(n int) []any {
	limits := l.store.limits
	return append(make([]any, 0, 16+n), skeleton.LostBudget, limits.Retention.Microseconds(), limits.DeadRetains.Microseconds())
}

// takeArgs appends what scripts/taking.lua takes.
func (l *farm) takeArgs(args []any, max int, anyway bool) []any {
	return append(args, min(max, ledger.MaxBatch), flag(anyway), l.store.limits.KeptBytes, ledger.LeaseTime.Microseconds(), ledger.MaxBatch)
}

// taken reads what scripts/taking.lua returns. A task whose record cannot be read
// dies alone.
func (l *farm) taken(ctx context.Context, a []any) (ledger.Taken, error) {
	taken := micros(a[0].(string))
	t := ledger.Taken{Window: integer(a[1]), Live: integer(a[2]), Waiting: integer(a[3]), Blocked: a[5].(string)}
	if next := integer(a[4]); next >= 0 {
		t.Next = time.Duration(next+1) * time.Microsecond // never 0, which means none
	}
	fence := a[6].(int64)
	runs := map[string]runInfo{}
	i := 7
	for ; i < len(a) && a[i] != ""; i += 2 {
		run, err := decodeRun(a[i+1].(string))
		if err != nil {
			return t, err
		}
		run.id = l.id(run.job)
		runs[a[i].(string)] = run
	}
	if i >= len(a) {
		return t, nil
	}
	var broken []ledger.Outcome
	for i++; i < len(a); {
		run, off, n, charged := a[i].(string), integer(a[i+1]), integer(a[i+2]), a[i+3].(string)
		info := runs[run]
		for j := range n {
			lease, err := l.lease(run, info, off+j, charged, a[i+4+j].(string))
			lease.Fence, lease.Taken = fence, taken
			if err != nil {
				broken = append(broken, ledger.Outcome{Lease: lease, Kind: ledger.Rejected, Reason: "the stored task cannot be read"})
				continue
			}
			t.Leases = append(t.Leases, lease)
		}
		i += 4 + n
	}
	if len(broken) > 0 {
		if _, err := l.Settle(ctx, broken, 0); err != nil {
			return t, nil // their leases lapse, and they come again
		}
	}
	return t, nil
}

// lease makes the lease of one task. charged is "failures,lost" or empty.
func (l *farm) lease(run string, r runInfo, off int, charged, record string) (ledger.Lease, error) {
	name := place(off)
	lease := ledger.Lease{Ref: run + "." + name}
	t := &lease.Task
	failures, lost, _ := strings.Cut(charged, ",")
	t.Attempt, _ = strconv.Atoi(failures) // written by our own script, or empty
	t.Attempt++
	t.Lost, _ = strconv.Atoi(lost)
	t.Farm, t.Job, t.Index = l.name, r.id, r.idx+off-r.off
	t.Class, t.Tenant, t.Due, t.Accepted, t.Attempts, t.NoRetry = r.class, r.tenant, r.due, r.accepted, r.attempts, r.noRetry
	err := decodeTask(record, t)
	if t.Size > len(t.Body) {
		lease.Locator = r.piece + ":" + name
	}
	return lease, err
}

// refs are ten digits of a run, a dot, and seven of a place.
var refs = regexp.MustCompile(`^[0-9]{10}\.[0-9]{7}$`)

func integer(v any) int { return int(v.(int64)) }

// Body implements ledger.Dispatch.
func (l *farm) Body(ctx context.Context, lease ledger.Lease) ([]byte, error) {
	if lease.Locator == "" {
		return lease.Task.Body, nil
	}
	body, err := l.store.rdb.Get(ctx, l.key("b", lease.Locator)).Bytes()
	if err := check("body", err); err != nil {
		return nil, err
	}
	if len(body) != lease.Size {
		return nil, fmt.Errorf("redisledger: body of %s/%d: %d of %d bytes", lease.Job, lease.Index, len(body), lease.Size)
	}
	return body, nil
}

var standings = map[string]ledger.Standing{"h": ledger.Held, "l": ledger.WasLost, "c": ledger.WasCancel, "t": ledger.HasTimeout}

// Renew implements ledger.Dispatch.
func (l *farm) Renew(ctx context.Context, leases []ledger.Lease) ([]ledger.Standing, error) {
	args := make([]any, 0, 1+2*len(leases))
	args = append(args, ledger.LeaseTime.Microseconds())
	for _, lease := range leases {
		args = append(args, token(lease), lease.Timeout.Microseconds())
	}
	answers, err := l.run(ctx, scriptRenew, args...).StringSlice()
	if err != nil {
		return nil, check("renew", err)
	}
	out := make([]ledger.Standing, len(answers))
	for i, a := range answers {
		out[i] = standings[a]
	}
	return out, nil
}

// maxAnswer is how much of a failed attempt's last answer is kept.
const maxAnswer = 1 << 10

// Settle implements ledger.Dispatch.
func (l *farm) Settle(ctx context.Context, outcomes []ledger.Outcome, busy int) (ledger.Settled, error) {
	args, order, err := l.settleArgs(ctx, l.dispatchArgs(6*len(outcomes)), outcomes, busy)
	if err != nil {
		return ledger.Settled{}, err
	}
	a, err := l.run(ctx, scriptSettle, args...).Slice()
	if err != nil {
		return ledger.Settled{}, check("settle", err)
	}
	return settled(a, order), nil
}

// Exchange implements ledger.Dispatch.
func (l *farm) Exchange(ctx context.Context, owner string, outcomes []ledger.Outcome, busy, max int) (ledger.Settled, ledger.Taken, error) {
	args := l.takeArgs(l.dispatchArgs(6*len(outcomes)), max, false)
	args, order, err := l.settleArgs(ctx, args, outcomes, busy)
	if err != nil {
		return ledger.Settled{}, ledger.Taken{}, err
	}
	a, err := l.run(ctx, scriptExchange, args...).Slice()
	if err != nil {
		return ledger.Settled{}, ledger.Taken{}, check("exchange", err)
	}
	s := settled(a[0].([]any), order)
	nothing := ledger.Taken{Window: s.Window, Live: s.Live}
	answer, ok := a[1].([]any)
	if !ok {
		return s, nothing, nil
	}
	t, err := l.taken(ctx, answer)
	if err != nil {
		// The outcomes are settled, which must not be hidden; the leases that may
		// have been handed out come back when they lapse.
		return s, nothing, nil
	}
	return s, t, nil
}

// settleArgs writes large results and appends what scripts/settling.lua takes:
// results in groups of one run each, then the other outcomes. order says which
// outcome stands where in the script's list.
func (l *farm) settleArgs(ctx context.Context, args []any, outcomes []ledger.Outcome, busy int) (all []any, order []int, err error) {
	groups, others, large := group(outcomes)
	mark := ""
	if len(large) > 0 {
		mark = ulid.Make().String()
	}
	order = make([]int, 0, len(outcomes))
	args = append(args, busy, mark, len(groups))
	for _, g := range groups {
		bytes, kept, big := 0, 0, false
		var sizes []byte
		for _, i := range g {
			body, result := outcomes[i].Lease.Size, len(outcomes[i].Body)
			bytes, kept = bytes+body, kept+result
			big = big || body > ledger.MaxInline || result > ledger.MaxInline
			sizes = strconv.AppendInt(sizes, int64(body), 10)
			sizes = append(sizes, ',')
			sizes = strconv.AppendInt(sizes, int64(result), 10)
			sizes = append(sizes, ';')
		}
		args = append(args, len(g), bytes, kept, sizes, flag(big))
		order = append(order, g...)
		for _, i := range g {
			args = append(args, token(outcomes[i].Lease))
		}
		for _, i := range g {
			args = append(args, outcomes[i].Lease.Index)
		}
		for _, i := range g {
			record, err := encodeResult(outcomes[i], mark)
			if err != nil {
				return nil, nil, err
			}
			args = append(args, record)
		}
	}
	order = append(order, others...)
	for _, i := range others {
		o := outcomes[i]
		head, err := json.Marshal(resultHead{Status: o.Status, Reason: o.Reason})
		if err != nil {
			return nil, nil, fmt.Errorf("redisledger: outcome: %w", err)
		}
		args = append(args, token(o.Lease), string(o.Kind), max(0, o.Delay.Microseconds()), o.Lease.Size, head, clip(o.Body, maxAnswer))
	}
	return args, order, l.putResults(ctx, outcomes, large, mark)
}

// group puts results of one run together; a lease that comes a second time gets a
// group of its own. others are the outcomes without a result, large those whose
// result needs a key of its own.
func group(outcomes []ledger.Outcome) (groups [][]int, others, large []int) {
	at := map[string]int{}                       // run → its group
	seen := make(map[string]bool, len(outcomes)) // refs
	for i := range outcomes {
		o := &outcomes[i]
		if o.Kind != ledger.Success {
			others = append(others, i)
			continue
		}
		if len(o.Body) > ledger.MaxInline {
			large = append(large, i)
		}
		run, _, _ := strings.Cut(o.Lease.Ref, ".")
		g, ok := at[run]
		if !ok || seen[o.Lease.Ref] {
			g = len(groups)
			groups = append(groups, nil)
			if !ok {
				at[run] = g
			}
		}
		seen[o.Lease.Ref] = true
		groups[g] = append(groups[g], i)
	}
	return groups, others, large
}

// letters of the settle script's verdicts on results.
var letters = map[byte]ledger.Verdict{'d': ledger.Verdict(skeleton.Done), 'c': ledger.Verdict(skeleton.Cancelled), 'r': ledger.Refused}

// settled reads what scripts/settling.lua returns.
func settled(a []any, order []int) ledger.Settled {
	s := ledger.Settled{Window: integer(a[0]), Live: integer(a[1]), Waiting: integer(a[2]), Verdicts: make([]ledger.Verdict, len(order))}
	results := a[3].(string)
	for at, i := range order {
		if at < len(results) {
			s.Verdicts[i] = letters[results[at]]
		} else {
			s.Verdicts[i] = ledger.Verdict(a[4+at-len(results)].(string))
		}
	}
	return s
}

// token is a lease as the scripts know it: ref,fence,failures,lost,taken.
func token(l ledger.Lease) string {
	b := make([]byte, 0, 64)
	b = append(b, l.Ref...)
	for _, n := range []int64{l.Fence, int64(l.Attempt - 1), int64(l.Lost), l.Taken.UnixMicro()} {
		b = append(b, ',')
		b = strconv.AppendInt(b, n, 10)
	}
	return string(b)
}

// resultName is where a large result stands, below r:. The mark is of one call
// of Settle: a repeated one, which is refused, must not write over a result that
// was accepted, nor have the sweeper take it for its own.
func resultName(l ledger.Lease, mark string) string { return token(l) + ":" + mark }

// putResults writes large results under the fences of their leases, before
// Settle links them. The sweeper removes what never gets linked.
func (l *farm) putResults(ctx context.Context, outcomes []ledger.Outcome, large []int, mark string) error {
	if len(large) == 0 {
		return nil
	}
	now, err := l.store.rdb.Time(ctx).Result()
	if err != nil {
		return check("result", err)
	}
	stamp := now.Add(l.store.shift()).UnixMicro()
	pipe := l.store.rdb.Pipeline()
	for _, i := range large {
		name := resultName(outcomes[i].Lease, mark)
		pipe.ZAdd(ctx, l.key("loose"), member(stamp, name))
		pipe.Set(ctx, l.key("r", name), outcomes[i].Body, 0)
	}
	_, err = pipe.Exec(ctx)
	return check("result", err)
}

// Watch implements ledger.Dispatch.
func (l *farm) Watch(ctx context.Context, fn func(ledger.Event)) error {
	return l.store.hub.watch(ctx, l.key("events"), func(payload string) {
		if unit, ok := strings.CutPrefix(payload, "c"); ok {
			fn(ledger.Event{Kind: ledger.Cancel, Job: l.id(unit)})
			return
		}
		fn(ledger.Event{Kind: ledger.Wake})
	})
}

// Beat implements ledger.Dispatch.
func (l *farm) Beat(ctx context.Context, owner string) error {
	return check("beat", l.run(ctx, scriptBeat, owner).Err())
}
