// Package secret reads OpenFaaS secrets from their mount and compares them in
// constant time.
package secret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// DefaultMount is where OpenFaaS mounts a function's secrets.
const DefaultMount = "/var/openfaas/secrets"

// Names of the secrets the suite's own functions use.
const (
	Token         = "farmhand-token"      // Bearer token of the suite's HTTP APIs
	RedisPassword = "farmhand-redis"      // password of Redis; optional
	NATSToken     = "farmhand-nats"       // token of NATS Streaming; optional
	Callback      = "farmhand-callback"   // signs callbacks; optional
	GatewayUser   = "basic-auth-user"     // gateway credentials; controller only
	GatewayPass   = "basic-auth-password" // gateway credentials; controller only
)

// ErrMissing says that a secret is not mounted.
var ErrMissing = errors.New("secret: not mounted")

// Read returns the secret's value without surrounding white space, from the
// folder named by the environment variable secret_mount_path, or DefaultMount.
// A missing file is ErrMissing.
func Read(name string) (string, error) {
	mount := os.Getenv("secret_mount_path")
	if mount == "" {
		mount = DefaultMount
	}
	raw, err := os.ReadFile(filepath.Join(mount, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s (looked in %s)", ErrMissing, name, mount)
	}
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", name, err)
	}
	value := strings.TrimSpace(string(raw))
	if value == "" {
		return "", fmt.Errorf("secret %s is empty", name)
	}
	return value, nil
}

// CallbackKey returns what signs callbacks: the secret farmhand-callback or, where
// there is none, a key derived from the token, so that a receiver never needs the
// token itself. An empty token gives no key.
func CallbackKey(token string) (string, error) {
	key, err := Read(Callback)
	if !errors.Is(err, ErrMissing) {
		return key, err
	}
	if token == "" {
		return "", nil
	}
	raw, err := hkdf.Key(sha256.New, []byte(token), nil, "farmhand callback", sha256.Size)
	if err != nil {
		return "", fmt.Errorf("secret: %w", err)
	}
	return hex.EncodeToString(raw), nil
}

// Equal compares two secrets in a time that does not depend on their content
// or length.
func Equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// Bearer reports whether r carries token as its bearer token.
func Bearer(r *http.Request, token string) bool {
	scheme, value, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return ok && strings.EqualFold(scheme, "bearer") && Equal(strings.TrimSpace(value), token)
}
