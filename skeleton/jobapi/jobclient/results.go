package jobclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cenkalti/backoff/v5"

	"farmhand/skeleton/jobapi"
)

const maxLine = 64 << 20 // bytes of a result as JSON

// Query of results.
type Query struct {
	Cursor  int
	Ordered bool // by task; else as the job was submitted
	Follow  bool // until the job has ended
	Ack     bool // drop results once they were handled
	// Kept, if set, is called before results that were handled are dropped. Where
	// it fails they are not.
	Kept func() error
}

// Results calls handle for each result from the cursor on, across answers that
// end early and connections that break. It returns the cursor after the last
// one handled, and whether the job has ended and nothing follows.
func (c *Client) Results(ctx context.Context, job string, q Query, handle func(jobapi.Result) error) (cursor int, end bool, err error) {
	cursor = q.Cursor
	// Since the cursor: a stream that breaks is read again from there. A task
	// that was redriven has more than one result.
	type seen struct {
		index    int
		finished int64
	}
	handled := map[seen]bool{}
	once := func(r jobapi.Result) error {
		key := seen{r.Index, r.Finished.UnixNano()}
		if handled[key] {
			return nil
		}
		handled[key] = true
		return handle(r)
	}
	for {
		var t jobapi.Trailer
		err := c.again(ctx, func() (err error) {
			t, err = c.page(ctx, job, q, cursor, once)
			return err
		})
		if err == nil && q.Ack && q.Kept != nil {
			err = q.Kept()
		}
		if err != nil {
			return cursor, false, err
		}
		moved := t.Cursor != cursor
		cursor = t.Cursor
		clear(handled)
		if t.End || (!q.Follow && !moved) {
			if q.Ack && t.End {
				if err := c.acknowledge(ctx, job, q, cursor); err != nil {
					return cursor, t.End, err
				}
			}
			return cursor, t.End, nil
		}
	}
}

// acknowledge tells that everything before the cursor was handled.
func (c *Client) acknowledge(ctx context.Context, job string, q Query, cursor int) error {
	q.Follow = false
	return c.again(ctx, func() error {
		_, err := c.page(ctx, job, q, cursor, func(jobapi.Result) error { return nil })
		return err
	})
}

// page reads one answer.
func (c *Client) page(ctx context.Context, job string, q Query, cursor int, handle func(jobapi.Result) error) (t jobapi.Trailer, err error) {
	v := url.Values{"cursor": {strconv.Itoa(cursor)}, "limit": {"1000"}}
	for name, on := range map[string]bool{"ordered": q.Ordered, "follow": q.Follow, "ack": q.Ack} {
		if on {
			v.Set(name, "1")
		}
	}
	resp, err := c.send(ctx, http.MethodGet, "/jobs/"+url.PathEscape(job)+"/results?"+v.Encode(), nil, nil)
	if err != nil {
		return t, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return t, c.refusal(resp)
	}
	return c.lines(resp.Body, handle)
}

func (c *Client) lines(body io.Reader, handle func(jobapi.Result) error) (t jobapi.Trailer, err error) {
	b := bufio.NewReaderSize(body, 64<<10)
	for {
		raw, err := c.line(b)
		switch {
		case errors.Is(err, errTooLong):
			return t, backoff.Permanent(err)
		case err != nil:
			return t, fmt.Errorf("jobclient: the stream of results broke: %w", err)
		case !json.Valid(raw):
			return t, errors.New("jobclient: the stream of results broke: a line is no JSON")
		}
		if bytes.HasPrefix(raw, []byte(`{"cursor"`)) {
			return t, json.Unmarshal(raw, &t)
		}
		var r jobapi.Result
		if err := json.Unmarshal(raw, &r); err != nil {
			return t, backoff.Permanent(fmt.Errorf("jobclient: a result makes no sense: %w", err))
		}
		if err := handle(r); err != nil {
			return t, backoff.Permanent(err)
		}
	}
}

var errTooLong = errors.New("jobclient: a result is too large")

// line reads a line of its own memory, and no more than a result may have.
func (c *Client) line(b *bufio.Reader) (line []byte, err error) {
	for {
		part, err := b.ReadSlice('\n')
		if len(line)+len(part) > c.maxLine {
			return nil, errTooLong
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF): // the last line ends, too
			return nil, io.ErrUnexpectedEOF
		default:
			return line, err
		}
	}
}
