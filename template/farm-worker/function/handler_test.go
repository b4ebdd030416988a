package function

import (
	"context"
	"errors"
	"strings"
	"testing"

	handler "github.com/openfaas/templates-sdk/go-http"
)

func call(ctx context.Context, body string) (handler.Response, error) {
	req := handler.Request{Body: []byte(body)}
	req.WithContext(ctx)
	return Handle(req)
}

func TestHandle(t *testing.T) {
	resp, err := call(context.Background(), `{"text": "abc", "rounds": 1}`)
	if want := `{"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}`; err != nil || string(resp.Body) != want {
		t.Errorf("%s %v, want %s", resp.Body, err, want)
	}
}

// A bad task must not be tried again, so it is no error.
func TestBadTask(t *testing.T) {
	for _, body := range []string{"", "abc", `{"text": "abc"}`, `{"rounds": 1000000000}`} {
		resp, err := call(context.Background(), body)
		if err != nil || resp.StatusCode != 422 || !strings.Contains(string(resp.Body), "want") {
			t.Errorf("%q: %d %s %v", body, resp.StatusCode, resp.Body, err)
		}
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := call(ctx, `{"text": "abc", "rounds": 100000000}`); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
