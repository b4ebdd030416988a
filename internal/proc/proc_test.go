package proc_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"farmhand/internal/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, s *proc.Spawner, script string) (*proc.Child, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout = w
	c, err := s.Start(cmd, syscall.SIGKILL)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return c, bufio.NewReader(r)
}

func TestExitStatus(t *testing.T) {
	s := proc.NewSpawner()
	defer s.Close()
	c, _ := start(t, s, "exit 3")
	if err := c.Err(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("got %v, want exit status 3", err)
	}
	if err := c.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal to a group that has ended: %v", err)
	}
}

// The group does not survive its head.
func TestGroupEndsWithItsHead(t *testing.T) {
	s := proc.NewSpawner()
	defer s.Close()
	c, out := start(t, s, "sleep 1000 & echo $!")
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	// The grandchild held the pipe: the end of file says that it is gone.
	if _, err := out.ReadByte(); err != io.EOF {
		t.Errorf("the grandchild %s still holds the pipe: %v", strings.TrimSpace(line), err)
	}
}

func TestIdentity(t *testing.T) {
	s := proc.NewSpawner()
	defer s.Close()
	c, out := start(t, s, "echo up; exec sleep 1000")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if !c.ID.Alive() {
		t.Error("a running process is not alive")
	}
	other := c.ID
	other.Start++
	if other.Alive() || other.Signal(syscall.SIGKILL) == nil {
		t.Error("a process that started at another time is taken for this one")
	}
	if c.ID.Await(time.Millisecond) {
		t.Error("Await says that a running process has ended")
	}
	if err := c.ID.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if !c.ID.Await(10 * time.Second) {
		t.Error("Await does not see the end")
	}
	<-c.Done()
}

func TestKillMarked(t *testing.T) {
	mark := "mark-" + strconv.Itoa(os.Getpid())
	s := proc.NewSpawner()
	defer s.Close()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.Env = []string{"FARMHAND_TEST_MARK=" + mark}
	c, err := s.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	if n := proc.KillMarked("FARMHAND_TEST_MARK", func(v string) bool { return v == mark }); n != 1 {
		t.Errorf("killed %d, want 1", n)
	}
	<-c.Done()
}

func TestClosed(t *testing.T) {
	s := proc.NewSpawner()
	s.Close()
	s.Close()
	if _, err := s.Start(exec.Command("/bin/true"), syscall.SIGKILL); err != proc.ErrClosed {
		t.Errorf("got %v, want ErrClosed", err)
	}
}
