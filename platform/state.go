package platform

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"farmhand/internal/atomicfile"
	"farmhand/internal/proc"
	"farmhand/internal/secret"
)

// state is the folder that outlives the platform.
type state struct {
	dir  string
	lock *flock.Flock
}

// Info describes a running platform to other processes; it holds no secret.
type Info struct {
	Process    proc.ID   `json:"process"`
	URL        string    `json:"url"`
	MetricsURL string    `json:"metrics_url,omitempty"`
	State      string    `json:"state"`
	RedisKind  string    `json:"redis_kind"`
	RedisAddr  string    `json:"redis_addr"`
	NATSAddr   string    `json:"nats_addr,omitempty"`
	Durability string    `json:"durability"`
	Durable    string    `json:"durable"` // in words
	ColdStart  string    `json:"cold_start"`
	CE         bool      `json:"ce"`
	Version    string    `json:"version"`
	Started    time.Time `json:"started"`
}

// ErrNotRunning says that no platform runs on a state folder.
var ErrNotRunning = errors.New("no platform runs here")

// Running describes the platform that runs on a state folder, or returns
// ErrNotRunning.
func Running(dir string) (Info, error) {
	var info Info
	raw, err := os.ReadFile(filepath.Join(dir, "run", "platform.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return info, ErrNotRunning
	}
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return info, fmt.Errorf("run/platform.json: %w", err)
	}
	if !info.Process.Alive() {
		return info, ErrNotRunning
	}
	return info, nil
}

// openState makes the folder and takes its lock: one platform at a time.
func openState(dir string) (*state, error) {
	for _, sub := range []string{"", "credentials", "secrets", "bin", "redis", "logs", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("state folder: %w (set --state to a folder you may write)", err)
		}
		if err := os.Chmod(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("state folder: %w", err)
		}
	}
	s := &state{dir: dir, lock: flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))}
	ok, err := s.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if !ok {
		who := "another farmhand"
		if info, err := Running(dir); err == nil {
			who = fmt.Sprintf("process %d at %s", info.Process.Pid, info.URL)
		}
		return nil, fmt.Errorf("the state folder %s is in use by %s (end it with farmhand down, or give another --state)", dir, who)
	}
	if err := errors.Join(s.clearUnfinished(), s.generate()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *state) close() error { return s.lock.Close() }

func (s *state) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// clearUnfinished removes what a platform that was killed was just writing: it
// may be a secret.
func (s *state) clearUnfinished() error {
	for _, dir := range []string{"", "credentials", "secrets"} {
		entries, err := os.ReadDir(s.path(dir))
		if err != nil {
			return fmt.Errorf("state folder: %w", err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), atomicfile.Unfinished) {
				continue
			}
			if err := os.Remove(s.path(dir, e.Name())); err != nil {
				return fmt.Errorf("state folder: %w", err)
			}
		}
	}
	return nil
}

// generate makes what is secret, once.
func (s *state) generate() error {
	for path, value := range map[string]func() string{
		s.path("credentials", secret.GatewayUser): func() string { return "admin" },
		s.path("credentials", secret.GatewayPass): rand.Text,
		s.path("secrets", secret.Token):           rand.Text,
		s.path("secrets", secret.RedisPassword):   rand.Text,
	} {
		if err := os.Chmod(path, 0o600); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("state folder: %w", err)
		}
		if err := writeFile(path, []byte(value())); err != nil {
			return err
		}
	}
	return nil
}

// secretFile tells where a secret that a function may ask for is kept.
func (s *state) secretFile(name string) (string, bool) {
	if !secretRule.MatchString(name) {
		return "", false
	}
	dir := "secrets"
	if name == secret.GatewayUser || name == secret.GatewayPass {
		dir = "credentials"
	}
	path := s.path(dir, name)
	st, err := os.Stat(path)
	return path, err == nil && st.Mode().IsRegular()
}

// readSecret reads one of the state folder's own secrets.
func (s *state) readSecret(dir, name string) (string, error) {
	raw, err := os.ReadFile(s.path(dir, name))
	if err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	value := strings.TrimSpace(string(raw))
	if value == "" {
		return "", fmt.Errorf("%s is empty: delete it, and the next start makes a new one", s.path(dir, name))
	}
	return value, nil
}

// writeFile replaces a private file as a whole.
func writeFile(path string, data []byte) error {
	if err := atomicfile.Write(path, data, 0o600); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	return nil
}

// writeJSON writes a private JSON file as a whole.
func writeJSON(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(raw, '\n'))
}
