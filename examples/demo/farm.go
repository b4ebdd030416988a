package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openfaas/faas-provider/types"

	"farmhand/controller"
	"farmhand/gateway"
	"farmhand/skeleton/jobapi/jobclient"
)

// farm is the platform of the demo, as a client sees it.
type farm struct {
	bin      string
	state    string
	ce       bool // the platform behaves as plain CE
	url      string
	token    string
	gateway  *gateway.Client
	client   *jobclient.Client
	speed    float64                      // paths that a worker simulates in a second
	settings map[string]map[string]string // of the farms, beside what stack.yml says
}

// up starts the platform in a folder of its own and deploys the stack file.
func up(ctx context.Context, bin string, ce bool) (*farm, error) {
	state, err := os.MkdirTemp("", "farmhand-demo-")
	if err != nil {
		return nil, err
	}
	f := &farm{bin: bin, state: state, ce: ce, settings: maps.Clone(settings)}
	args := []string{"up", "-d", "--deploy", "--state", state, "--stack", "stack.yml", "--prebuilt", filepath.Join(bin, "functions"),
		"--listen", "127.0.0.1:0", "--metrics-listen", "none", "--redis", "auto", "--allow-dir", bin}
	if ce {
		args = append(args, "--ce", "--callback-allow", "127.0.0.1")
	}
	start := exec.CommandContext(ctx, filepath.Join(bin, "farmhand"), args...)
	var hints bytes.Buffer // how to end it: the demo does that itself
	start.Stdout, start.Stderr = os.Stdout, &hints
	if err := start.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("farmhand up: %w: %s", err, hints.String()), os.RemoveAll(state))
	}
	if err := f.connect(); err != nil {
		return nil, errors.Join(err, f.down())
	}
	return f, nil
}

// connect reads from the state folder where the platform is and how to log in.
func (f *farm) connect() error {
	creds := &gateway.Credentials{}
	for name, into := range map[string]*string{"gateway.url": &f.url, "secrets/farmhand-token": &f.token,
		"credentials/basic-auth-user": &creds.User, "credentials/basic-auth-password": &creds.Password} {
		raw, err := os.ReadFile(filepath.Join(f.state, name))
		if err != nil {
			return err
		}
		*into = strings.TrimSpace(string(raw))
	}
	var err error
	if f.gateway, err = gateway.New(f.url, creds, gateway.Options{}); err != nil {
		return err
	}
	f.client, err = jobclient.New(f.url+"/function/dispatcher", f.token)
	return err
}

// down ends the platform and removes its folder. It runs after an interruption too: it
// uses no context, and what a terminal or a timeout sends to all of the demo's processes
// does not reach it.
func (f *farm) down() error {
	stop := exec.Command(filepath.Join(f.bin, "farmhand"), "down", "--state", f.state)
	stop.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out, err := stop.CombinedOutput(); err != nil {
		return fmt.Errorf("farmhand down: %w: %s", err, out) // who looks into it needs the folder
	}
	return os.RemoveAll(f.state)
}

// configure deploys the workers of the stack file again with the annotations of
// settings, and those of the comparison, and waits until the controller goes by them.
func (f *farm) configure(ctx context.Context, policyFile string) error {
	for name, more := range f.settings {
		fn, err := f.gateway.Function(ctx, name, false)
		if err != nil {
			return err
		}
		annotations := maps.Clone(*fn.Annotations)
		maps.Copy(annotations, more)
		if err := f.gateway.Deploy(ctx, types.FunctionDeployment{Service: fn.Name, Image: fn.Image, EnvProcess: fn.EnvProcess,
			EnvVars: fn.EnvVars, Constraints: fn.Constraints, Secrets: fn.Secrets, Labels: fn.Labels, Annotations: &annotations,
			Limits: fn.Limits, Requests: fn.Requests, ReadOnlyRootFilesystem: fn.ReadOnlyRootFilesystem}); err != nil {
			return err
		}
	}
	if err := f.deployCompared(ctx); err != nil {
		return err
	}
	for name, more := range f.settings {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for {
			v, err := f.look(ctx, name)
			if err == nil && len(v.Problems) > 0 {
				return errors.New(strings.Join(v.Problems, "; "))
			}
			if err == nil && v.Policy == more["farmhand.policy"] {
				break
			}
			if sleep(ctx, 200*time.Millisecond) != nil {
				return fmt.Errorf("the controller does not know the settings of %s within a minute: %w", name, err)
			}
		}
	}
	return f.promote(ctx, byPolicy, policyFile)
}

// look asks the controller for a farm and its last receipts.
func (f *farm) look(ctx context.Context, name string) (v controller.FarmView, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = f.control(ctx, http.MethodGet, name, nil, &v)
	return v, err
}

// override gives a farm other settings, as an operator would.
func (f *farm) override(ctx context.Context, name, changes string) error {
	var v controller.FarmView
	return f.control(ctx, http.MethodPatch, name, strings.NewReader(changes), &v)
}

// control calls the controller.
func (f *farm) control(ctx context.Context, method, name string, body io.Reader, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, f.url+"/function/controller/?farm="+url.QueryEscape(name), body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // it only explains the status
		return fmt.Errorf("the controller answers %s: %s", resp.Status, text)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// sleep waits, or returns why not.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
