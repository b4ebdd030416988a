package jobapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// scheduleTime is how long a caller without a token may take to show that it
// sends no body.
const scheduleTime = 2 * time.Second

// Guard puts a check of who calls before the API, such as fn.RequireToken. Only
// an empty POST / without parameters passes by it: a schedule cannot send a
// token, and all that it can trigger is an answer.
func (a *API) Guard(check func(http.Handler) http.Handler) http.Handler {
	guarded := check(a)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/" && r.URL.Path != "" || r.URL.RawQuery != "" {
			guarded.ServeHTTP(w, r)
			return
		}
		if !passes(check, r) {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(scheduleTime)) // unsupported only in tests without a connection
		}
		if isEmpty(r) {
			_ = reply(w, http.StatusOK, map[string]string{"function": "dispatcher"}) // never fails
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// passes reports whether a request passes the check, which looks at its header
// only.
func passes(check func(http.Handler) http.Handler, r *http.Request) (ok bool) {
	head := r.Clone(r.Context())
	head.Body = http.NoBody
	check(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ok = true })).ServeHTTP(&statusProbe{header: http.Header{}}, head)
	return ok
}

// isEmpty reports whether a request has no body. A gateway sends bodies
// chunked, so the first byte tells; it is put back.
func isEmpty(r *http.Request) bool {
	first := make([]byte, 1)
	n, err := io.ReadFull(r.Body, first)
	if n == 0 {
		return errors.Is(err, io.EOF)
	}
	r.Body = &rest{Reader: io.MultiReader(bytes.NewReader(first), r.Body), Closer: r.Body}
	return false
}

// rest is a body of which something was put back.
type rest struct {
	io.Reader
	io.Closer
}
