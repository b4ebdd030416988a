// Package proc starts child processes that cannot outlive their parent and
// tells one process from another by more than its number.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrClosed says that the spawner no longer starts processes.
var ErrClosed = errors.New("proc: the spawner is closed")

// Spawner starts all its processes from one operating-system thread. Linux
// sends the parent-death signal when the creating *thread* ends, and Go's
// threads come and go: only a thread that lives as long as the program makes
// the signal mean "the parent died".
type Spawner struct {
	requests chan request
	quit     chan struct{}
	ended    chan struct{}
	once     sync.Once
}

type request struct {
	cmd    *exec.Cmd
	answer chan error
}

// NewSpawner starts the thread. Close it after the last child has ended.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan request), quit: make(chan struct{}), ended: make(chan struct{})}
	go s.loop()
	return s
}

func (s *Spawner) loop() {
	defer close(s.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // ending locked would end the thread, and so the children
	for {
		select {
		case r := <-s.requests:
			r.answer <- r.cmd.Start()
		case <-s.quit:
			return
		}
	}
}

// Close ends the thread's duty. Children still alive may get their death
// signal any time later.
func (s *Spawner) Close() {
	s.once.Do(func() { close(s.quit) })
	<-s.ended
}

// Child is a running process at the head of a process group of its own.
type Child struct {
	ID ID

	mu   sync.Mutex // guards gone: no signal may go to a number that was given away
	gone bool
	done chan struct{}
	err  error // valid once done is closed
}

// Start starts cmd as the head of a new process group; death is the signal it
// gets when this program dies. Whatever is left of the group when its head ends
// is killed. The files of cmd must be [os.File]s.
func (s *Spawner) Start(cmd *exec.Cmd, death syscall.Signal) (*Child, error) {
	fd := -1
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death, PidFD: &fd}
	r := request{cmd: cmd, answer: make(chan error, 1)}
	select {
	case s.requests <- r:
	case <-s.quit:
		return nil, ErrClosed
	}
	if err := <-r.answer; err != nil {
		return nil, err
	}
	id, err := Identify(cmd.Process.Pid)
	c := &Child{ID: id, done: make(chan struct{})}
	if err != nil { // cannot be: a child stays a zombie until Wait
		c.ID = ID{Pid: cmd.Process.Pid}
	}
	go c.wait(cmd, fd)
	return c, nil
}

// wait ends the group while its head is still a zombie, since its number cannot
// have been given to anybody else yet, and only then collects it.
func (c *Child) wait(cmd *exec.Cmd, fd int) {
	awaitExit(cmd.Process.Pid, fd)
	c.mu.Lock()
	_ = syscall.Kill(-c.ID.Pid, syscall.SIGKILL) // ESRCH: nobody is left
	c.gone = true
	c.err = cmd.Wait()
	c.mu.Unlock()
	close(c.done)
}

// awaitExit returns when the child has ended, without collecting it. A pidfd
// costs no thread while waiting; without one a thread blocks.
func awaitExit(pid, fd int) {
	ended := func(options int) bool {
		for {
			var info unix.Siginfo
			err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return err != nil || info.Signo != 0 // an error: there is nothing to wait for
		}
	}
	if fd >= 0 && unix.SetNonblock(fd, true) == nil {
		f := os.NewFile(uintptr(fd), "pidfd")
		defer f.Close()
		if raw, err := f.SyscallConn(); err == nil {
			if raw.Read(func(uintptr) bool { return ended(unix.WNOHANG) }) == nil {
				return
			}
		}
	}
	ended(0)
}

// Done is closed when the process has ended and was collected.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err tells how the process ended; nil means with 0. Valid after Done.
func (c *Child) Err() error {
	<-c.done
	return c.err
}

// Signal sends a signal to the whole group; a group that has ended is no error.
func (c *Child) Signal(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil
	}
	if err := syscall.Kill(-c.ID.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("proc: signal group %d: %w", c.ID.Pid, err)
	}
	return nil
}
