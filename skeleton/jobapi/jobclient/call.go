package jobclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"farmhand/internal/problem"
)

const maxDocument = 64 << 20 // bytes of an answer that is one document

// ErrUnreachable says that nothing answers at the gateway's address.
var ErrUnreachable = errors.New("nothing answers")

// call makes one call, again and again while that is safe and useful.
func (c *Client) call(ctx context.Context, method, path string, header http.Header, body []byte, into any) error {
	return c.again(ctx, func() error { return c.once(ctx, method, path, header, body, into) })
}

// clock is what repeating takes of the time.
type clock struct {
	now     func() time.Time
	sleep   func(context.Context, time.Duration) error
	backOff func() backoff.BackOff // a fresh one for each call
}

func realClock() clock {
	return clock{now: time.Now, sleep: sleep, backOff: func() backoff.BackOff { return backoff.NewExponentialBackOff() }}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// again repeats an attempt until it succeeds, fails for good, or patience ends.
func (c *Client) again(ctx context.Context, attempt func() error) error {
	pause, since := c.clock.backOff(), c.clock.now()
	for {
		err := attempt()
		var p *problem.Problem
		var final *backoff.PermanentError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &final):
			return final.Unwrap()
		case errors.As(err, &p) && p.Status == http.StatusTooManyRequests: // "later" is no fault
			since = c.clock.now()
		case c.clock.now().Sub(since) >= c.Patience:
			return err
		}
		wait := pause.NextBackOff()
		if p != nil && p.Retry > 0 {
			wait = time.Duration(p.Retry) * time.Second
			pause.Reset()
		}
		if c.Notify != nil {
			c.Notify(err, wait)
		}
		if err := c.clock.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (c *Client) once(ctx context.Context, method, path string, header http.Header, body []byte, into any) error {
	resp, err := c.send(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return c.refusal(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(into); err != nil {
		return fmt.Errorf("jobclient: the answer was cut off or makes no sense: %w", err)
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
	resp, err := c.http.Do(req)
	var dial *net.OpError
	switch {
	case err == nil:
		c.reached.Store(true)
	case !c.reached.Load() && errors.As(err, &dial) && dial.Op == "dial" && ctx.Err() == nil:
		// A gateway that never answered is not there; one that did may restart.
		return nil, backoff.Permanent(fmt.Errorf("%w at %s: %w", ErrUnreachable, strings.TrimSuffix(c.base, "/function/dispatcher"), dial.Err))
	}
	return resp, err
}

// refusal is the error of an answer that is no success: final, or to be tried
// again. The dispatcher refuses with problem documents; other answers are the
// gateway's own.
func (c *Client) refusal(resp *http.Response) error {
	err := problem.Read(resp)
	var p *problem.Problem
	ours := errors.As(err, &p) && p.Type != "about:blank"
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return err
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		if !ours {
			return fmt.Errorf("the gateway answers %d %s: is the dispatcher running?", resp.StatusCode, http.StatusText(resp.StatusCode))
		}
	case http.StatusNotFound:
		if !ours {
			return backoff.Permanent(fmt.Errorf("the gateway knows no function dispatcher (%s)", strings.TrimSpace(p.Detail)))
		}
	}
	return backoff.Permanent(err)
}
