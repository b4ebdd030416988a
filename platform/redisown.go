package platform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/proc"
)

// Times of the redis-server.
const (
	redisStartTime = time.Minute // it may have to read a large file first
	redisStopTime  = 15 * time.Second
	redisMaxPause  = 10 * time.Second
)

// redisServer is a redis-server that runs as long as the platform does, on one
// port and folder.
type redisServer struct {
	p        *Platform
	file     string
	address  string
	password string

	mu    sync.Mutex // guards child
	child *proc.Child
	quit  chan struct{}
	done  chan struct{}
}

// ownRedis starts a redis-server with its data in the state folder and keeps it
// running.
func (p *Platform) ownRedis(ctx context.Context, file, password string) (*redisStore, error) {
	address, err := p.redisAddress()
	if err != nil {
		return nil, err
	}
	s := &redisServer{p: p, file: file, address: address, password: password, quit: make(chan struct{}), done: make(chan struct{})}
	if err := s.start(ctx); err != nil {
		s.end()
		return nil, err
	}
	go s.keep()
	var once sync.Once
	stop := func(context.Context) {
		once.Do(func() { close(s.quit) })
		<-s.done
	}
	return &redisStore{kind: "redis-server", url: localURL(address), password: password, durability: InProcess, stop: stop}, nil
}

// start runs the server and waits until it answers. Its configuration goes in
// by standard input: arguments and files can be read by others.
func (s *redisServer) start(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return err
	}
	conf := strings.Join([]string{
		"bind " + host, "port " + port, "protected-mode yes", "daemonize no",
		"requirepass " + strconv.Quote(s.password),
		"dir " + strconv.Quote(s.p.state.path("redis")),
		"appendonly yes", "appendfsync everysec", `save ""`, "",
	}, "\n")
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	defer r.Close()
	if _, err := w.WriteString(conf); err != nil { // fits in the pipe
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	log, err := os.OpenFile(s.p.state.path("logs", "redis.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", "-c", `umask 077 && exec "$0" -`, s.file) // its files hold all jobs
	cmd.Dir = s.p.state.path("redis")
	cmd.Env = []string{"PATH=" + functionPath, "HOME=" + cmd.Dir}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, log, log
	child, err := s.p.spawner.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	s.mu.Lock()
	s.child = child
	s.mu.Unlock()
	if err := s.p.state.record(redisRecord, child.ID); err != nil {
		return err
	}
	return s.await(ctx, child)
}

// await waits until the server answers, having read its data.
func (s *redisServer) await(ctx context.Context, child *proc.Child) error {
	ctx, cancel := context.WithTimeout(ctx, redisStartTime)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: s.address, Password: s.password, MaxRetries: -1})
	defer c.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ping(ctx, c)
		if err == nil {
			return nil
		}
		select {
		case <-child.Done():
			return fmt.Errorf("redis-server ended at start (%w); see %s", errors.Join(child.Err()), s.p.state.path("logs", "redis.log"))
		case <-ctx.Done():
			return fmt.Errorf("redis-server on %s does not answer: %w", s.address, err)
		case <-s.quit:
			return errors.New("redis-server: the platform stops")
		case <-tick.C:
		}
	}
}

// keep starts the server again whenever it ends, with growing pauses while that
// fails, until it shall stop.
func (s *redisServer) keep() {
	defer close(s.done)
	defer s.end()
	pause := time.Duration(0)
	begun := time.Now()
	for {
		s.mu.Lock()
		child := s.child
		s.mu.Unlock()
		select {
		case <-s.quit:
			return
		case <-child.Done():
		}
		if time.Since(begun) > redisMaxPause {
			pause = 0
		}
		s.p.log.Error("redis-server ended: starting it again", "cause", child.Err(), "pause", pause)
		select {
		case <-s.quit:
			return
		case <-time.After(pause):
		}
		pause = min(max(2*pause, 100*time.Millisecond), redisMaxPause)
		begun = time.Now()
		if err := s.start(s.p.ctx); err != nil {
			s.p.log.Error("redis-server", "error", err)
			continue // a server that runs but does not answer yet is waited for
		}
		s.p.log.Info("redis-server runs again", "address", s.address)
	}
}

// end lets the server write what it holds and end.
func (s *redisServer) end() {
	s.mu.Lock()
	child := s.child
	s.mu.Unlock()
	if child == nil {
		return
	}
	if err := child.Signal(syscall.SIGTERM); err != nil {
		s.p.log.Warn("redis-server", "error", err)
	}
	select {
	case <-child.Done():
		return
	case <-time.After(redisStopTime):
	case <-s.p.hurry:
	}
	_ = child.Signal(syscall.SIGKILL) // its end is what is waited for
	<-child.Done()
}
