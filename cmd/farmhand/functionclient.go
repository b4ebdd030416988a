package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"farmhand/skeleton/jobapi/jobclient"
)

const (
	farmCall   = 30 * time.Second // a call of a function at most
	farmAnswer = 64 << 20         // bytes of its answer at most
)

// functionClient calls one of the farm's own functions through the gateway's
// synchronous route, so that what is wrong with a request is told at once.
type functionClient struct {
	gateway, token string
	function       string
	refused        func(*http.Response) error // the error of an answer that is no success
}

// fetch calls a path of the function, "" or one with a slash before it, and lets read
// see the answer to a call that went well.
func (c *functionClient) fetch(ctx context.Context, method, path string, query url.Values, kind string, body []byte, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, farmCall)
	defer cancel()
	u := c.gateway + "/function/" + c.function + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" && ctx.Err() == nil {
			return fmt.Errorf("%w at %s: %w", jobclient.ErrUnreachable, c.gateway, dial.Err)
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return c.refused(resp)
	}
	return read(resp.Body)
}

// into reads an answer in JSON.
func (c *functionClient) into(v any) func(io.Reader) error {
	return func(r io.Reader) error {
		if err := json.NewDecoder(io.LimitReader(r, farmAnswer)).Decode(v); err != nil {
			return fmt.Errorf("the %s's answer was cut off or makes no sense: %w", c.function, err)
		}
		return nil
	}
}
