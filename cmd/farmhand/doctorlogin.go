package main

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"farmhand/gateway"
	"farmhand/internal/secret"
)

// gatewayURL finds the gateway.
func (d *doctor) gatewayURL() (string, error) {
	url, err := d.find("the gateway", d.gateway, "gateway.url", "FARMHAND_GATEWAY", "OPENFAAS_URL")
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(url, "/"), nil
}

// login makes a client of the gateway's management API, with the login that is
// known for it, or with none.
func (d *doctor) login() (*gateway.Client, error) {
	creds, err := d.credentials()
	if err != nil {
		return nil, err
	}
	client, err := gateway.New(d.url, creds, gateway.Options{})
	if err != nil {
		return nil, usage("%v", err)
	}
	return client, nil
}

func (d *doctor) credentials() (*gateway.Credentials, error) {
	if d.passwordFile != "" {
		user := "admin"
		if d.userFile != "" {
			var err error
			if user, err = readTrimmed(d.userFile); err != nil {
				return nil, err
			}
		}
		password, err := readTrimmed(d.passwordFile)
		return &gateway.Credentials{User: user, Password: password}, err
	}
	if d.local() {
		user, err := readTrimmed(filepath.Join(d.stateDir(), "credentials", secret.GatewayUser))
		if err != nil {
			return nil, err
		}
		password, err := readTrimmed(filepath.Join(d.stateDir(), "credentials", secret.GatewayPass))
		return &gateway.Credentials{User: user, Password: password}, err
	}
	return ofCLI(d.url)
}

// local reports whether the gateway is that of the state folder.
func (d *doctor) local() bool {
	url, err := readTrimmed(filepath.Join(d.stateDir(), "gateway.url"))
	return err == nil && strings.TrimSuffix(url, "/") == d.url
}

func readTrimmed(file string) (string, error) {
	raw, err := os.ReadFile(file)
	return strings.TrimSpace(string(raw)), err
}

// cliConfig is the file in which faas-cli login keeps what it was told.
type cliConfig struct {
	Auths []struct {
		Gateway string
		Auth    string
		Token   string // of basic: user:password in base64
	}
}

// ofCLI returns the login that faas-cli has for a gateway, or nil.
func ofCLI(url string) (*gateway.Credentials, error) {
	home, _ := os.UserHomeDir() // without one only the variable can say where
	file := filepath.Join(cmp.Or(os.Getenv("OPENFAAS_CONFIG"), filepath.Join(home, ".openfaas")), "config.yml")
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c cliConfig
	if err := yaml.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("%s is not as faas-cli writes it; log in again, or give --password-file", file) // not repeated: it holds passwords
	}
	for _, a := range c.Auths {
		if !strings.EqualFold(strings.TrimSuffix(a.Gateway, "/"), url) || a.Auth != "basic" {
			continue
		}
		pair, err := base64.StdEncoding.DecodeString(a.Token)
		user, password, ok := strings.Cut(string(pair), ":")
		if err != nil || !ok {
			return nil, fmt.Errorf("%s has no login that can be read for %s; log in again, or give --password-file", file, url)
		}
		return &gateway.Credentials{User: user, Password: password}, nil
	}
	return nil, nil
}
