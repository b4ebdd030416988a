package platform

import (
	"net"
	"net/http"
	"strings"

	"farmhand/internal/secret"
)

// credentials guard the management API.
type credentials struct{ user, password string }

// guard lets only callers with the credentials through.
func (c credentials) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		// Both are compared in any case, so that time tells nothing.
		sameUser, samePassword := secret.Equal(user, c.user), secret.Equal(password, c.password)
		if !ok || !sameUser || !samePassword {
			w.Header().Set("Www-Authenticate", `Basic realm="Restricted"`)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte("invalid credentials"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses requests that a web page of another origin makes: whoever
// opens a page must not deploy or call anything by that. It reads what browsers
// say of a request, and lets other clients through.
func sameOrigin(next http.Handler) http.Handler {
	c := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := *r
		// A GET, such as for an image in a page, calls a function like any other
		// method: none is safe here.
		asked.Method = http.MethodPost
		if c.Check(&asked) != nil {
			http.Error(w, "a web page of another origin may not call this platform; call it from the server of that page, or from a program such as curl", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localOnly refuses requests that were meant for another host: a page whose
// name was made to point at this machine must not reach it.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "this platform answers only to a loopback host such as 127.0.0.1 or localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
		if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
			host = host[1 : n-1]
		}
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
