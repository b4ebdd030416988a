package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// longestSleep of a worker is below this, in seconds: so long the gateway waits.
const longestSleep = 60

// Worker serves, on the address in farmhand_listen, tasks whose body says for
// how many seconds the worker is busy with something that takes no processor.
func Worker(ctx context.Context) error {
	s := &http.Server{Addr: os.Getenv("farmhand_listen"), ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(serve)}
	if s.Addr == "" {
		return errors.New("bench worker: farmhand_listen is not set: it is run by the platform")
	}
	go func() {
		<-ctx.Done()
		_ = s.Shutdown(context.Background()) // the platform kills what takes too long
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("bench worker: %w", err)
	}
	return nil
}

func serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		return // ready
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, 64))
	seconds, perr := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64)
	if err != nil || perr != nil || !(seconds >= 0 && seconds < longestSleep) {
		http.Error(w, fmt.Sprintf("want seconds, from 0 to below %d", longestSleep), http.StatusUnprocessableEntity)
		return
	}
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
	case <-r.Context().Done():
	}
}
