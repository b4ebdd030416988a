package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farmhand/internal/problem"
	"farmhand/platform"
	"farmhand/skeleton/jobapi/jobclient"
)

// connection says where the dispatcher is and how to prove who we are.
type connection struct {
	gateway   string
	tokenFile string
	state     string
	json      bool
}

// flags adds the flags of a command that talks to the dispatcher.
func (c *connection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.gateway, "gateway", "", "URL of the gateway (default: $FARMHAND_GATEWAY, $OPENFAAS_URL, or the one that farmhand up runs)")
	f.StringVar(&c.tokenFile, "token-file", "", "file with the token (default: $FARMHAND_TOKEN, or the one that farmhand up made)")
	f.StringVar(&c.state, "state", "", "state folder of farmhand up (default: $XDG_STATE_HOME/farmhand or ~/.local/state/farmhand)")
	f.BoolVar(&c.json, "json", false, "print JSON")
}

func (c *connection) stateDir() string {
	if c.state != "" {
		return c.state
	}
	dir, err := platform.DefaultState()
	if err != nil {
		return "." // without a home there is nothing to find
	}
	return dir
}

// hint repeats the flags that a command needs to find the same dispatcher.
func (c *connection) hint() string {
	flags := stateHint(c.state)
	if c.gateway != "" {
		flags += fmt.Sprintf(" --gateway '%s'", c.gateway)
	}
	return flags
}

// with runs a command that calls the dispatcher.
func (c *connection) with(cmd *cobra.Command, do func(*jobclient.Client) error) error {
	client, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer client.Close()
	err = unreachable(do(client))
	speakCommands(err)
	return err
}

// speakCommands puts what an API client would do in the words of the command
// line.
func speakCommands(err error) {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return
	}
	switch p.Type {
	case "bad-field":
		if p.Field == "refs" {
			p.Fix = "farmhand dead lists them"
		}
	case "unknown-job":
		p.Fix = "farmhand jobs lists them"
	case "unknown-worker":
		extra, _ := p.Extra.(map[string]any)
		list, _ := extra["known"].([]any)
		known := strings.Trim(fmt.Sprint(list), "[]") // names have no spaces
		p.Fix = fmt.Sprintf(`known are: %s; a function becomes one by the label farmhand.worker: "true"`, cmp.Or(known, "none"))
	}
}

// unreachable says what to do about a gateway that nobody answers at.
func unreachable(err error) error {
	if errors.Is(err, jobclient.ErrUnreachable) {
		return fmt.Errorf("%w; start the platform with farmhand up -d, or name another gateway with --gateway", err)
	}
	return err
}

// address finds the gateway, without a slash at its end, and the token for it.
func (c *connection) address() (gateway, token string, err error) {
	gateway, err = c.find("the gateway", c.gateway, "gateway.url", "FARMHAND_GATEWAY", "OPENFAAS_URL")
	if err != nil {
		return "", "", err
	}
	u, err := url.Parse(gateway)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", "", usage("%q is no URL of a gateway: want http://HOST:PORT", gateway)
	}
	token, err = c.token(gateway)
	return strings.TrimSuffix(gateway, "/"), token, err
}

// client connects to the dispatcher.
func (c *connection) client(cmd *cobra.Command) (*jobclient.Client, error) {
	gateway, token, err := c.address()
	if err != nil {
		return nil, err
	}
	client, err := jobclient.New(gateway+"/function/dispatcher", token)
	if err != nil {
		return nil, err
	}
	client.Notify = func(err error, wait time.Duration) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%v; trying again in %s\n", err, wait.Round(time.Millisecond))
	}
	return client, nil
}

// token proves who we are. The one of the state folder is for this machine
// only: no other gateway gets to see it.
func (c *connection) token(gateway string) (string, error) {
	if c.tokenFile != "" {
		raw, err := os.ReadFile(c.tokenFile)
		return strings.TrimSpace(string(raw)), err
	}
	if v := os.Getenv("FARMHAND_TOKEN"); v != "" {
		return v, nil
	}
	if !loopback(gateway) {
		return "", fmt.Errorf("no token for %s: set FARMHAND_TOKEN or --token-file to the value of its secret farmhand-token", gateway)
	}
	return c.find("the token", "", filepath.Join("secrets", "farmhand-token"), "FARMHAND_TOKEN")
}

func loopback(gateway string) bool {
	u, err := url.Parse(gateway)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// find looks for a value: given, in the environment, in the state folder.
func (c *connection) find(what, given, file string, env ...string) (string, error) {
	if given != "" {
		return given, nil
	}
	for _, name := range env {
		if v := os.Getenv(name); v != "" {
			return v, nil
		}
	}
	raw, err := os.ReadFile(filepath.Join(c.stateDir(), file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot find %s, no platform runs in %s: start it with farmhand up -d%s, or set %s",
			what, c.stateDir(), stateHint(c.state), strings.Join(env, " or "))
	}
	return strings.TrimSpace(string(raw)), err
}

// print writes data to standard output: JSON, or by the given function.
func (c *connection) print(cmd *cobra.Command, v any, text func()) error {
	if !c.json {
		text()
		return nil
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
