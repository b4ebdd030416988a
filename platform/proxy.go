package platform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"farmhand/internal/problem"
)

// functionPrefix is the synchronous route.
const functionPrefix = "/function/"

// Headers of OpenFaaS.
const (
	headerCallID   = "X-Call-Id"
	headerStart    = "X-Start-Time"
	headerServedBy = "X-Served-By"
	headerDuration = "X-Duration-Seconds"
	headerInternal = "X-OpenFaaS-Internal"
	headerTimeout  = "X-Timeout"
	headerForFor   = "X-Forwarded-For"
	headerForHost  = "X-Forwarded-Host"
)

// Causes of a call's end that are not the function's doing.
var (
	errExecTimeout     = errors.New("exec_timeout")
	errUpstreamTimeout = errors.New("upstream_timeout")
)

// upstreamIdle is how long an idle connection to a replica is kept. It is
// shorter than the idle timeout of common servers (Node's is 5 s), so that a
// call never meets a connection which the server is just closing.
const upstreamIdle = 4 * time.Second

func newUpstream() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: -1}).DialContext,
		MaxIdleConns:        0, // no limit
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     upstreamIdle,
		DisableCompression:  true,
		WriteBufferSize:     16 << 10,
		ReadBufferSize:      16 << 10,
	}
}

// call is one invocation under way.
type call struct {
	f       *function
	r       *replica
	host    string    // the replica's address
	path    string    // escaped, within the function
	begun   time.Time // at the gateway
	handed  time.Time // to the replica
	id      string    // X-Call-Id
	ownID   bool      // made here, so the client is told
	unsent  bool      // the replica did not take the connection: another may have the call
	upload  *upload   // nil without a body
	inbound context.Context
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// newProxy forwards calls to replicas. It streams both ways and never repeats a
// call that a replica may have seen.
func (p *Platform) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:      p.upstream,
		Rewrite:        rewrite,
		ModifyResponse: p.modifyResponse,
		ErrorHandler:   p.proxyError,
		BufferPool:     &buffers{},
		ErrorLog:       p.quiet, // errors are answered and counted; cut streams are no news
	}
}

// splitFunctionPath takes /function/NAME/rest apart; rest stays escaped.
func splitFunctionPath(escaped, prefix string) (name, rest string) {
	name, rest, _ = strings.Cut(strings.TrimPrefix(escaped, prefix), "/")
	return name, "/" + rest
}

// invoke serves /function/NAME[/path].
func (p *Platform) invoke(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodHead:
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	name, path := splitFunctionPath(r.URL.EscapedPath(), functionPrefix)
	c := &call{path: path, begun: time.Now(), id: r.Header.Get(headerCallID), inbound: r.Context()}
	w.Header().Set(headerServedBy, p.servedBy)
	f, err := p.find(name, "")
	if err != nil {
		short, ns, _ := strings.Cut(name, ".")
		if ns == "" {
			ns = Namespace
		}
		http.Error(w, fmt.Sprintf("error finding function %s.%s: %v", short, ns, err), http.StatusNotFound)
		return
	}
	if c.f = f; c.id == "" {
		c.id, c.ownID = uuid.NewString(), true
	}
	p.forward(w, r, c)
}

func (p *Platform) forward(w http.ResponseWriter, r *http.Request, c *call) {
	if c.ownID {
		w.Header().Set(headerCallID, c.id)
	}
	w.Header().Set(headerStart, strconv.FormatInt(c.begun.UnixNano(), 10))
	series := c.f.name + "." + Namespace
	p.metrics.begin(series)
	seen := &statusWriter{ResponseWriter: w}
	defer func() {
		c.f.calls.Add(1)
		p.metrics.finish(series, seen.code(), time.Since(c.begun))
	}()

	ctx, cancel := context.WithTimeoutCause(r.Context(), p.config.UpstreamTimeout, errUpstreamTimeout)
	defer cancel()
	c.upload, _ = r.Body.(*upload)
	for {
		var err error
		if c.r, err = c.f.acquire(ctx); err != nil {
			refuseCall(seen, r, c, err)
			return
		}
		if p.attempt(ctx, seen, r, c); !c.unsent {
			return
		}
	}
}

// attempt forwards the call to the replica it was given.
func (p *Platform) attempt(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call) {
	defer c.f.release(c.r)
	c.host, c.handed, c.unsent = c.r.address, time.Now(), false
	if d := c.r.spec.timeout(r.Header.Get(headerTimeout)); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, errExecTimeout)
		defer cancel()
	}
	if c.upload.missing() { // the transport returns only once it has stopped reading
		defer context.AfterFunc(ctx, func() { _ = c.upload.stop() })()
	}
	p.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callKey{}, c)))
}

// refuseCall answers a call that got no replica.
func refuseCall(w http.ResponseWriter, r *http.Request, c *call, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	var busy *busyError
	if errors.As(err, &busy) {
		w.Header().Set(headerInternal, "faas-middleware")
		http.Error(w, busy.Error(), http.StatusTooManyRequests)
		return
	}
	w.Header().Set(headerInternal, "proxy")
	http.Error(w, fmt.Sprintf("No endpoints available for: %s: %v", c.f.name, err), http.StatusServiceUnavailable)
}

func rewrite(pr *httputil.ProxyRequest) {
	c := callOf(pr.In.Context())
	out := pr.Out
	path, err := url.PathUnescape(c.path)
	if err != nil { // cannot be: the server has parsed it
		path = c.path
	}
	out.URL = &url.URL{Scheme: "http", Host: c.host, Path: path, RawPath: c.path, RawQuery: pr.In.URL.RawQuery, ForceQuery: pr.In.URL.ForceQuery}
	out.Host = ""
	h := out.Header
	h.Set(headerCallID, c.id)
	h.Set(headerStart, strconv.FormatInt(c.begun.UnixNano(), 10))
	// A function that calls another passes on where the call came from.
	for name, value := range map[string]string{headerForFor: pr.In.RemoteAddr, headerForHost: pr.In.Host} {
		if v := pr.In.Header.Get(name); v != "" {
			value = v
		}
		h.Set(name, value)
	}
}

func (p *Platform) modifyResponse(resp *http.Response) error {
	c := callOf(resp.Request.Context())
	h := resp.Header
	h.Del(headerServedBy) // ours are set already; a function's would be added to them
	h.Del(headerStart)
	if c.ownID {
		h.Del(headerCallID)
	}
	h.Set(headerDuration, seconds(time.Since(c.handed)))
	if c.upload.missing() { // an answer before its time: it does not wait for the body
		h.Set("Connection", "close")
	}
	return nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }

// proxyError answers a call whose replica gave no answer. What is lost with its
// replica is an empty 502 without X-OpenFaaS-Internal; what is wrong with the
// client's body says nothing about the replica.
func (p *Platform) proxyError(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r.Context())
	cause, gone := context.Cause(r.Context()), c.inbound.Err() != nil
	var dial *net.OpError
	if cause == nil && errors.As(err, &dial) && dial.Op == "dial" {
		c.f.suspect(c.r)
		c.unsent = true
		return
	}
	broken := c.upload.stop()
	if c.upload.missing() {
		w.Header().Set("Connection", "close")
	}
	switch {
	case broken != nil && (cause != nil || !overdue(broken)):
		w.Header().Set(headerInternal, "proxy")
		problem.Write(w, bodyProblem(broken))
	case gone: // the client has
	case errors.Is(cause, errExecTimeout):
		w.Header().Set(headerInternal, "of-watchdog")
		w.Header().Set(headerDuration, seconds(time.Since(c.handed)))
		w.WriteHeader(http.StatusGatewayTimeout)
	case errors.Is(cause, errUpstreamTimeout):
		w.WriteHeader(http.StatusBadGateway)
	default:
		c.f.suspect(c.r)
		p.log.Debug("a call was lost with its replica", "replica", c.r.id, "error", err)
		w.WriteHeader(http.StatusBadGateway)
	}
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush and hijack.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// code is the status, or 499 when the client went away before there was one.
func (w *statusWriter) code() int {
	if w.status == 0 {
		return 499
	}
	return w.status
}

// buffers are the proxy's copy buffers.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if v, ok := b.pool.Get().(*[]byte); ok {
		return *v
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }
