package probe

import (
	"testing"

	handler "github.com/openfaas/templates-sdk/go-http"
)

func TestHandle(t *testing.T) {
	if resp, err := Handle(handler.Request{Body: []byte("x")}); err != nil || string(resp.Body) != "x" {
		t.Error(resp, err)
	}
}
