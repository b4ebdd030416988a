package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ID names one process for good: numbers are used again, a number with its
// start time and the boot it belongs to is not.
type ID struct {
	Pid   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
	Boot  string `json:"boot"`
}

// Identify returns the identity of the process that has this number now.
func Identify(pid int) (ID, error) {
	st, err := stat(pid)
	if err != nil {
		return ID{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ID{}, fmt.Errorf("proc: %w", err)
	}
	return ID{Pid: pid, Start: st.start, Boot: strings.TrimSpace(string(boot))}, nil
}

// Alive reports whether exactly this process still runs. A zombie does not.
func (id ID) Alive() bool {
	if id.Pid <= 0 {
		return false
	}
	now, err := Identify(id.Pid)
	if err != nil || now != id {
		return false
	}
	st, err := stat(id.Pid)
	return err == nil && st.start == id.Start && st.state != 'Z' && st.state != 'X'
}

// Signal sends sig to this very process, or to none.
func (id ID) Signal(sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(id.Pid, 0)
	if err != nil {
		return fmt.Errorf("proc: process %d: %w", id.Pid, err)
	}
	defer unix.Close(fd)
	if !id.Alive() { // looked at after the handle was taken: the handle is of this process
		return fmt.Errorf("proc: process %d has ended", id.Pid)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// Await waits until the process has ended, at most d, and reports whether it has.
func (id ID) Await(d time.Duration) bool {
	end := time.Now().Add(d)
	fd, err := unix.PidfdOpen(id.Pid, 0)
	if err != nil {
		return !id.Alive()
	}
	defer unix.Close(fd)
	for id.Alive() {
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return !id.Alive()
		}
	}
	return true
}

// KillMarked sends SIGKILL to every process of this user whose environment holds
// the variable with exactly one of the values for which ours is true, and
// returns how many there were. An environment proves what a number cannot.
func KillMarked(variable string, ours func(value string) bool) int {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	killed, prefix := 0, []byte(variable+"=")
	for _, entry := range dir {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err != nil {
			continue // another user's, or it has ended
		}
		for v := range bytes.SplitSeq(environ, []byte{0}) {
			if value, ok := bytes.CutPrefix(v, prefix); ok && ours(string(value)) {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
				break
			}
		}
	}
	return killed
}

type status struct {
	state byte
	start uint64
}

// stat reads the fields of /proc/PID/stat behind the name, which may itself hold
// spaces and parentheses.
func stat(pid int) (status, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return status{}, fmt.Errorf("proc: %w", err)
	}
	i := bytes.LastIndexByte(raw, ')')
	fields := strings.Fields(string(raw[i+1:]))
	if i < 0 || len(fields) < 20 {
		return status{}, fmt.Errorf("proc: /proc/%d/stat is not as expected", pid)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return status{}, fmt.Errorf("proc: /proc/%d/stat: %w", pid, err)
	}
	return status{state: fields[0][0], start: start}, nil
}
