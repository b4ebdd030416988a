package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"farmhand/controller"
	"farmhand/internal/problem"
)

// farmClient calls the controller through the gateway.
type farmClient struct{ functionClient }

// farms connects to the controller.
func (c *connection) farms() (*farmClient, error) {
	gateway, token, err := c.address()
	if err != nil {
		return nil, err
	}
	return &farmClient{functionClient{gateway, token, "controller", refusedFarm}}, nil
}

// withFarms runs a command that calls the controller.
func (c *connection) withFarms(do func(*farmClient) error) error {
	client, err := c.farms()
	if err != nil {
		return err
	}
	return unreachable(do(client))
}

// overview is the controller and all its farms.
func (f *farmClient) overview(ctx context.Context) (v controller.Overview, err error) {
	err = f.call(ctx, http.MethodGet, url.Values{}, nil, &v)
	return v, err
}

// farm is one farm with its settings and receipts.
func (f *farmClient) farm(ctx context.Context, name string, receipts int) (v controller.FarmView, err error) {
	err = f.call(ctx, http.MethodGet, url.Values{"farm": {name}, "receipts": {strconv.Itoa(receipts)}}, nil, &v)
	return v, err
}

// change overrides settings of a farm; nil removes an override.
func (f *farmClient) change(ctx context.Context, name string, changes map[string]*string) (v controller.FarmView, err error) {
	body, err := json.Marshal(changes)
	if err != nil {
		return v, err
	}
	err = f.call(ctx, http.MethodPatch, url.Values{"farm": {name}}, body, &v)
	return v, err
}

func (f *farmClient) call(ctx context.Context, method string, query url.Values, body []byte, into any) error {
	return f.fetch(ctx, method, "/", query, "application/json", body, f.into(into))
}

// refusedFarm is the error of an answer that is no success, in the words of the
// command line. The controller refuses with problem documents; other answers are
// the gateway's own.
func refusedFarm(resp *http.Response) error {
	err := problem.Read(resp)
	var p *problem.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch {
	case p.Type == "unknown-farm":
		p.Field, p.Fix = "", `farmhand farm list lists them; a function becomes one by the label farmhand.worker: "true"`
	case p.Type != "about:blank":
		p.Detail = strings.TrimPrefix(p.Detail, p.Field+": ") // Error puts it first
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("the gateway knows no function controller (%s)", strings.TrimSpace(p.Detail))
	default:
		return fmt.Errorf("the gateway answers %d %s: is the controller running?", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return p
}
