package fn

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"farmhand/internal/problem"
	"farmhand/internal/secret"
)

// Token reads the secret farmhand-token. Without it the function must not
// start, unless farmhand_insecure=true says that anybody may call it; then the
// token is empty.
func Token(log *slog.Logger) (string, error) {
	token, err := secret.Read(secret.Token)
	if errors.Is(err, secret.ErrMissing) && os.Getenv("farmhand_insecure") == "true" {
		log.Warn("INSECURE: there is no secret farmhand-token and farmhand_insecure=true; anybody who reaches the gateway may use this function")
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%w; create the secret, or set farmhand_insecure=true on a machine nobody else reaches", err)
	}
	return token, nil
}

// RequireToken lets only requests through that carry the bearer token. An empty
// token lets everything through.
func RequireToken(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token == "" || secret.Bearer(r, token) {
			next.ServeHTTP(w, r)
			return
		}
		detail := "the request carries no bearer token"
		if r.Header.Get("Authorization") != "" {
			detail = "the bearer token is not the right one"
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="farmhand"`)
		problem.Write(w, problem.New(http.StatusUnauthorized, "unauthorized", detail).
			At("Authorization", "send Authorization: Bearer <the secret farmhand-token>"))
	})
}
