// Package redistest starts real redis-servers for tests.
package redistest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of a test, bound to loopback, with an append-only
// file in a temporary folder.
type Server struct {
	Addr string

	dir  string
	conf []string
	mu   sync.Mutex
	cmd  *exec.Cmd
}

// Start runs a redis-server until the test ends. Without redis-server on PATH
// the test is skipped, loudly; .ci/run and make test refuse that. More lines of
// configuration may be given.
func Start(t testing.TB, conf ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("SKIPPED: redis-server is not installed (apt-get install redis-server); a ledger unproven on real Redis is not proven")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close() // it only found a free port
	s := &Server{Addr: addr, dir: t.TempDir(), conf: conf}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Run starts the server (again), on the same port and data, and waits until it
// accepts connections.
func (s *Server) Run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	lines := append([]string{"bind 127.0.0.1", "port " + port, "dir " + s.dir, "save \"\"", "appendonly yes", "appendfsync everysec"}, s.conf...)
	cmd := exec.Command("redis-server", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	go func() {
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			if strings.Contains(sc.Text(), "Ready to accept connections") {
				select {
				case ready <- true:
				default:
				}
			}
		}
		close(ready)
	}()
	if !<-ready {
		return fmt.Errorf("redistest: redis-server on %s ended before it was ready: %w", s.Addr, cmd.Wait())
	}
	s.cmd = cmd
	return nil
}

// Kill ends the server with SIGKILL. Killing it twice is fine.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed: the status says nothing
	s.cmd = nil
}

// Pid returns the process id, or 0.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Client returns a client that is closed when the test ends.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := c.Ping(ctx).Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		t.Fatal(err)
	}
	return c
}
