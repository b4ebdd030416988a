package jobapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// Guard puts a check of who calls before the API, such as fn.RequireToken. Only
// an empty POST / without parameters passes by it: a schedule cannot send a
// token, and all that it can trigger is an answer.
func (a *API) Guard(check func(http.Handler) http.Handler) http.Handler {
	guarded := check(a)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && (r.URL.Path == "/" || r.URL.Path == "") && r.URL.RawQuery == "" && isEmpty(r) {
			_ = reply(w, http.StatusOK, map[string]string{"function": "dispatcher"}) // never fails
			return
		}
		guarded.ServeHTTP(w, r)
	})
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
