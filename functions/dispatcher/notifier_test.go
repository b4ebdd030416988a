package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/callback"
	"farmhand/skeleton/ledger"
)

// Who can check the signature of a callback cannot use the API.
func TestCallbacksAreNotSignedWithTheToken(t *testing.T) {
	t.Setenv("secret_mount_path", t.TempDir())
	var verify func(key string) error
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verify = func(key string) error {
			return callback.Verify(key, r.Header.Get(callback.HeaderTimestamp), r.Header.Get(callback.HeaderSignature), body, time.Now(), time.Minute)
		}
	}))
	defer srv.Close()
	n, err := notifier([]string{"127.0.0.1"}, "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Notify(t.Context(), ledger.CallbackDue{Job: skeleton.Job{ID: "echo~1", Callback: srv.URL}, Try: 1}); err != nil {
		t.Fatal(err)
	}
	if verify("s3cret") == nil {
		t.Error("the token signs callbacks")
	}
	if err := verify("99c9f32f5ee4b51513c8dfe56843bd482c46866bac3efe2edcaa88c54dc17feb"); err != nil {
		t.Error(err)
	}
}
