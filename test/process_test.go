package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// processes lists this farm's processes of a program; "" means any. They are
// known by their HOME, which lies in the state folder.
func (f *farm) processes(program string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil {
			continue // another user's, or it has ended
		}
		ours := slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return bytes.HasPrefix(v, []byte("HOME="+f.state)) })
		exe, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if ours && err == nil && (program == "" || filepath.Base(exe) == program) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a signal to the first process of a program, and returns its
// number.
func (f *farm) signal(program string, sig syscall.Signal) int {
	f.t.Helper()
	var pids []int
	until(f.t, patience, "a process of "+program, func() bool {
		pids = f.processes(program)
		return len(pids) > 0
	})
	if err := syscall.Kill(pids[0], sig); err != nil {
		f.t.Fatal(err)
	}
	return pids[0]
}

func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(raw, []byte(") Z "))
}

// notes reads the numbers in a file of notes: one for each run of a task, or
// for each process that started.
func (f *farm) notes(file string) (pids []int) {
	raw, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	for _, line := range strings.Fields(string(raw)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			f.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// file names a file of this farm's test.
func (f *farm) file(name string) string { return filepath.Join(filepath.Dir(f.state), name) }

// touch makes an empty file: it opens the gate of the tasks that wait for it.
func (f *farm) touch(file string) {
	f.t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
}
