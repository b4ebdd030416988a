package platform

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/openfaas/faas-provider/types"

	"farmhand/internal/secret"
)

// Bounds of what is kept for functions.
const (
	maxSecret  = 256 << 10 // bytes of a value
	maxSecrets = 1000
)

// ownSecrets are the platform's: functions may name them, but only the platform
// makes them.
var ownSecrets = []string{secret.GatewayUser, secret.GatewayPass, secret.RedisPassword, secret.NATSToken, secret.Token}

// serveSecrets lists the names of secrets, and changes them. No answer, error or
// log of it holds a value.
func (p *Platform) serveSecrets(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		p.listSecrets(w, r)
		return
	}
	s, err := readSecretBody(r)
	if err == nil {
		err = p.changeSecret(r.Method, s.Name, secretValue(s))
	}
	if err != nil {
		writeError(w, p, err)
		return
	}
	p.log.Info("secret changed", "secret", s.Name, "method", r.Method)
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
		return
	}
	w.WriteHeader(http.StatusAccepted) // also for DELETE: clients take 204 for a failure
}

func (p *Platform) listSecrets(w http.ResponseWriter, r *http.Request) {
	if err := checkNamespace(r.URL.Query().Get("namespace"), http.StatusBadRequest); err != nil {
		writeError(w, p, err)
		return
	}
	p.secrets.RLock()
	names, err := p.state.secretNames()
	p.secrets.RUnlock()
	if err != nil {
		writeError(w, p, err)
		return
	}
	list := make([]types.Secret, len(names))
	for i, name := range names {
		list[i] = types.Secret{Name: name, Namespace: Namespace}
	}
	writeBody(w, list)
}

// readSecretBody reads and checks what is asked of a secret. What is wrong with
// JSON is not quoted: it may be the value.
func readSecretBody(r *http.Request) (types.Secret, error) {
	var s types.Secret
	err := readBody(r, &s, "")
	var bad *refusal
	if errors.As(err, &bad) && bad.status == http.StatusBadRequest {
		err = badRequest(`the body is no secret; want JSON such as {"name":"api-key","value":"…"}, or rawValue in base64 instead of value`)
	}
	if err == nil {
		s.Namespace, err = bodyNamespace(s.Namespace, r)
	}
	switch size := len(secretValue(s)); {
	case err != nil:
	case s.Name == "":
		err = badRequest("name of the secret: missing")
	case !secretRule.MatchString(s.Name): // not repeated: people mix up name and value
		err = badRequest("name of the secret: want at most 253 lower-case letters, digits, dashes and dots, with a letter or digit at both ends")
	case r.Method == http.MethodDelete:
	case size == 0:
		err = badRequest("secret %s: its value is empty; give value, or rawValue in base64", s.Name)
	case size > maxSecret:
		err = refuse(http.StatusRequestEntityTooLarge, "secret %s: %d bytes; shorten it to %d", s.Name, size, maxSecret)
	}
	return s, err
}

// secretValue is what a function shall find in the file: rawValue counts where
// there is no value.
func secretValue(s types.Secret) []byte {
	if s.Value != "" {
		return []byte(s.Value)
	}
	return s.RawValue
}

// changeSecret creates, replaces or deletes a secret.
func (p *Platform) changeSecret(method, name string, value []byte) error {
	p.secrets.Lock()
	defer p.secrets.Unlock()
	file, known := p.state.secretFile(name)
	own := slices.Contains(ownSecrets, name)
	switch {
	case method == http.MethodPost && known:
		return refuse(http.StatusConflict, "secret %s exists; change it with PUT (faas-cli secret update)", name)
	case method != http.MethodPost && !known:
		return refuse(http.StatusNotFound, "secret %s does not exist; create it with POST (faas-cli secret create)", name)
	case own:
		return badRequest("secret %s is the platform's own and cannot be changed here; to have a new one, end the platform, delete %s and start it again", name, file)
	case method == http.MethodDelete:
		for _, f := range p.naming(name) {
			p.log.Warn("a secret that is in use is deleted: no further replica can start", "secret", name, "function", f.name)
		}
		return os.Remove(file)
	case method == http.MethodPost:
		names, err := p.state.secretNames()
		if err != nil {
			return err
		}
		if len(names) >= maxSecrets {
			return badRequest("secret %s: there are %d already; delete some (faas-cli secret remove)", name, len(names))
		}
	}
	if err := writeFile(file, value); err != nil {
		return err
	}
	return p.remount(name, value)
}

// naming lists the functions that name a secret.
func (p *Platform) naming(name string) []*function {
	return slices.DeleteFunc(p.list(), func(f *function) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !slices.Contains(f.spec.Secrets, name)
	})
}

// remount gives the new value to the replicas that have the old one: they find
// it when they read the file again, as on a cluster.
func (p *Platform) remount(name string, value []byte) error {
	replicas, err := os.ReadDir(p.state.path("run"))
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	for _, r := range replicas {
		file := p.state.path("run", r.Name(), "secrets", name)
		if _, err := os.Lstat(file); err != nil {
			continue // not a replica, or one that does not name it
		}
		if err := writeFile(file, value); err != nil {
			return err
		}
	}
	return nil
}

// secretNames lists, in order, the secrets that a function may name.
func (s *state) secretNames() ([]string, error) {
	entries, err := os.ReadDir(s.path("secrets"))
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	names := []string{secret.GatewayUser, secret.GatewayPass}
	for _, e := range entries {
		if _, ok := s.secretFile(e.Name()); ok && !slices.Contains(names, e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
