// Package gateway is a checked client of an OpenFaaS gateway: [Client] for its
// management API and [Invoker] for calls to functions.
//
// Client uses go-sdk for the shape of requests and answers. By itself go-sdk
// v0.2.22 does not look at the status of GetFunctions, GetFunction and GetInfo
// (a 401 or 404 in plain text comes out as a JSON error), reads bodies without
// bound, ignores an error while reading, drops the cause of a failed
// ScaleFunction or DeleteFunction from the error chain, and sends empty bodies
// when FAAS_DEBUG=1. All its calls therefore run over a transport of our own,
// which settles status, bounds and body before go-sdk sees an answer. Not in
// go-sdk, and ours: usage=1 of one function, health, and invocations (go-sdk's
// cannot send a sub-path or bound an answer).
//
// Nothing is retried, with two exceptions: Deploy posts after a 404 of its put,
// as faas-cli does, and net/http repeats a GET that met a dead idle connection.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/types"
	sdk "github.com/openfaas/go-sdk"

	"farmhand/internal/secret"
)

// Defaults of a Client.
const (
	DefaultURL       = "http://127.0.0.1:8080"
	DefaultNamespace = "openfaas-fn"
	DefaultTimeout   = 10 * time.Second // of one call
	maxBody          = 16 << 20         // of a management answer; a function takes about 1 kB
)

// Credentials of the gateway's management API. They print as their user only.
type Credentials struct{ User, Password string }

// String implements fmt.Stringer.
func (c Credentials) String() string { return c.User + ":***" }

// GoString implements fmt.GoStringer.
func (c Credentials) GoString() string { return c.String() }

// LogValue implements slog.LogValuer.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// ReadCredentials reads the secrets basic-auth-user and basic-auth-password. It
// returns nil when neither is mounted: the gateway may run without basic auth,
// and otherwise answers [ErrUnauthorized].
func ReadCredentials() (*Credentials, error) {
	user, userErr := secret.Read(secret.GatewayUser)
	pass, passErr := secret.Read(secret.GatewayPass)
	if errors.Is(userErr, secret.ErrMissing) && errors.Is(passErr, secret.ErrMissing) {
		return nil, nil
	}
	if err := errors.Join(userErr, passErr); err != nil {
		return nil, err
	}
	return &Credentials{User: user, Password: pass}, nil
}

// Options of a Client. The zero value means the defaults.
type Options struct {
	Namespace string            // of names without one (DefaultNamespace)
	Timeout   time.Duration     // of one call, besides its context's (DefaultTimeout)
	Transport http.RoundTripper // a transport of the client's own
}

// Client calls the management API. It is safe for concurrent use.
type Client struct {
	sdk       *sdk.Client
	base      *url.URL
	transport *checked
	namespace string
	timeout   time.Duration
}

// New makes a client of the gateway at rawURL; nil credentials send none.
func New(rawURL string, creds *Credentials, o Options) (*Client, error) {
	base, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: idleTimeout, DisableCompression: true}
	}
	c := &Client{base: base, transport: &checked{next: o.Transport}, namespace: o.Namespace, timeout: o.Timeout}
	var auth sdk.ClientAuth
	if creds != nil {
		auth = &sdk.BasicAuth{Username: creds.User, Password: creds.Password}
	}
	c.sdk = sdk.NewClient(base, auth, &http.Client{Transport: c.transport})
	return c, nil
}

// parseURL accepts the address of a gateway. go-sdk replaces the path, so a
// gateway below a path cannot be managed; and what stands in a URL ends up in
// logs, so credentials do not belong there.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("gateway: the URL must be like %s", DefaultURL) // not repeated: it may hold a password
	case u.User != nil:
		return nil, errors.New("gateway: the URL must not hold credentials; mount them as secrets")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("gateway: the URL %s must end after the host", u)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// CloseIdle closes the idle connections.
func (c *Client) CloseIdle() {
	if t, ok := c.transport.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Functions lists the functions of a namespace; "" means the client's. Every
// entry names its namespace.
func (c *Client) Functions(ctx context.Context, namespace string) ([]types.FunctionStatus, error) {
	if namespace == "" {
		namespace = c.namespace
	}
	var list []types.FunctionStatus
	err := c.call(ctx, "list functions", nil, func(ctx context.Context) (err error) {
		list, err = c.sdk.GetFunctions(ctx, namespace)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Namespace == "" {
			list[i].Namespace = namespace
		}
	}
	return slices.Clip(list), nil
}

// Function returns one function. With usage the gateway is asked for processor
// and memory too; FunctionStatus.Usage stays nil where it does not know. Counts
// that the answer leaves out are 0.
func (c *Client) Function(ctx context.Context, name string, usage bool) (types.FunctionStatus, error) {
	var f types.FunctionStatus
	short, namespace, err := Split(name, c.namespace)
	if err != nil {
		return f, err
	}
	var query url.Values
	if usage {
		query = url.Values{"usage": {"1"}}
	}
	op := "get function " + name
	err = c.call(ctx, op, query, func(ctx context.Context) (err error) {
		f, err = c.sdk.GetFunction(ctx, short, namespace)
		return err
	})
	if err != nil {
		return types.FunctionStatus{}, err
	}
	if f.Name != short { // JSON of something else, e.g. of a proxy in between
		return types.FunctionStatus{}, &Error{Op: op, Status: http.StatusOK, Err: fmt.Errorf("%w: it describes %.80q", ErrBadAnswer, f.Name)}
	}
	if f.Namespace == "" {
		f.Namespace = namespace
	}
	return f, nil
}

// Scale asks for n replicas. The gateway may clamp silently (a plain CE one to
// 1…5): read back Function(…).Replicas, which is what counts.
func (c *Client) Scale(ctx context.Context, name string, n int) error {
	if n < 0 {
		return fmt.Errorf("gateway: scale %s: %d replicas", name, n)
	}
	short, namespace, err := Split(name, c.namespace)
	if err != nil {
		return err
	}
	return c.call(ctx, fmt.Sprintf("scale %s to %d", name, n), nil, func(ctx context.Context) error {
		return c.sdk.ScaleFunction(ctx, short, namespace, uint64(n))
	})
}

// Deploy creates or updates a function: PUT, and POST when the gateway does not
// know it. A namespace may be part of the name.
func (c *Client) Deploy(ctx context.Context, d types.FunctionDeployment) error {
	fallback := d.Namespace
	if fallback == "" {
		fallback = c.namespace
	}
	op := "deploy " + d.Service
	var err error
	if d.Service, d.Namespace, err = Split(d.Service, fallback); err != nil {
		return err
	}
	err = c.call(ctx, op, nil, func(ctx context.Context) error {
		_, err := c.sdk.Update(ctx, d)
		return err
	})
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	return c.call(ctx, op, nil, func(ctx context.Context) error {
		_, err := c.sdk.Deploy(ctx, d)
		return err
	})
}

// Delete removes a function.
func (c *Client) Delete(ctx context.Context, name string) error {
	short, namespace, err := Split(name, c.namespace)
	if err != nil {
		return err
	}
	return c.call(ctx, "delete "+name, nil, func(ctx context.Context) error {
		return c.sdk.DeleteFunction(ctx, short, namespace)
	})
}

// Info describes the gateway and its provider.
func (c *Client) Info(ctx context.Context) (sdk.SystemInfo, error) {
	var info sdk.SystemInfo
	err := c.call(ctx, "get info", nil, func(ctx context.Context) (err error) {
		info, err = c.sdk.GetInfo(ctx)
		return err
	})
	return info, err
}

// Healthy asks the gateway whether it and its provider are up; it needs no
// credentials.
func (c *Client) Healthy(ctx context.Context) error {
	return c.call(ctx, "check health", nil, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("healthz").String(), nil)
		if err != nil {
			return err
		}
		resp, err := c.transport.RoundTrip(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}
