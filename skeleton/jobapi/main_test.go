package jobapi_test

import (
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Nothing of the API goes on when its server has ended.
func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		code = 1
	}
	os.Exit(code)
}
