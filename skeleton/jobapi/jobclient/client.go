// Package jobclient is the Go client of the dispatcher's HTTP API.
//
// Every submission carries an idempotency key, so that it can be sent again
// when its answer was lost; connection errors, 429, 503 and the gateway's own
// 500 and 502 are tried again with back-off, honouring Retry-After.
package jobclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"

	"farmhand/internal/problem"
	"farmhand/skeleton/jobapi"
)

// Limits of what the client reads.
const (
	maxDocument = 64 << 20
	maxLine     = 64 << 20
)

// Client calls one dispatcher. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
	// Patience is how long a call is tried again (2 min).
	Patience time.Duration
	// Notify, if set, hears of every failed try that is repeated.
	Notify func(err error, wait time.Duration)
}

// New returns a client of the dispatcher at base, such as
// http://127.0.0.1:8080/function/dispatcher. An empty token sends none.
func New(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("jobclient: %q is no URL of a dispatcher: want http://HOST/function/dispatcher", base)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: &http.Client{Transport: transport}, Patience: 2 * time.Minute}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Piece is a body to submit, in memory so that it can be sent again.
type Piece struct {
	Type string // media type
	Body []byte
	Key  string // idempotency key; "" = a new one
}

// Options of a new job, by their names in the API (see docs/api.md).
type Options map[string]string

// Submit posts a new job.
func (c *Client) Submit(ctx context.Context, o Options, p Piece) (jobapi.Submitted, error) {
	q := url.Values{}
	for name, v := range o {
		q.Set(name, v)
	}
	return c.post(ctx, "/jobs?"+q.Encode(), p)
}

// Append adds a piece to an open job.
func (c *Client) Append(ctx context.Context, job string, o Options, p Piece) (jobapi.Submitted, error) {
	q := url.Values{}
	for name, v := range o {
		q.Set(name, v)
	}
	return c.post(ctx, "/jobs/"+url.PathEscape(job)+"/tasks?"+q.Encode(), p)
}

func (c *Client) post(ctx context.Context, path string, p Piece) (s jobapi.Submitted, err error) {
	if p.Key == "" {
		p.Key = uuid.NewString()
	}
	header := http.Header{"Content-Type": {p.Type}, "Idempotency-Key": {p.Key}}
	err = c.call(ctx, http.MethodPost, path, header, p.Body, &s)
	return s, err
}

// CloseJob ends the appending.
func (c *Client) CloseJob(ctx context.Context, job string) (v jobapi.JobView, err error) {
	err = c.call(ctx, http.MethodPost, "/jobs/"+url.PathEscape(job)+"/close", nil, nil, &v)
	return v, err
}

// Cancel cancels a job's unfinished tasks.
func (c *Client) Cancel(ctx context.Context, job string) (v jobapi.JobView, err error) {
	err = c.call(ctx, http.MethodDelete, "/jobs/"+url.PathEscape(job), nil, nil, &v)
	return v, err
}

// Job returns a job's progress.
func (c *Client) Job(ctx context.Context, job string) (v jobapi.JobView, err error) {
	err = c.call(ctx, http.MethodGet, "/jobs/"+url.PathEscape(job), nil, nil, &v)
	return v, err
}

// Jobs lists jobs, newest first.
func (c *Client) Jobs(ctx context.Context, worker, after string, limit int) (l jobapi.JobList, err error) {
	q := url.Values{"worker": {worker}, "after": {after}, "limit": {strconv.Itoa(limit)}}
	err = c.call(ctx, http.MethodGet, "/jobs?"+q.Encode(), nil, nil, &l)
	return l, err
}

// Farm returns a farm with its queue.
func (c *Client) Farm(ctx context.Context, worker string) (f jobapi.FarmView, err error) {
	err = c.call(ctx, http.MethodGet, "/farms/"+url.PathEscape(worker), nil, nil, &f)
	return f, err
}

// Farms lists the farms.
func (c *Client) Farms(ctx context.Context) (l jobapi.FarmList, err error) {
	err = c.call(ctx, http.MethodGet, "/farms", nil, nil, &l)
	return l, err
}

// Dead lists a farm's dead letters, page by page.
func (c *Client) Dead(ctx context.Context, worker, after string, limit int) (l jobapi.DeadList, err error) {
	q := url.Values{"after": {after}, "limit": {strconv.Itoa(limit)}}
	err = c.call(ctx, http.MethodGet, "/farms/"+url.PathEscape(worker)+"/dead?"+q.Encode(), nil, nil, &l)
	return l, err
}

// Redrive puts dead letters back into the queue: those named, or all if refs is
// empty.
func (c *Client) Redrive(ctx context.Context, worker string, refs []string) (int, error) {
	body, err := json.Marshal(jobapi.Redrive{Refs: refs, All: len(refs) == 0})
	if err != nil {
		return 0, err
	}
	var r jobapi.Redriven
	err = c.call(ctx, http.MethodPost, "/farms/"+url.PathEscape(worker)+"/dead/redrive", http.Header{"Content-Type": {"application/json"}}, body, &r)
	return r.Redriven, err
}

// call makes one call, again and again while that is safe and useful.
func (c *Client) call(ctx context.Context, method, path string, header http.Header, body []byte, into any) error {
	notify := func(err error, wait time.Duration) {
		if c.Notify != nil {
			c.Notify(err, wait)
		}
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, c.once(ctx, method, path, header, body, into)
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(c.Patience), backoff.WithNotify(notify))
	return err
}

func (c *Client) once(ctx context.Context, method, path string, header http.Header, body []byte, into any) error {
	resp, err := c.send(ctx, method, path, header, body)
	if err != nil {
		if ctx.Err() != nil {
			return backoff.Permanent(ctx.Err())
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return refusal(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(into); err != nil {
		return fmt.Errorf("jobclient: the answer makes no sense: %w", err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.Do(req)
}

// refusal is the error of an answer that is no success: final, or to be tried
// again. The dispatcher refuses with problem documents; other answers are the
// gateway's own.
func refusal(resp *http.Response) error {
	err := problem.Read(resp)
	var p *problem.Problem
	ours := errors.As(err, &p) && p.Type != "about:blank"
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		if p != nil && p.Retry > 0 {
			return backoff.RetryAfter(p.Retry)
		}
		return err
	case !ours && (resp.StatusCode == 500 || resp.StatusCode == 502 || resp.StatusCode == 504):
		return fmt.Errorf("the gateway answers %d: is the dispatcher running?", resp.StatusCode)
	}
	return backoff.Permanent(err)
}

// Query of results.
type Query struct {
	Cursor  int
	Ordered bool
	Follow  bool // until the job has ended
	Ack     bool // drop results once they were handled
}

// Results calls handle for each result from the cursor on, across answers that
// end early and connections that break. It returns the cursor after the last
// one handled, and whether the job has ended and nothing follows.
func (c *Client) Results(ctx context.Context, job string, q Query, handle func(jobapi.Result) error) (cursor int, end bool, err error) {
	cursor = q.Cursor
	handled := map[int]bool{} // since the cursor: a stream that breaks is read again from there
	once := func(r jobapi.Result) error {
		if handled[r.Index] {
			return nil
		}
		handled[r.Index] = true
		return handle(r)
	}
	for {
		var t jobapi.Trailer
		_, err := backoff.Retry(ctx, func() (struct{}, error) {
			var err error
			t, err = c.page(ctx, job, q, cursor, once)
			return struct{}{}, err
		}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(c.Patience))
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
	_, err := c.page(ctx, job, q, cursor, func(jobapi.Result) error { return nil })
	return err
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
		if ctx.Err() != nil {
			err = backoff.Permanent(ctx.Err())
		}
		return t, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return t, refusal(resp)
	}
	return c.lines(ctx, resp.Body, handle)
}

func (c *Client) lines(ctx context.Context, body io.Reader, handle func(jobapi.Result) error) (t jobapi.Trailer, err error) {
	d := json.NewDecoder(body)
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			if ctx.Err() != nil {
				return t, backoff.Permanent(ctx.Err())
			}
			return t, fmt.Errorf("jobclient: the stream of results broke: %w", err)
		}
		if len(raw) > maxLine {
			return t, backoff.Permanent(errors.New("jobclient: a result is too large"))
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
