package natsstream

import (
	"strings"
	"testing"
	"time"

	stand "github.com/nats-io/nats-streaming-server/server"
	"github.com/nats-io/nats-streaming-server/stores"

	"farmhand/internal/stantest"
)

// A channel with a limit is refused, as a broker tells of it itself.
func TestLimits(t *testing.T) {
	set := func(msgs int, bytes int64, age time.Duration) *stores.ChannelLimits {
		l := &stores.ChannelLimits{}
		l.MaxMsgs, l.MaxBytes, l.MaxAge = msgs, bytes, age
		return l
	}
	for name, c := range map[string]struct {
		global   *stores.ChannelLimits
		channels map[string]*stores.ChannelLimits
		want     string
	}{
		"default":          {set(1_000_000, 1_024_000_000, 0), nil, "max_msgs 1000000, max_bytes 1024000000"},
		"none":             {set(0, 0, 0), nil, ""},
		"age":              {set(0, 0, time.Hour), nil, "max_age 1h0m0s"},
		"ours is free":     {set(10, 10, time.Hour), map[string]*stores.ChannelLimits{"farmhand.tasks.>": set(-1, -1, -1)}, ""},
		"part of it":       {set(10, 10, 0), map[string]*stores.ChannelLimits{"farmhand.tasks.*": set(-1, 0, 0)}, "max_bytes 10"},
		"ours is narrower": {set(0, 0, 0), map[string]*stores.ChannelLimits{"farmhand.>": set(-1, -1, -1), "farmhand.tasks.echo": set(7, 0, 0)}, "max_msgs 7"},
		"another's":        {set(0, 0, 0), map[string]*stores.ChannelLimits{"farmhand.tasks.other": set(7, 0, 0), "faas-request": set(1, 1, 1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := stantest.Start(t, func(o *stand.Options) { o.ChannelLimits, o.PerChannel = *c.global, c.channels })
			err := newLimits(s.Monitor).check(t.Context(), "farmhand.tasks.echo")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "beyond "+c.want+" the broker")) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if err := newLimits("http://127.0.0.1:1").check(t.Context(), "x"); err == nil {
		t.Error("nobody tells")
	}
}

func TestPatterns(t *testing.T) {
	for pattern, want := range map[string]bool{"a.b": true, "a.*": true, "*.b": true, "a.>": true, ">": true, "a": false, "a.b.>": false, "a.b.*": false, "a.c": false} {
		if matches(pattern, "a.b") != want {
			t.Errorf("%s: not %v", pattern, want)
		}
	}
}
