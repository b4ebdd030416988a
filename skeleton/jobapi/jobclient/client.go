// Package jobclient is the Go client of the dispatcher's HTTP API.
//
// Every submission carries an idempotency key, so that it can be sent again
// when its answer was lost; connection errors, 429, 503 and the gateway's own
// 500 and 502 are tried again with back-off, honouring Retry-After. What the
// dispatcher refuses is a *problem.Problem.
package jobclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"farmhand/skeleton/jobapi"
)

// Client calls one dispatcher. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
	// Patience is how long a call is tried again (2 min). It does not count
	// while the dispatcher says that a queue or its memory is full: that is no
	// fault.
	Patience time.Duration
	// Notify, if set, hears of every failed try that is repeated.
	Notify func(err error, wait time.Duration)

	clock   clock
	maxLine int         // bytes of a result as JSON
	reached atomic.Bool // something has answered before
}

// New returns a client of the dispatcher at base, such as
// http://127.0.0.1:8080/function/dispatcher. An empty token sends none.
func New(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("jobclient: %q is no URL of a dispatcher: want http://HOST/function/dispatcher", base)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = jobapi.DefaultMaxWait + time.Minute // the longest the dispatcher holds an answer, and a margin
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: &http.Client{Transport: transport}, Patience: 2 * time.Minute,
		clock: realClock(), maxLine: maxLine}, nil
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
