package platform_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"
	sdk "github.com/openfaas/go-sdk"
	"go.uber.org/goleak"

	"farmhand/platform"
)

// The test binary is also the function the tests deploy, and the platform that
// gets killed.
func TestMain(m *testing.M) {
	switch os.Getenv("test_role") {
	case "function":
		beFunction()
	case "platform":
		bePlatform()
	default:
		goleak.VerifyTestMain(m)
	}
}

// bePlatform runs a platform until it is told to end, or killed.
func bePlatform() {
	var c platform.Config
	if err := json.Unmarshal([]byte(os.Getenv("test_config")), &c); err != nil {
		panic(err)
	}
	p, err := platform.Start(context.Background(), c)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.URL())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	_ = p.Stop(context.Background())
}

// bench is a platform under test and a client of it.
type bench struct {
	*platform.Platform // nil when it runs in a process of its own
	t                  testing.TB
	config             platform.Config
	base               string // address of the gateway
	user, password     string
	client             *sdk.Client
	http               *http.Client
}

func config(t testing.TB) platform.Config {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return platform.Config{
		Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", State: t.TempDir(), Redis: "memory", ColdStart: "none",
		AllowDirs: []string{filepath.Dir(self)}, Log: slog.New(slog.NewTextHandler(writer{t}, nil)),
	}
}

type writer struct{ t testing.TB }

func (w writer) Write(p []byte) (int, error) {
	w.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// log keeps what a platform says.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *log) has(text string) bool { return strings.Contains(l.String(), text) }

func (l *log) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// start runs a platform until the test ends.
func start(t testing.TB, change ...func(*platform.Config)) *bench {
	t.Helper()
	c := config(t)
	for _, f := range change {
		f(&c)
	}
	p, err := platform.Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Platform: p, t: t, config: c, base: p.URL()}
	t.Cleanup(b.stop)
	b.user, b.password = p.Credentials()
	b.client, b.http = client(t, b.base, b.user, b.password)
	return b
}

// attach makes a client of a platform in another process.
func attach(t testing.TB, info platform.Info) *bench {
	t.Helper()
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(info.State, "credentials", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	b := &bench{t: t, config: platform.Config{State: info.State}, base: info.URL, user: read("basic-auth-user"), password: read("basic-auth-password")}
	b.client, b.http = client(t, b.base, b.user, b.password)
	return b
}

func client(t testing.TB, address, user, password string) (*sdk.Client, *http.Client) {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	h := &http.Client{Transport: tr, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return sdk.NewClient(u, &sdk.BasicAuth{Username: user, Password: password}, h), h
}

func (b *bench) stop() {
	b.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		b.t.Error(err)
	}
}

// function is a deployment of the test function. Environment: pairs.
func function(name string, env ...string) types.FunctionDeployment {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	d := types.FunctionDeployment{Service: name, Image: "test:latest", Namespace: "openfaas-fn",
		EnvVars:     map[string]string{"test_role": "function", "write_timeout": "5s", "healthcheck_interval": "0"},
		Labels:      &map[string]string{},
		Annotations: &map[string]string{"farmhand.local.command": self}}
	for i := 0; i < len(env); i += 2 {
		d.EnvVars[env[i]] = env[i+1]
	}
	return d
}

// deploy deploys and waits until all wanted replicas are ready.
func (b *bench) deploy(d types.FunctionDeployment) {
	b.t.Helper()
	code, err := b.client.Deploy(context.Background(), d)
	if err != nil || code != http.StatusAccepted {
		b.t.Fatalf("deploy: %d %v", code, err)
	}
	b.ready(d.Service)
}

func (b *bench) ready(name string) {
	b.t.Helper()
	b.await(name, name+" is ready", func(s platform.Detail) bool {
		return s.AvailableReplicas == s.Replicas && len(s.Instances) == int(s.Replicas)
	})
}

func (b *bench) scale(name string, n uint64) {
	b.t.Helper()
	if err := b.client.ScaleFunction(context.Background(), name, "openfaas-fn", n); err != nil {
		b.t.Fatal(err)
	}
}

// detail is the status with usage.
func (b *bench) detail(name string) platform.Detail {
	b.t.Helper()
	var d platform.Detail
	resp := b.system(http.MethodGet, "/system/function/"+name+"?usage=1", "")
	if err := json.Unmarshal([]byte(resp.body), &d); err != nil {
		b.t.Fatalf("%s: %v", resp.body, err)
	}
	return d
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // while reading the body
}

func (b *bench) system(method, path, body string) answer {
	b.t.Helper()
	req, err := http.NewRequest(method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.SetBasicAuth(b.user, b.password)
	return b.do(req)
}

func (b *bench) do(req *http.Request) answer {
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Error(err)
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), err}
}

// call invokes a function; headers are pairs.
func (b *bench) call(path string, headers ...string) answer {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.base+"/function/"+path, strings.NewReader("body"))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return b.do(req)
}

// later invokes a function in the background.
func (b *bench) later(path string, headers ...string) <-chan answer {
	ch := make(chan answer, 1)
	go func() { ch <- b.call(path, headers...) }()
	return ch
}

func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(raw), ") Z ")
}
