package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openfaas/faas-provider/types"
	"go.uber.org/goleak"

	"farmhand/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client returns a client of a gateway that answers by h.
func client(t *testing.T, h http.HandlerFunc, o gateway.Options) *gateway.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := gateway.New(srv.URL, &gateway.Credentials{User: "admin", Password: "s3cret"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

// calls are all of the client's, for what holds of each.
var calls = map[string]func(context.Context, *gateway.Client) error{
	"Functions": func(ctx context.Context, c *gateway.Client) error { _, err := c.Functions(ctx, ""); return err },
	"Function":  func(ctx context.Context, c *gateway.Client) error { _, err := c.Function(ctx, "f", false); return err },
	"Usage":     func(ctx context.Context, c *gateway.Client) error { _, err := c.Function(ctx, "f", true); return err },
	"Scale":     func(ctx context.Context, c *gateway.Client) error { return c.Scale(ctx, "f", 2) },
	"Deploy": func(ctx context.Context, c *gateway.Client) error {
		return c.Deploy(ctx, types.FunctionDeployment{Service: "f", Image: "i"})
	},
	"Delete":  func(ctx context.Context, c *gateway.Client) error { return c.Delete(ctx, "f") },
	"Info":    func(ctx context.Context, c *gateway.Client) error { _, err := c.Info(ctx); return err },
	"Healthy": func(ctx context.Context, c *gateway.Client) error { return c.Healthy(ctx) },
}

func TestStatusBecomesATypedError(t *testing.T) {
	for status, want := range map[int]error{
		400: gateway.ErrRejected, 401: gateway.ErrUnauthorized, 403: gateway.ErrUnauthorized, 404: gateway.ErrNotFound,
		405: gateway.ErrRejected, 429: gateway.ErrUnavailable, 500: gateway.ErrUnavailable, 502: gateway.ErrUnavailable,
		503: gateway.ErrUnavailable, 301: gateway.ErrRejected,
	} {
		c := client(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			http.Error(w, "plain text\n"+strings.Repeat("x", 1000), status)
		}, gateway.Options{})
		for name, call := range calls {
			err := call(t.Context(), c)
			var e *gateway.Error
			if !errors.Is(err, want) || !errors.As(err, &e) {
				t.Errorf("%d %s: %v, want %v", status, name, err, want)
				continue
			}
			if e.Status != status || !strings.HasPrefix(e.Body, "plain text x") || len(e.Body) > 300 {
				t.Errorf("%d %s: status %d, body %q", status, name, e.Status, e.Body)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: the error holds the password", name)
			}
		}
	}
}

// A JSON error body must not be read as a function of that name.
func TestBodiesOfErrorsAreNotRead(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(404)
		_, _ = io.WriteString(w, `{"name":"f","replicas":3}`)
	}, gateway.Options{})
	if f, err := c.Function(t.Context(), "f", false); !errors.Is(err, gateway.ErrNotFound) || f.Replicas != 0 {
		t.Errorf("%+v %v", f, err)
	}
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	for _, body := range []string{"", "<html>", `"x"`, `{"name":"other"}`, `[{"name":`} {
		c := client(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) }, gateway.Options{})
		for _, name := range []string{"Functions", "Function", "Usage"} {
			if err := calls[name](t.Context(), c); !errors.Is(err, gateway.ErrBadAnswer) {
				t.Errorf("%s of %q: %v", name, body, err)
			}
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	chunk := []byte(strings.Repeat(" ", 1<<20))
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		for range 40 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}, gateway.Options{})
	for name, call := range calls {
		if err := call(t.Context(), c); !errors.Is(err, gateway.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCallsEndInTime(t *testing.T) {
	c := client(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the client leave
		<-r.Context().Done()
	}, gateway.Options{Timeout: 30 * time.Millisecond})
	for name, call := range calls {
		err := call(t.Context(), c)
		if !errors.Is(err, gateway.ErrTimeout) || !errors.Is(err, gateway.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := call(ctx, c); !errors.Is(err, context.Canceled) || errors.Is(err, gateway.ErrUnavailable) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
	}
}

func TestBrokenConnections(t *testing.T) {
	for fault, want := range map[string]error{"refuse": gateway.ErrRefused, "close": gateway.ErrReset, "reset": gateway.ErrReset, "half": gateway.ErrReset} {
		c, err := gateway.New(faulty(t, fault), nil, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range calls {
			if err := call(t.Context(), c); !errors.Is(err, want) || !errors.Is(err, gateway.ErrUnavailable) {
				t.Errorf("%s: %s: %v", fault, name, err)
			}
		}
		c.CloseIdle()
	}
}

// What the gateway sees: credentials, names and namespaces in every place where
// some provider looks for them, also when go-sdk dumps requests.
func TestRequests(t *testing.T) {
	var got []string
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); (user != "admin" || pass != "s3cret") && r.URL.Path != "/healthz" {
			t.Errorf("%s: credentials %q", r.URL, user)
		}
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body))
		switch {
		case r.Method == "PUT":
			w.WriteHeader(404)
		case r.Method == "DELETE":
			w.WriteHeader(204)
		case r.Method == "POST":
			w.WriteHeader(202)
		case strings.HasPrefix(r.URL.Path, "/system/function/"):
			_, _ = io.WriteString(w, `{"name":"f"}`)
		case r.URL.Path == "/system/functions":
			_, _ = io.WriteString(w, `[{"name":"f"},{"name":"g","namespace":"x","replicas":2}]`)
		default:
			_, _ = io.WriteString(w, `{}`)
		}
	}, gateway.Options{})
	ctx := t.Context()
	for _, debug := range []string{"0", "1"} {
		t.Setenv("FAAS_DEBUG", debug)
		got = nil
		list, err := c.Functions(ctx, "")
		want := []types.FunctionStatus{{Name: "f", Namespace: "openfaas-fn"}, {Name: "g", Namespace: "x", Replicas: 2}}
		if diff := cmp.Diff(want, list); err != nil || diff != "" {
			t.Error(err, diff)
		}
		f, err := c.Function(ctx, "f.dev", true)
		if diff := cmp.Diff(types.FunctionStatus{Name: "f", Namespace: "dev"}, f); err != nil || diff != "" {
			t.Error(err, diff)
		}
		d := types.FunctionDeployment{Service: "f", Image: "i"}
		if err := errors.Join(c.Scale(ctx, "f", 7), c.Scale(ctx, "f.dev", 0), c.Deploy(ctx, d), c.Delete(ctx, "f"), c.Healthy(ctx)); err != nil {
			t.Error(err)
		}
		deployment, _ := json.Marshal(types.FunctionDeployment{Service: "f", Image: "i", Namespace: "openfaas-fn"})
		if diff := cmp.Diff([]string{
			"GET /system/functions?namespace=openfaas-fn ",
			"GET /system/function/f?namespace=dev&usage=1 ",
			`POST /system/scale-function/f {"serviceName":"f","replicas":7,"namespace":"openfaas-fn"}`,
			`POST /system/scale-function/f {"serviceName":"f","replicas":0,"namespace":"dev"}`,
			"PUT /system/functions " + string(deployment),
			"POST /system/functions " + string(deployment),
			`DELETE /system/functions {"functionName":"f","namespace":"openfaas-fn"}`,
			"GET /healthz ",
		}, got); diff != "" {
			t.Errorf("FAAS_DEBUG=%s: %s", debug, diff)
		}
	}
}

func TestInfo(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"provider":{"provider":"farmhand","version":{"sha":"a","release":"1"},"orchestration":"processes"},"version":{"release":"2"},"arch":"x86_64"}`)
	}, gateway.Options{})
	info, err := c.Info(t.Context())
	if err != nil || info.Provider.Provider != "farmhand" || info.Version.Release != "2" {
		t.Errorf("%+v %v", info, err)
	}
}

func TestBadNamesAreNotSent(t *testing.T) {
	c := client(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent %s", r.URL) }, gateway.Options{})
	ctx := t.Context()
	for _, name := range []string{"", ".", "a/b", "../x", "a.b.c", "a.", "a?x=1", "a b", "-a", strings.Repeat("a", 64)} {
		_, err := c.Function(ctx, name, false)
		for _, err := range []error{err, c.Scale(ctx, name, 1), c.Delete(ctx, name), c.Deploy(ctx, types.FunctionDeployment{Service: name})} {
			if !errors.Is(err, gateway.ErrBadName) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if err := c.Scale(ctx, "f", -1); err == nil {
		t.Error("scaled to -1")
	}
}

func TestBadURLs(t *testing.T) {
	for _, u := range []string{"", "gateway:8080", "ftp://x", "http://", "http://u:p4ss@x", "http://x/sub", "http://x?a=b", "http://u:p4ss@%zz"} {
		_, err := gateway.New(u, nil, gateway.Options{})
		_, err2 := gateway.NewInvoker(u, gateway.InvokerOptions{})
		if err == nil || err2 == nil || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%q: %v, %v", u, err, err2)
		}
	}
}

func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("secret_mount_path", dir)
	if c, err := gateway.ReadCredentials(); c != nil || err != nil {
		t.Errorf("none mounted: %v %v", c, err)
	}
	write := func(name, value string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("basic-auth-user", "admin\n")
	if _, err := gateway.ReadCredentials(); err == nil {
		t.Error("accepted a user without a password")
	}
	write("basic-auth-password", "s3cret\n")
	c, err := gateway.ReadCredentials()
	if err != nil || *c != (gateway.Credentials{User: "admin", Password: "s3cret"}) {
		t.Fatalf("%v %v", c, err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "creds", c)
	if text := fmt.Sprintf("%v %+v %#v %s", c, *c, *c, c) + log.String(); strings.Contains(text, "s3cret") {
		t.Errorf("printed: %s", text)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"f", "f.dev", "a/b", "..", "a.b.c", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		short, namespace, err := gateway.Split(name, "openfaas-fn")
		if err != nil {
			return
		}
		if strings.ContainsAny(name, "/?#%\\ \n\x00") || len(name) > 127 {
			t.Errorf("let %q through", name)
		}
		if back := gateway.Join(short, namespace, "openfaas-fn"); back != name && name != short+".openfaas-fn" {
			t.Errorf("%q came back as %q", name, back)
		}
	})
}
