package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"farmhand/internal/problem"
	"farmhand/trainer"
	"farmhand/trainer/trainapi"
)

// trainClient calls the function trainer.
type trainClient struct{ functionClient }

func newTrainClient(gateway, token string) *trainClient {
	return &trainClient{functionClient{gateway, token, trainer.Function, refusedTraining}}
}

func (c *trainClient) begin(ctx context.Context, request map[string]any) (r trainer.Run, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return r, err
	}
	return r, c.call(ctx, http.MethodPost, nil, body, &r)
}

func (c *trainClient) get(ctx context.Context, run string) (r trainer.Run, err error) {
	return r, c.call(ctx, http.MethodGet, url.Values{"run": {run}}, nil, &r)
}

func (c *trainClient) cancel(ctx context.Context, run string) (r trainer.Run, err error) {
	return r, c.call(ctx, http.MethodDelete, url.Values{"run": {run}}, nil, &r)
}

func (c *trainClient) list(ctx context.Context) ([]trainer.Run, error) {
	var l trainapi.Runs
	err := c.call(ctx, http.MethodGet, nil, nil, &l)
	return l.Runs, err
}

func (c *trainClient) call(ctx context.Context, method string, query url.Values, body []byte, into any) error {
	return c.fetch(ctx, method, "", query, "application/json", body, c.into(into))
}

// refusedTraining is the error of an answer that is no success, in the words of the
// command line.
func refusedTraining(resp *http.Response) error {
	err := problem.Read(resp)
	var p *problem.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch {
	case p.Type == "unknown-run":
		p.Field, p.Fix = "", "farmhand top shows those that run"
	case p.Type == "unknown-farm":
		p.Field, p.Fix = "", `farmhand farm list lists them; a function becomes one by the label farmhand.worker: "true"`
	case p.Type == "no-deadline":
		p.Field = ""
	case p.Type == "too-many-runs":
		p.Field, p.Fix = "", "wait until one is over, or end one with --cancel"
	case p.Type == "invalid-request":
		if p.Field == "budget" {
			p.Field = "--steps"
		} else if p.Field != "body" {
			p.Field = "--" + p.Field
		}
	case p.Type != "about:blank":
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("the gateway knows no function %s (%s): deploy the stack file", trainer.Function, strings.TrimSpace(p.Detail))
	default:
		return fmt.Errorf("the gateway answers %d %s: is the trainer running?", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return p
}

// changed are the names of the flags that were given, in their order.
func changed(flags *pflag.FlagSet) (names []string) {
	flags.Visit(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
