package natsstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// limits reads what the broker keeps of a channel. NATS Streaming drops the
// oldest message beyond a limit, also one that nobody has got.
type limits struct {
	monitor string
	client  *http.Client
}

func newLimits(monitor string) limits {
	return limits{monitor: strings.TrimSuffix(monitor, "/"), client: &http.Client{Timeout: 5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}}}
}

// bounds are the limits of a channel, or of all; 0 means none. The broker tells
// them as they are in force: what a pattern has from a wider one is filled in.
type bounds struct {
	Msgs  int64         `json:"max_msgs"`
	Bytes int64         `json:"max_bytes"`
	Age   time.Duration `json:"max_age"`
}

// check says why a channel would lose messages, or nil. Where the broker does
// not tell, nothing is said against it.
func (l limits) check(ctx context.Context, channel string) error {
	if l.monitor == "" {
		return nil
	}
	b, err := l.read(ctx, channel)
	if err != nil {
		return fmt.Errorf("its limits cannot be read (farmhand_nats_monitor_url): %w", err)
	}
	var found []string
	if b.Msgs > 0 {
		found = append(found, fmt.Sprintf("max_msgs %d", b.Msgs))
	}
	if b.Bytes > 0 {
		found = append(found, fmt.Sprintf("max_bytes %d", b.Bytes))
	}
	if b.Age > 0 {
		found = append(found, fmt.Sprintf("max_age %s", b.Age))
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("beyond %s the broker drops tasks that nobody has got, without a word: set these limits of farmhand.tasks.> to -1 in the broker, or farmhand_nats_lossy=true if that is fine", strings.Join(found, ", "))
}

func (l limits) read(ctx context.Context, channel string) (bounds, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.monitor+"/streaming/storez", nil)
	if err != nil {
		return bounds{}, err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return bounds{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return bounds{}, fmt.Errorf("%s", resp.Status)
	}
	var answer struct {
		Limits struct {
			bounds
			Channels map[string]bounds `json:"channels"`
		} `json:"limits"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&answer); err != nil {
		return bounds{}, err
	}
	b := answer.Limits.bounds
	var patterns []string
	for p := range answer.Limits.Channels {
		if matches(p, channel) {
			patterns = append(patterns, p)
		}
	}
	if len(patterns) > 0 {
		b = answer.Limits.Channels[slices.MaxFunc(patterns, wider)] // the narrowest
	}
	return b, nil
}

// matches reports whether a pattern of subjects holds for a channel.
func matches(pattern, channel string) bool {
	p, c := strings.Split(pattern, "."), strings.Split(channel, ".")
	for i, token := range p {
		if token == ">" {
			return len(c) > i
		}
		if i >= len(c) || token != "*" && token != c[i] {
			return false
		}
	}
	return len(p) == len(c)
}

// wider orders patterns of one channel from the widest to the narrowest.
func wider(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	rank := map[string]int{">": 0, "*": 1}
	of := func(token string) int {
		if r, ok := rank[token]; ok {
			return r
		}
		return 2
	}
	for i := range min(len(x), len(y)) {
		if c := cmp.Compare(of(x[i]), of(y[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}
