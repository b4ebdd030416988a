package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"farmhand/internal/atomicfile"
	"farmhand/skeleton/jobapi/jobclient"
)

// record is what the state folder remembers of a submission, so that one that
// was cut off can go on, and results can be saved under the names of their
// files later. How much was accepted is not in it: the job's total tells.
type record struct {
	Job     string            `json:"job"`
	Worker  string            `json:"worker"`
	Inputs  []string          `json:"inputs,omitempty"` // files and folders, absolute; none: standard input
	NDJSON  bool              `json:"ndjson,omitempty"`
	Type    string            `json:"type,omitempty"`
	Options jobclient.Options `json:"options,omitempty"`
	Files   []string          `json:"files,omitempty"` // one a task, in order
}

// recordsKept is longer than the dispatcher keeps a job.
const recordsKept = 8 * 24 * time.Hour

func recordPath(state, job string) string {
	return filepath.Join(state, "jobs", filepath.Base(job)+".json")
}

func (r *record) write(state string) error {
	path := recordPath(state, r.Job)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	sweepRecords(filepath.Dir(path))
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, raw, 0o600)
}

// readRecord returns what is known of a job, or nothing.
func readRecord(state, job string) record {
	var r record
	raw, err := os.ReadFile(recordPath(state, job))
	if err != nil || json.Unmarshal(raw, &r) != nil || r.Job != job {
		return record{Job: job} // of another machine, or too old
	}
	return r
}

// sweepRecords removes those of jobs that the dispatcher has forgotten.
func sweepRecords(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > recordsKept && filepath.Ext(e.Name()) == ".json" {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next submission tries again
		}
	}
}

func absolute(paths []string) []string {
	list := make([]string, 0, len(paths))
	for _, p := range paths {
		if p == "-" {
			continue
		}
		if abs, err := filepath.Abs(p); err == nil {
			p = abs
		}
		list = append(list, p)
	}
	return list
}
