package platform_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/stan.go"

	"farmhand/platform"
)

// receiver takes callbacks.
type receiver struct {
	url string
	got chan callbackSeen
}

type callbackSeen struct {
	path   string
	header http.Header
	body   string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: make(chan callbackSeen, 256)}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.got <- callbackSeen{req.URL.String(), req.Header, string(body)}
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

func allowLocal(c *platformConfig) { c.CallbackAllow = []string{"127.0.0.1"} }

// queue posts an asynchronous call; headers are pairs.
func (b *bench) queue(path, body string, headers ...string) answer {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.base+"/async-function/"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return b.do(req)
}

// accepted posts a call that must be taken, and returns its id.
func (b *bench) accepted(path, body string, headers ...string) string {
	b.t.Helper()
	a := b.queue(path, body, headers...)
	if a.status != http.StatusAccepted || a.body != "" {
		b.t.Fatalf("%s: %+v", path, a)
	}
	return a.header.Get("X-Call-Id")
}

// broker makes a client of the platform's broker.
func (b *bench) broker(t *testing.T, client string) stan.Conn {
	t.Helper()
	address, err := os.ReadFile(filepath.Join(b.config.State, "nats.url"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := stan.Connect("faas-cluster", client, stan.NatsURL(strings.TrimSpace(string(address))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A call is taken, made as it was sent, and its answer told to the callback.
func TestAsyncCall(t *testing.T) {
	b, r := start(t, allowLocal), newReceiver(t)
	b.deploy(function("echo"))
	a := b.queue("echo.openfaas-fn/x%2Fy//z?q=1&r", "hello", "X-Callback-Url", r.url+"/done?id=7", "X-Mine", "yes")
	id := a.header.Get("X-Call-Id")
	if a.status != 202 || a.body != "" || id == "" || a.header.Get("X-Start-Time") == "" || a.header.Get("X-Served-By") == "" {
		t.Fatalf("%+v", a)
	}
	c := receive(t, "the callback comes", r.got)
	var seen echoed
	if err := json.Unmarshal([]byte(c.body), &seen); err != nil {
		t.Fatalf("%v: %s", err, c.body)
	}
	if seen.Method != "POST" || seen.Path != "/x%2Fy//z" || seen.Query != "q=1&r" || seen.Body != "hello" || seen.Header.Get("X-Mine") != "yes" ||
		seen.Header.Get("X-Call-Id") != id || seen.Header.Get("X-Callback-Url") != r.url+"/done?id=7" || seen.Header.Get("User-Agent") != "openfaas-ce/nats-queue-worker" {
		t.Errorf("the function saw %+v", seen)
	}
	if c.path != "/done?id=7" || c.header.Get("X-Call-Id") != id || c.header.Get("X-Function-Status") != "200" || c.header.Get("X-Function-Name") != "echo.openfaas-fn" ||
		c.header.Get("X-Mine") != "" || !strings.HasPrefix(c.header.Get("Content-Type"), "text/plain") {
		t.Errorf("the receiver saw %+v", c)
	}
	if d, err := strconv.ParseFloat(c.header.Get("X-Duration-Seconds"), 64); err != nil || d <= 0 || len(c.header.Values("X-Duration-Seconds")) != 1 {
		t.Errorf("X-Duration-Seconds: %v", c.header.Values("X-Duration-Seconds"))
	}
	// An id of the caller's own is kept, and not told back.
	if got := b.accepted("echo", "", "X-Call-Id", "mine", "X-Callback-Url", r.url); got != "" {
		t.Errorf("X-Call-Id %q", got)
	}
	if c := receive(t, "the callback comes", r.got); c.header.Get("X-Call-Id") != "mine" {
		t.Errorf("%+v", c)
	}
	// A callback may go to a function of the platform.
	if a := b.queue("echo", "", "X-Callback-Url", b.base+"/function/echo"); a.status != 202 {
		t.Errorf("%+v", a)
	}
}

// Whatever comes of a call, it is told, once; nothing is tried again.
func TestAsyncOutcomes(t *testing.T) {
	b, r := start(t, allowLocal), newReceiver(t)
	b.deploy(function("echo"))
	for path, want := range map[string]string{"echo/x?status=500": "500", "echo/x?status=302": "302", "echo/partial": "502", "nosuch": "404"} {
		b.accepted(path, "", "X-Callback-Url", r.url)
		c := receive(t, path+" is told", r.got)
		if c.header.Get("X-Function-Status") != want && (want != "502" || c.header.Get("X-Function-Status") != "503") {
			t.Errorf("%s: %+v, want %s", path, c, want)
		}
		if want == "404" && !strings.Contains(c.body, "error finding function nosuch.openfaas-fn") {
			t.Errorf("%q", c.body)
		}
	}
	select {
	case c := <-r.got:
		t.Errorf("told once more: %+v", c)
	default:
	}
}

func TestAsyncRefusals(t *testing.T) {
	b := start(t)
	for name, c := range map[string]struct {
		method, path, callback string
		status                 int
		text                   string
	}{
		"GET":            {"GET", "echo", "", 405, ""},
		"PUT":            {"PUT", "echo", "", 405, ""},
		"DELETE":         {"DELETE", "echo", "", 405, ""},
		"no name":        {"POST", "", "", 404, ""},
		"no URL":         {"POST", "echo", "http://[::1", 400, "missing ']'"},
		"elsewhere":      {"POST", "echo", "http://169.254.169.254/latest", 400, "--callback-allow"},
		"no HTTP":        {"POST", "echo", "file:///etc/passwd", 400, "--callback-allow"},
		"relative, late": {"POST", "echo", "/function/echo", 202, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req, _ := http.NewRequest(c.method, b.URL()+"/async-function/"+c.path, nil)
			if c.callback != "" {
				req.Header.Set("X-Callback-Url", c.callback)
			}
			if a := b.do(req); a.status != c.status || !strings.Contains(a.body, c.text) {
				t.Errorf("%+v, want %d and %q", a, c.status, c.text)
			}
		})
	}
	none := start(t, func(c *platformConfig) { c.NATSListen = "none" })
	if a := none.queue("echo", ""); a.status != 500 || !strings.HasPrefix(a.body, "Error queuing request: ") {
		t.Errorf("without a broker: %+v", a)
	}
	for _, bad := range []func(*platformConfig){
		func(c *platformConfig) { c.CallbackAllow = []string{"*"} }, func(c *platformConfig) { c.NATSListen = "0.0.0.0:0" }, func(c *platformConfig) { c.AckWait = 1 },
	} {
		conf := config(t)
		bad(&conf)
		if p, err := platform.Start(t.Context(), conf); err == nil {
			_ = p.Stop(t.Context())
			t.Error("a configuration that makes no sense")
		}
	}
}

func TestAsyncBodies(t *testing.T) {
	ce := start(t, func(c *platformConfig) { c.CE = true })
	if a := ce.queue("echo", strings.Repeat("x", 256_000)); a.status != 202 {
		t.Errorf("%.200v", a)
	}
	want := "Error queuing request: request body too large for OpenFaaS CE (256001 bytes), maximum: 256000 bytes"
	if a := ce.queue("echo", strings.Repeat("x", 256_001)); a.status != 500 || strings.TrimSpace(a.body) != want {
		t.Errorf("%+v", a)
	}
	b, r := start(t, allowLocal), newReceiver(t)
	b.deploy(function("echo"))
	b.accepted("echo", strings.Repeat("x", 4<<20), "X-Callback-Url", r.url)
	if c := receive(t, "the callback comes", r.got); len(c.body) < 4<<20 {
		t.Errorf("%d bytes", len(c.body))
	}
	if a := b.queue("echo", strings.Repeat("x", 4<<20+1)); a.status != 413 {
		t.Errorf("%+v", a)
	}
}

// A run that outlasts ack_wait is made again, with the same id, and each is told.
func TestAsyncRedelivery(t *testing.T) {
	b, r, g := start(t, allowLocal, func(c *platformConfig) { c.AckWait = time.Second }), newReceiver(t), newGate(t)
	b.deploy(function("echo"))
	id := b.accepted("echo/"+g.path(), "", "X-Callback-Url", r.url)
	g.begun(2)
	g.open()
	for range 2 {
		if c := receive(t, "both are told", r.got); c.header.Get("X-Call-Id") != id {
			t.Errorf("%+v", c)
		}
	}
}

// A function that answers with the headers it got is called back once, and not
// called back for that, and so on.
func TestAsyncCallbackEndsThere(t *testing.T) {
	b, r := start(t, allowLocal), newReceiver(t)
	b.deploy(function("echo"))
	b.accepted("echo/mirror", "", "X-Callback-Url", r.url)
	c := receive(t, "the callback comes", r.got)
	if c.header.Get("X-Mirror") != "yes" || c.header.Values("X-Callback-Url") != nil {
		t.Errorf("the receiver saw %v", c.header)
	}
}

// Plain CE makes one call at a time; else there may be more.
func TestAsyncInflight(t *testing.T) {
	for name, ce := range map[string]bool{"CE": true, "else": false} {
		t.Run(name, func(t *testing.T) {
			b, r := start(t, allowLocal, func(c *platformConfig) { c.CE = ce }), newReceiver(t)
			b.deploy(function("echo"))
			var now, most atomic.Int32
			two := make(chan struct{})
			srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if n := now.Add(1); n > most.Load() {
					if most.Store(n); n == 2 {
						close(two)
					}
				}
				defer now.Add(-1)
				select {
				case <-two:
				case <-time.After(100 * time.Millisecond): // long enough for another to come
				}
			}))
			defer srv.Close()
			for range 4 {
				b.accepted("echo/hold?gate="+srv.URL, "", "X-Callback-Url", r.url)
			}
			for range 4 {
				receive(t, "all are told", r.got)
			}
			if n := most.Load(); ce && n != 1 || !ce && n < 2 {
				t.Errorf("%d at once", n)
			}
		})
	}
}

// Both ends of the wire can be somebody else's.
func TestAsyncWire(t *testing.T) {
	b, r := start(t, allowLocal), newReceiver(t)
	b.deploy(function("echo"))
	c := b.broker(t, "by-hand")
	seen := make(chan []byte, 16)
	if _, err := c.Subscribe("faas-request", func(m *stan.Msg) { seen <- m.Data }); err != nil {
		t.Fatal(err)
	}
	b.accepted("echo/x/y?q=1", "hello", "X-Callback-Url", r.url+"/done")
	var raw map[string]any
	if err := json.Unmarshal(receive(t, "the message comes", seen), &raw); err != nil {
		t.Fatal(err)
	}
	back, _ := raw["CallbackUrl"].(map[string]any)
	header, _ := raw["Header"].(map[string]any)
	if raw["Method"] != "POST" || raw["Path"] != "/x/y" || raw["QueryString"] != "q=1" || raw["Function"] != "echo" || raw["Body"] != "aGVsbG8=" ||
		raw["Host"] != strings.TrimPrefix(b.URL(), "http://") || back["Scheme"] != "http" || back["Path"] != "/done" || raw["QueueName"] != nil {
		t.Errorf("%v", raw)
	}
	for _, name := range []string{"Content-Length", "X-Call-Id", "X-Start-Time", "X-Callback-Url"} {
		if header[name] == nil {
			t.Errorf("no %s in %v", name, header)
		}
	}
	receive(t, "the call is told", r.got)
	b.accepted("echo", "")
	raw = nil
	if err := json.Unmarshal(receive(t, "the message comes", seen), &raw); err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"Path", "QueryString", "CallbackUrl", "Body"} {
		if _, ok := raw[absent]; ok {
			t.Errorf("%s is there: %v", absent, raw)
		}
	}

	if err := c.Publish("faas-request", []byte("{nonsense")); err != nil {
		t.Fatal(err)
	}
	hand := `{"Header":{"X-Call-Id":["by-hand"]},"Host":"gateway:8080","Body":"aGVsbG8=","Method":"POST","QueryString":"a=b","Function":"echo.openfaas-fn",
		"CallbackUrl":{"Scheme":"http","Opaque":"","User":null,"Host":"` + strings.TrimPrefix(r.url, "http://") + `","Path":"/z","RawPath":"","ForceQuery":false,"RawQuery":"","Fragment":"","RawFragment":""}}`
	if err := c.Publish("faas-request", []byte(hand)); err != nil {
		t.Fatal(err)
	}
	got := receive(t, "the call by hand is told", r.got)
	var saw echoed
	if err := json.Unmarshal([]byte(got.body), &saw); err != nil || saw.Body != "hello" || saw.Query != "a=b" || got.path != "/z" || got.header.Get("X-Call-Id") != "by-hand" {
		t.Errorf("%+v: %+v, %v", got, saw, err)
	}
}

// A function finds the broker: its address in the environment, if it asks for
// it, and the token as a secret.
func TestBrokerForFunctions(t *testing.T) {
	b := start(t)
	d := function("echo", "farmhand_nats_url", "nats://elsewhere", "farmhand_nats_monitor_url", "http://elsewhere", "farmhand_nats_cluster", "other")
	d.Secrets = []string{"farmhand-nats"}
	b.deploy(d)
	var w struct {
		Env     []string
		Secrets map[string]string
	}
	if err := json.Unmarshal([]byte(b.call("echo/world").body), &w); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(b.config.State, "nats.url"))
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Join(w.Env, "\n")
	token, _, _ := strings.Cut(w.Secrets["farmhand-nats"], " ")
	if !strings.Contains(env, "farmhand_nats_url=nats://"+b.Info().NATSAddr+"\n") || !strings.Contains(env, "farmhand_nats_cluster=faas-cluster\n") ||
		strings.Contains(env, "elsewhere") || strings.TrimSpace(string(raw)) != "nats://"+token+"@"+b.Info().NATSAddr {
		t.Errorf("%s\n%v", env, w.Secrets)
	}
	if _, err := stan.Connect("faas-cluster", "stranger", stan.NatsURL("nats://"+b.Info().NATSAddr)); err == nil {
		t.Error("no token is needed")
	}
	if st, err := os.Stat(filepath.Join(b.config.State, "nats.url")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
}
