package platform_test

import (
	"testing"
	"time"

	"farmhand/platform"
)

// Ten replicas get as many asynchronous calls at once as the platform makes: one
// on plain CE, which is told, or ten (P15).
func TestAsyncThroughput(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*platformConfig)
		told   platform.AsyncCalls // of 20 calls
	}{
		"one at a time": {func(c *platformConfig) { c.AsyncInflight = 1 }, platform.AsyncCalls{Waiting: 19, Running: 1, AtOnce: 1}},
		"ten at once":   {func(c *platformConfig) { c.AsyncInflight = 10 }, platform.AsyncCalls{Waiting: 10, Running: 10, AtOnce: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			b, g, r := start(t, allowLocal, c.change), newGate(t), newReceiver(t)
			d := function("echo", "max_inflight", "1")
			(*d.Labels)["com.openfaas.scale.min"] = "10"
			b.deploy(d)
			for range 20 {
				b.accepted("echo/"+g.path(), "", "X-Callback-Url", r.url)
			}
			for range 20 / c.told.AtOnce {
				g.begun(c.told.AtOnce)
				calls, err := platform.Async(t.Context(), b.Info())
				if err != nil || *calls != c.told {
					t.Errorf("%+v, %v; want %+v", calls, err, c.told)
				}
				c.told.Waiting -= c.told.AtOnce
				for range c.told.AtOnce {
					g.pass()
					if told := receive(t, "it is told", r.got); told.header.Get("X-Function-Status") != "200" {
						t.Errorf("%+v", told)
					}
				}
			}
			until(t, "nothing runs", func() bool {
				calls, err := platform.Async(t.Context(), b.Info())
				return err == nil && calls.Running == 0 && calls.Waiting == 0
			})
		})
	}
}

// A call is made again only after longer than it may take, unless a shorter time
// is asked for, which is told (P70: one ack_wait serves functions of any length).
func TestAckWait(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*platformConfig)
		warned bool
	}{
		"defaults":      {func(*platformConfig) {}, false},
		"longer calls":  {func(c *platformConfig) { c.UpstreamTimeout = 3 * time.Minute }, false},
		"what CE has":   {func(c *platformConfig) { c.AckWait = 30 * time.Second }, true},
		"shorter calls": {func(c *platformConfig) { c.AckWait, c.UpstreamTimeout = 30*time.Second, 10*time.Second }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var said log
			start(t, c.change, func(c *platformConfig) { c.Log = said.logger() })
			if got := said.has("--ack-wait is shorter"); got != c.warned {
				t.Errorf("warned: %v, want %v", got, c.warned)
			}
		})
	}
}
