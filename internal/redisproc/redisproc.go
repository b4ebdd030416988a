// Package redisproc runs redis-server processes for tests and benchmarks.
package redisproc

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// ErrMissing says that there is no redis-server on PATH.
var ErrMissing = errors.New("redis-server is not installed (apt-get install redis-server)")

// Server is a redis-server bound to loopback, with an append-only file synced
// every second.
type Server struct {
	Addr string

	dir  string
	conf []string
	mu   sync.Mutex
	cmd  *exec.Cmd // guarded by mu; nil = not running
}

// Start runs a redis-server on a free port with its data in dir. More lines of
// configuration may be given; they win.
func Start(dir string, conf ...string) (*Server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, ErrMissing
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("redisproc: no free port: %w", err)
	}
	s := &Server{Addr: l.Addr().String(), dir: dir, conf: conf}
	_ = l.Close() // it only found a free port
	return s, s.Run()
}

// Run starts the server again after Kill, on the same port and data, and waits
// until it accepts connections.
func (s *Server) Run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil
	}
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return fmt.Errorf("redisproc: %w", err)
	}
	lines := append([]string{"bind 127.0.0.1", "port " + port, "dir " + s.dir, `save ""`, "appendonly yes", "appendfsync everysec"}, s.conf...)
	cmd := exec.Command("redis-server", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("redisproc: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("redisproc: %w", err)
	}
	ready := make(chan bool, 1)
	go func() {
		defer close(ready)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			if strings.Contains(sc.Text(), "Ready to accept connections") {
				ready <- true
				break
			}
		}
		for b := make([]byte, 4096); ; { // keep the pipe empty until the server ends
			if _, err := out.Read(b); err != nil {
				return
			}
		}
	}()
	if !<-ready {
		return fmt.Errorf("redisproc: redis-server on %s ended before it was ready: %w", s.Addr, cmd.Wait())
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

// Signal sends a signal to the server, e.g. SIGSTOP.
func (s *Server) Signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return errors.New("redisproc: not running")
	}
	return s.cmd.Process.Signal(sig)
}
