package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"farmhand/internal/proc"
)

// Sweep ends what a platform that was killed has left behind on a state folder,
// and removes its replicas' folders, in which there are copies of secrets. The
// next start does the same. It refuses while a platform runs there.
func Sweep(dir string, log *slog.Logger) error {
	s, err := openState(dir)
	if err != nil {
		return err
	}
	s.endLeftovers(log)
	if entries, err := os.ReadDir(s.path("run")); err == nil && len(entries) > 0 {
		return errors.Join(fmt.Errorf("state folder: %s is not empty yet", s.path("run")), s.close())
	}
	return s.close()
}

// endLeftovers ends what an earlier platform on this state folder left behind
// and empties run/. A process is ours when number, start time and boot are as
// recorded, or when its environment names a folder below run/.
func (s *state) endLeftovers(log *slog.Logger) {
	run := s.path("run")
	records, _ := filepath.Glob(filepath.Join(run, "*.pid")) // the pattern is sound
	for _, file := range records {
		id, err := readID(file)
		if err != nil || !id.Alive() {
			continue
		}
		log.Warn("ending a process left by an earlier run", "pid", id.Pid, "record", filepath.Base(file))
		sig := syscall.SIGKILL
		if filepath.Base(file) == redisRecord {
			sig = syscall.SIGTERM // lets it write what it holds
		}
		_ = id.Signal(sig) // it may just have ended
		if !id.Await(10 * time.Second) {
			_ = id.Signal(syscall.SIGKILL)
			id.Await(5 * time.Second)
		}
	}
	if n := proc.KillMarked("TMPDIR", func(v string) bool { return strings.HasPrefix(v, run+string(filepath.Separator)) }); n > 0 {
		log.Warn("ended processes left by functions of an earlier run", "count", n)
	}
	entries, err := os.ReadDir(run)
	if err != nil {
		return
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(run, e.Name())); err != nil {
			log.Warn("cannot clear the run folder", "error", err)
		}
	}
}

func readID(file string) (proc.ID, error) {
	var id proc.ID
	raw, err := os.ReadFile(file)
	if err != nil {
		return id, err
	}
	return id, json.Unmarshal(raw, &id)
}

// record notes a child for the next start, should this one be killed. It is not
// synced: it only has to survive this process.
func (s *state) record(name string, id proc.ID) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return os.WriteFile(s.path("run", name), raw, 0o600)
}
