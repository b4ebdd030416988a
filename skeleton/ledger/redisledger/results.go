package redisledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"farmhand/skeleton/ledger"
)

// Defaults of a query.
const (
	pageResults = 1000
	pageBytes   = 8 << 20
)

// pick is a result to read: its index, and of a dead one the letter it was.
type pick struct {
	index  string
	letter string
	next   int // cursor after it
}

// Results implements ledger.Producer.
func (l *farm) Results(ctx context.Context, id string, q ledger.Query) (ledger.Page, error) {
	unit, err := l.unit(id)
	if err != nil {
		return ledger.Page{}, err
	}
	if q.Limit <= 0 {
		q.Limit = pageResults
	}
	if q.MaxBytes <= 0 {
		q.MaxBytes = pageBytes
	}
	key := l.key("job", unit)
	acked := "base"
	if q.Ordered {
		acked = "oack"
	}
	fields, err := l.store.rdb.HMGet(ctx, key, "book", acked).Result()
	if err := check("results", err); err != nil {
		return ledger.Page{}, err
	}
	book, ok := fields[0].(string)
	if !ok {
		return ledger.Page{}, ledger.ErrNotFound
	}
	job, err := l.job(unit, book)
	if err != nil {
		return ledger.Page{}, err
	}
	page := ledger.Page{Job: job}
	if gone, ok := fields[1].(string); ok {
		page.Next, _ = strconv.Atoi(gone) // written by our own scripts
	}
	page.Next = max(q.Cursor, page.Next)
	for {
		q.Cursor = page.Next
		picks, err := l.picks(ctx, unit, &page, q)
		if err != nil {
			return page, err
		}
		whole, err := l.read(ctx, key, picks, q, &page)
		if err != nil {
			return page, err
		}
		if len(page.Results) > 0 || page.Next < q.Cursor+q.Limit {
			page.End = whole
			break
		}
		// Nothing but gaps: an empty page would read as if the client had to wait.
	}
	last := page.Job.Position
	if q.Ordered {
		last = page.Job.Total
	}
	page.End = page.End && !page.Job.Ended.IsZero() && page.Next >= last
	return page, nil
}

// picks lists what stands at the cursor and after it. It moves page.Next over
// what was acknowledged meanwhile.
func (l *farm) picks(ctx context.Context, unit string, page *ledger.Page, q ledger.Query) ([]pick, error) {
	if q.Ordered {
		to := min(page.Job.Total, q.Cursor+q.Limit)
		picks := make([]pick, 0, max(0, to-q.Cursor))
		for i := q.Cursor; i < to; i++ {
			picks = append(picks, pick{index: strconv.Itoa(i), next: i + 1})
		}
		return picks, nil
	}
	list, err := l.run(ctx, scriptPage, unit, q.Cursor, q.Limit).Slice()
	if err != nil {
		return nil, check("results", err)
	}
	page.Next = max(q.Cursor, integer(list[0]))
	picks := make([]pick, len(list)-1)
	for i, e := range list[1:] {
		picks[i] = pick{index: e.(string), next: page.Next + i + 1}
		if rest, ok := strings.CutPrefix(e.(string), "d"); ok {
			picks[i].index, picks[i].letter, _ = strings.Cut(rest, ":")
		}
	}
	return picks, nil
}

// read fills the page with picks, in order. It reports whether it got through
// all of them.
func (l *farm) read(ctx context.Context, key string, picks []pick, q ledger.Query, page *ledger.Page) (whole bool, err error) {
	if len(picks) == 0 {
		return true, nil
	}
	indexes := make([]string, len(picks))
	for i, p := range picks {
		indexes[i] = p.index
	}
	records, err := l.store.rdb.HMGet(ctx, key+":res", indexes...).Result()
	if err := check("results", err); err != nil {
		return false, err
	}
	large := map[int]string{}
	bytes := 0
	for i, p := range picks {
		raw, ok := records[i].(string)
		if !ok {
			if q.Ordered && page.Job.Ended.IsZero() {
				break // not finished yet
			}
			page.Next = p.next // cancelled, acknowledged, or redriven
			continue
		}
		index, _ := strconv.Atoi(p.index) // written by our own scripts
		r, name, ref, err := decodeResult(raw, index)
		if err != nil {
			return false, err
		}
		if !q.Ordered && ref != p.letter {
			page.Next = p.next // it was redriven since
			continue
		}
		size := len(r.Body)
		if name != "" {
			size = sizeOf(raw)
		}
		if len(page.Results) > 0 && bytes+size > q.MaxBytes {
			return false, l.fetchLarge(ctx, large, page)
		}
		bytes += size
		if name != "" {
			large[len(page.Results)] = name
		}
		page.Results = append(page.Results, r)
		page.Next = p.next
	}
	return true, l.fetchLarge(ctx, large, page)
}

// sizeOf reads the size of a large result from its record.
func sizeOf(raw string) int {
	_, rest, _ := strings.Cut(raw, "\"n\":")
	end := strings.IndexAny(rest, ",}")
	if end < 0 {
		return 0
	}
	n, _ := strconv.Atoi(rest[:end]) // written by Settle
	return n
}

// fetchLarge reads the bodies of large results.
func (l *farm) fetchLarge(ctx context.Context, large map[int]string, page *ledger.Page) error {
	if len(large) == 0 {
		return nil
	}
	pipe := l.store.rdb.Pipeline()
	cmds := make(map[int]*redis.StringCmd, len(large))
	for i, name := range large {
		cmds[i] = pipe.Get(ctx, l.key("r", name))
	}
	if _, err := pipe.Exec(ctx); check("results", err) != nil {
		return check("results", err)
	}
	for i, cmd := range cmds {
		body, err := cmd.Bytes()
		if err != nil {
			return fmt.Errorf("redisledger: result %d of %s is missing: %w", page.Results[i].Index, page.Job.ID, err)
		}
		page.Results[i].Body = body
	}
	return nil
}
