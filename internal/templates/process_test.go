package templates_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const patience = 20 * time.Second // for what takes milliseconds on an idle machine

// process is a function's program that runs as the local platform runs it.
type process struct {
	url  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended, after its whole log
	err  error

	mu  sync.Mutex
	log bytes.Buffer // guarded by mu
}

var address = regexp.MustCompile(`address=(127\.0\.0\.1:\d+)`)

// start runs a program with nothing but this environment, and waits until it
// says where it listens, or ends.
func start(t *testing.T, program string, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program), done: make(chan struct{})}
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append([]string{"farmhand_listen=127.0.0.1:0"}, env...)
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens := make(chan string, 1)
	go func() {
		defer close(p.done)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.log.WriteString(s.Text() + "\n")
			p.mu.Unlock()
			if m := address.FindStringSubmatch(s.Text()); m != nil {
				select {
				case listens <- m[1]:
				default:
				}
			}
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.done })
	select {
	case a := <-listens:
		p.url = "http://" + a
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("it neither listens nor ends: %s", p.text())
	}
	return p
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

type reply struct {
	status int // 0 = nobody answered
	body   string
	header http.Header
	closed bool // the server closes the connection
}

// post calls the function.
func (p *process) post(t *testing.T, path string, body io.Reader, header ...string) reply {
	t.Helper()
	return p.send(t.Context(), "POST", path, body, header...)
}

func (p *process) get(t *testing.T, path string) reply {
	t.Helper()
	return p.send(t.Context(), "GET", path, nil)
}

var client = &http.Client{Transport: &http.Transport{ExpectContinueTimeout: patience}}

func (p *process) send(ctx context.Context, method, path string, body io.Reader, header ...string) reply {
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return reply{body: err.Error()}
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return reply{body: err.Error()}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{body: err.Error()}
	}
	return reply{resp.StatusCode, string(text), resp.Header, resp.Close}
}

func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		r := p.get(t, "/_/ready")
		if r.status == 200 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not ready: %+v; log: %s", r, p.text())
		}
	}
}

func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// awaitLog waits until the log has a word.
func (p *process) awaitLog(t *testing.T, word string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.text(), word); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log never says %q: %s", word, p.text())
		}
	}
}

// awaitEnd waits until the process has ended, and returns its exit error.
func (p *process) awaitEnd(t *testing.T) error {
	t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(patience):
		t.Fatalf("it does not end: %s", p.text())
		return nil
	}
}

// terminateDuring begins a call and, when the function waits for its body, asks
// the process to end. The body goes on its way when the process has noticed.
func (p *process) terminateDuring(t *testing.T, path string, body []byte) <-chan reply {
	t.Helper()
	r, w := io.Pipe()
	waits := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(waits) }})
	got := make(chan reply, 1)
	go func() { got <- p.send(ctx, "POST", path, r, "Expect", "100-continue") }()
	select {
	case <-waits:
	case early := <-got:
		t.Fatalf("answered without its body: %+v", early)
	}
	p.terminate(t)
	p.awaitLog(t, "msg=draining")
	go func() {
		_, _ = w.Write(body) // the answer shows whether it arrived
		_ = w.Close()
	}()
	return got
}

// secrets makes a folder of secrets, name and value by turns.
func secrets(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, pairs[i]), []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "secret_mount_path=" + dir
}
