package fn

import (
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	"farmhand/internal/problem"
)

// handler adds to a service's handler what the platform asks of a function, and
// turns a panic into a problem document. It is no ServeMux: that redirects paths
// such as //x to where the function is not, since only the gateway knows where
// that is mounted.
type handler struct {
	service  *Service
	log      *slog.Logger
	draining atomic.Bool
}

func newHandler(s *Service, log *slog.Logger) *handler { return &handler{service: s, log: log} }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		w.Header().Set("Connection", "close") // so that no idle connection is left when the server ends
	}
	t := &writer{ResponseWriter: w}
	defer h.rescue(t, r)
	switch r.URL.Path {
	case "/_/health":
		_, _ = io.WriteString(t, "OK\n")
	case "/_/ready":
		h.ready(t)
	default:
		h.service.Handler.ServeHTTP(t, r)
	}
}

func (h *handler) ready(w http.ResponseWriter) {
	if h.draining.Load() || h.service.Ready != nil && !h.service.Ready() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "OK\n")
}

// rescue answers 500 for a handler that panicked. Once the answer has begun
// only breaking it off tells the client that it is not whole.
func (h *handler) rescue(w *writer, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	h.log.Error("panic in a handler", "panic", v, "path", r.URL.Path, "stack", string(debug.Stack()))
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	clear(w.Header())
	problem.Write(w, problem.New(http.StatusInternalServerError, "internal", "an internal error; the function's log has it"))
}

// writer remembers whether the answer has begun.
type writer struct {
	http.ResponseWriter
	begun bool
}

func (w *writer) WriteHeader(status int) {
	w.begun = w.begun || status >= 200 || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController.Flush calls.
func (w *writer) FlushError() error {
	w.begun = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() } // Flusher reports no error

// Unwrap lets http.ResponseController reach deadlines and hijacking.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
