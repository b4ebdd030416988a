package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"

	"farmhand/internal/problem"
	"farmhand/registry"
	"farmhand/registry/policyapi"
)

// policyClient calls the registry of policies, which the controller serves.
type policyClient struct{ *farmClient }

// withPolicies runs a command that calls the registry.
func (c *connection) withPolicies(do func(policyClient) error) error {
	return c.withFarms(func(f *farmClient) error { return policyWords(do(policyClient{f})) })
}

// policyWords puts what an API client would do in the words of the command line.
func policyWords(err error) error {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Type {
	case "unknown-policy":
		p.Field, p.Fix = "", "farmhand policy list lists them"
	case "unknown-alias":
		p.Field, p.Fix = "", "want WORKER:champion, WORKER:challenger or WORKER:previous"
	case "refused-by-gate":
		p.Field, p.Fix = "", "--force --reason TEXT promotes it nevertheless"
		return &exitError{code: exitRefused, err: p}
	case "nothing-to-roll-back":
		p.Field, p.Fix = "", "farmhand policy promote names a version"
	case "registry-damaged", "invalid-policy", "policy-too-large", "registry-full":
		p.Field = ""
	}
	return err
}

// policiesPath is that of the registry below the controller's, with what follows.
func policiesPath(parts ...string) string {
	path := policyapi.Path
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// list the versions; with a farm, those that it has to do with.
func (c policyClient) list(ctx context.Context, farm string) (l policyapi.Listing, err error) {
	query := url.Values{}
	if farm != "" {
		query.Set("farm", farm)
	}
	return l, c.fetch(ctx, http.MethodGet, policiesPath(), query, "", nil, c.into(&l))
}

// show what is known of a version.
func (c policyClient) show(ctx context.Context, name string) (v registry.Version, err error) {
	return v, c.fetch(ctx, http.MethodGet, policiesPath(name), nil, "", nil, c.into(&v))
}

// file of a version.
func (c policyClient) file(ctx context.Context, name string) (file []byte, err error) {
	return file, c.fetch(ctx, http.MethodGet, policiesPath(name, "file"), nil, "", nil, func(r io.Reader) error {
		file, err = io.ReadAll(io.LimitReader(r, registry.MaxFile+1))
		return err
	})
}

// importFile puts a policy file into the registry.
func (c policyClient) importFile(ctx context.Context, file []byte, note string) (v registry.Version, err error) {
	query := url.Values{"by": {whoami()}}
	if note != "" {
		query.Set("note", note)
	}
	return v, c.fetch(ctx, http.MethodPost, policiesPath(), query, "application/octet-stream", file, c.into(&v))
}

// promote a version, or roll back where it has no name.
func (c policyClient) promote(ctx context.Context, farm, name string, r registry.Reason) (m policyapi.Moved, err error) {
	path := policiesPath("rollback")
	if name != "" {
		path = policiesPath(name, "promote")
	}
	body, err := json.Marshal(r)
	if err != nil {
		return m, err
	}
	return m, c.fetch(ctx, http.MethodPost, path, url.Values{"farm": {farm}}, "application/json", body, c.into(&m))
}

// whoami is who moves an alias, as far as this machine knows.
func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// policyBytes reads a policy of the registry, or a file.
func (c *connection) policyBytes(ctx context.Context, name string) ([]byte, error) {
	if filepath.Ext(name) == ".safetensors" {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("policy file: %w", err)
		}
		return b, nil
	}
	var file []byte
	err := c.withPolicies(func(client policyClient) (err error) {
		file, err = client.file(ctx, name)
		return err
	})
	return file, err
}
