package platform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// maxSystemBody bounds the bodies of the management API.
const maxSystemBody = 1 << 20

// buildTime bounds a deployment, which may have to build its program.
const buildTime = 10 * time.Minute

// gatewayHandler serves what an OpenFaaS gateway serves.
func (p *Platform) gatewayHandler(h types.FaaSHandlers) http.Handler {
	mux := http.NewServeMux()
	system := func(pattern string, m methods) { mux.Handle(pattern, p.credentials.guard(bounded(m))) }
	mux.Handle("/healthz", methods{http.MethodGet: h.Health})
	system("/system/info", methods{http.MethodGet: h.Info})
	system("/system/functions", methods{
		http.MethodGet: h.FunctionLister, http.MethodPost: h.DeployFunction,
		http.MethodPut: h.UpdateFunction, http.MethodDelete: h.DeleteFunction,
	})
	system("/system/function/{name}", methods{http.MethodGet: h.FunctionStatus})
	system("/system/scale-function/{name}", methods{http.MethodPost: h.ScaleFunction})
	system("/system/secrets", methods{
		http.MethodGet: h.Secrets, http.MethodPost: h.Secrets, http.MethodPut: h.Secrets, http.MethodDelete: h.Secrets,
	})
	system("/system/logs", methods{http.MethodGet: h.Logs})
	system("/system/namespaces", methods{http.MethodGet: h.ListNamespaces})
	for _, path := range []string{"/system/namespace", "/system/namespace/{name...}"} {
		system(path, methods{http.MethodGet: later("namespaces are fixed: there is only " + Namespace)})
	}
	system("/system/alert", methods{http.MethodPost: p.serveAlert})
	system("/system/", nil)

	protected := sameOrigin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not by the mux, which would tidy up the function's own path.
		if strings.HasPrefix(r.URL.Path, functionPrefix) {
			h.FunctionProxy(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, asyncPrefix) {
			p.queueCall(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return localOnly(protected)
}

// methods serves one path by method; others get an empty 405. A path without
// methods is not there.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m == nil {
		http.NotFound(w, r)
		return
	}
	if h := m[r.Method]; h != nil {
		h(w, r)
		return
	}
	w.WriteHeader(http.StatusMethodNotAllowed)
}

func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxSystemBody)
		next.ServeHTTP(w, r)
	})
}

func later(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusNotImplemented) }
}

// server is one listener and what answers on it.
type server struct {
	*http.Server
	listener net.Listener
	served   chan struct{}
}

// listen opens the address; a taken port is explained.
func listen(address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken: something else listens on it (perhaps another farmhand, or an OpenFaaS gateway); end that, or give %s another address, such as 127.0.0.1:0", address, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}

// serve answers on a listener until it is shut down.
func (p *Platform) serve(l net.Listener, h http.Handler) *server {
	s := &server{listener: l, served: make(chan struct{}), Server: &http.Server{
		Handler:           promptly(h),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       p.config.ReadTimeout,
		WriteTimeout:      p.config.WriteTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          p.quiet,
	}}
	go func() {
		defer close(s.served)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("the listener failed", "address", l.Addr(), "error", err)
		}
	}()
	return s
}

// shutdown takes no new calls and waits for those under way, until ctx ends.
func (s *server) shutdown(ctx context.Context) {
	if s.Shutdown(ctx) != nil {
		_ = s.Close() // calls that outlast the patience of whoever stops us
	}
	<-s.served
}

func (s *server) url() string { return "http://" + s.listener.Addr().String() }
