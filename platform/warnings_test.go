package platform_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"farmhand/platform"
)

// Times that do not add up are told when a function is deployed, and in its
// status (P19). An asynchronous call is accepted, gets its id and is told all the
// same.
func TestTimesThatDoNotAddUp(t *testing.T) {
	var said log
	b := start(t, allowLocal, func(c *platformConfig) {
		c.UpstreamTimeout, c.ColdStart, c.Log = 4*time.Second, "constant:1s", said.logger()
	})
	r := newReceiver(t)
	for name, c := range map[string]struct {
		exec, service string
		want          []string
	}{
		"fits":     {"4s", "", nil},
		"long":     {"5s", "", []string{"exec_timeout 5s is longer than the gateway waits (--upstream-timeout 4s)"}},
		"endless":  {"0", "", []string{"exec_timeout none is longer"}},
		"slow":     {"4s", "3100ms", []string{"a cold start (1s) and a task (farmhand.service 3.1s) take longer"}},
		"quick":    {"4s", "1s", nil},
		"nonsense": {"4s", "soon", nil}, // farmhand status has that under INVALID
		"both":     {"5s", "4s", []string{"exec_timeout 5s", "a cold start"}},
	} {
		d := function(name, "exec_timeout", c.exec)
		if (*d.Labels)["com.openfaas.scale.min"] = "0"; c.service != "" {
			(*d.Annotations)["farmhand.service"] = c.service
		}
		if a := b.system("POST", "/system/functions", deployment(d)); a.status != 202 {
			t.Fatalf("%s: %+v", name, a)
		}
		got := b.detail(name).Warnings
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(got[i], want) || !said.has(want) {
				t.Errorf("%s: %q, want %q, in the log too: %v", name, got[i], want, said.has(want))
			}
		}
	}
	id := b.accepted("quick", "body", "X-Callback-Url", r.url)
	if told := receive(t, "it is told", r.got); id == "" || told.header.Get("X-Call-Id") != id || told.header.Get("X-Function-Status") != "200" {
		t.Errorf("id %q: %+v", id, told)
	}
}

// Nothing is said of what the platform itself has by default, nor in JSON.
func TestNoWarnings(t *testing.T) {
	b := start(t, func(c *platformConfig) { c.ColdStart = platform.DefaultColdStart })
	d := function("echo")
	delete(d.EnvVars, "write_timeout")
	(*d.Labels)["com.openfaas.scale.min"] = "0"
	(*d.Annotations)["farmhand.service"] = "50s"
	if a := b.system("POST", "/system/functions", deployment(d)); a.status != 202 {
		t.Fatal(a)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(b.system("GET", "/system/function/echo?usage=1", "").body), &m); err != nil || m["warnings"] != nil {
		t.Errorf("%v, %v", m, err)
	}
}
