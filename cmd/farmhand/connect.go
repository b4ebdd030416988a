package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = "."
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "farmhand")
}

// client connects to the dispatcher.
func (c *connection) client(cmd *cobra.Command) (*jobclient.Client, error) {
	gateway, err := c.find("the gateway", c.gateway, "gateway.url", "FARMHAND_GATEWAY", "OPENFAAS_URL")
	if err != nil {
		return nil, err
	}
	token := ""
	if c.tokenFile != "" {
		raw, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, err
		}
		token = string(raw)
	} else if token, err = c.find("the token", "", filepath.Join("secrets", "farmhand-token"), "FARMHAND_TOKEN"); err != nil {
		return nil, err
	}
	client, err := jobclient.New(strings.TrimSuffix(gateway, "/")+"/function/dispatcher", strings.TrimSpace(token))
	if err != nil {
		return nil, err
	}
	client.Notify = func(err error, wait time.Duration) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%v; trying again in %s\n", err, wait.Round(time.Millisecond))
	}
	return client, nil
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
		return "", fmt.Errorf("cannot find %s: start the platform with farmhand up -d, or set %s", what, strings.Join(env, " or "))
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
