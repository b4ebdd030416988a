package platform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// beFunction is a function that does as it is told.
func beFunction() {
	if os.Getenv("fail_start") != "" {
		os.Exit(1)
	}
	if address := os.Getenv("term_url"); address != "" { // says that it shall end, and does not
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		go func() {
			for range term {
				ask(address)
			}
		}()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/_/ready", func(w http.ResponseWriter, _ *http.Request) {
		if os.Getenv("no_ready") != "" {
			w.WriteHeader(http.StatusNotFound)
		}
		if address := os.Getenv("ready_url"); address != "" {
			w.WriteHeader(ask(address))
		}
	})
	mux.HandleFunc("/", echo)
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	mux.HandleFunc("/partial", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half an ")
		_ = http.NewResponseController(w).Flush()
		os.Exit(3)
	})
	mux.HandleFunc("/hold", hold)
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("close") { // else net/http reads the body first
			w.Header().Set("Connection", "close")
		}
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	mux.HandleFunc("/burn", func(_ http.ResponseWriter, r *http.Request) {
		for end := time.Now().Add(duration(r)); time.Now().Before(end); {
		}
	})
	mux.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
	mux.HandleFunc("/spawn", func(w http.ResponseWriter, _ *http.Request) {
		cmd := exec.Command("/bin/sleep", "1000")
		if err := cmd.Start(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, cmd.Process.Pid)
	})
	mux.HandleFunc("/stream", stream)
	mux.HandleFunc("/world", world)
	mux.HandleFunc("/mirror", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Callback-Url", r.Header.Get("X-Callback-Url"))
		w.Header().Set("X-Mirror", "yes")
	})
	mux.HandleFunc("/print", func(_ http.ResponseWriter, r *http.Request) { fmt.Print(r.URL.Query().Get("text")) })
	var lc net.ListenConfig
	if os.Getenv("no_reuse") != "" {
		lc.Control = func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0) })
		}
	}
	l, err := lc.Listen(context.Background(), "tcp", os.Getenv("farmhand_listen"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "//") { // the mux would tidy it up
			echo(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// echoed is what the function saw.
type echoed struct {
	Method, Path, Query, Host string
	Header                    http.Header
	Body                      string
	Pid                       int
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if address := os.Getenv("tell_url"); address != "" { // of each call, and answers as it is told
		w.WriteHeader(ask(fmt.Sprintf("%s?%s", address, url.Values{"call": {fmt.Sprintf("%s %s %d bytes from %s", r.Method, r.URL, len(body), r.UserAgent())}}.Encode())))
	}
	if code := r.URL.Query().Get("status"); code != "" {
		w.Header().Set("Location", "/elsewhere")
		var n int
		_, _ = fmt.Sscan(code, &n)
		w.WriteHeader(n)
		return
	}
	_ = json.NewEncoder(w).Encode(echoed{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, r.Header, string(body), os.Getpid()})
}

// ask asks the test, and waits for its answer.
func ask(address string) int {
	resp, err := http.Get(address)
	if err != nil {
		return http.StatusServiceUnavailable // the test has ended
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// hold waits at its gate, even when the caller goes away; but it says so.
func hold(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server looks at the connection only after that
	gate := r.URL.Query().Get("gate")
	defer context.AfterFunc(r.Context(), func() { ask(gate + "/cancelled") })()
	ask(gate)
	fmt.Fprint(w, os.Getpid())
}

// stream sends three lines with its gate before the second and the third.
func stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	for n := range 3 {
		if n > 0 {
			ask(r.URL.Query().Get("gate"))
		}
		fmt.Fprintf(w, "{\"n\":%d}\n", n)
		_ = http.NewResponseController(w).Flush()
	}
}

// world tells what a function finds around it.
func world(w http.ResponseWriter, _ *http.Request) {
	secrets := map[string]string{}
	dir := os.Getenv("secret_mount_path")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		raw, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		info, _ := e.Info()
		secrets[e.Name()] = fmt.Sprintf("%s %o", raw, info.Mode().Perm())
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"env": os.Environ(), "secrets": secrets})
}

func duration(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("d"))
	if err != nil {
		panic(err)
	}
	return d
}
