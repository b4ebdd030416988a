package redisledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// bodyHead is the header of a stored task: header JSON, newline, body.
type bodyHead struct {
	Type    string `json:"t,omitempty"`
	Key     string `json:"k,omitempty"`
	Timeout int64  `json:"o,omitempty"` // µs
	Stage   string `json:"s,omitempty"`
	Parent  string `json:"p,omitempty"`
	Size    int    `json:"n,omitempty"` // of a body that lives in a key of its own
}

var emptyHead = []byte("{}\n")

func encodeTask(t skeleton.NewTask, inline bool) ([]byte, error) {
	head := bodyHead{Type: t.Type, Key: t.Key, Timeout: t.Timeout.Microseconds(), Stage: t.Stage, Parent: t.Parent}
	if !inline {
		head.Size = len(t.Body)
	}
	if head == (bodyHead{}) {
		return append(emptyHead[:len(emptyHead):len(emptyHead)], t.Body...), nil
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("redisledger: task: %w", err)
	}
	raw = append(raw, '\n')
	if inline {
		raw = append(raw, t.Body...)
	}
	return raw, nil
}

// decodeTask fills in what the record of a task holds.
func decodeTask(raw string, t *skeleton.Task) error {
	if rest, ok := strings.CutPrefix(raw, "{}\n"); ok {
		t.Body = []byte(rest)
		t.Size = len(t.Body)
		return nil
	}
	head, body, ok := strings.Cut(raw, "\n")
	if !ok {
		return fmt.Errorf("redisledger: record of a task is cut off")
	}
	var h bodyHead
	if err := json.Unmarshal([]byte(head), &h); err != nil {
		return fmt.Errorf("redisledger: record of a task: %w", err)
	}
	t.Type, t.Key, t.Stage, t.Parent = h.Type, h.Key, h.Stage, h.Parent
	t.Timeout = time.Duration(h.Timeout) * time.Microsecond
	t.Size = h.Size
	if h.Size == 0 {
		t.Body = []byte(body)
		t.Size = len(t.Body)
	}
	return nil
}

// resultHead is the second line of a stored result; the first is written by the
// script: state,finished,accepted,late,ref (ref only of a dead letter).
type resultHead struct {
	Status  int    `json:"s,omitempty"`
	Type    string `json:"t,omitempty"`
	Key     string `json:"k,omitempty"`
	Reason  string `json:"r,omitempty"`
	Attempt int    `json:"a,omitempty"`
	Lost    int    `json:"l,omitempty"`
	Service int64  `json:"v,omitempty"` // µs
	Wait    int64  `json:"w,omitempty"` // µs, accepted → hand-over
	Size    int    `json:"n,omitempty"` // of a large result
	Name    string `json:"x,omitempty"` // its key below r:
}

// encodeResult makes the part of a stored result that a dispatcher knows. mark
// is that of resultName.
func encodeResult(o ledger.Outcome, mark string) ([]byte, error) {
	head := resultHead{Status: o.Status, Type: o.Type, Key: o.Lease.Key, Attempt: o.Lease.Attempt, Lost: o.Lease.Lost,
		Service: o.Service.Microseconds(), Wait: (o.Lease.Taken.Sub(o.Lease.Accepted) + o.Waited).Microseconds()}
	inline := len(o.Body) <= ledger.MaxInline
	if !inline {
		head.Size, head.Name = len(o.Body), resultName(o.Lease, mark)
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("redisledger: result: %w", err)
	}
	raw = append(raw, '\n')
	if inline {
		raw = append(raw, o.Body...)
	}
	return raw, nil
}

// decodeResult reads a stored result. name is the key of a large body; ref is
// the dead letter it belongs to.
func decodeResult(raw string, index int) (r skeleton.Result, name, ref string, err error) {
	first, rest, ok := strings.Cut(raw, "\n")
	head, body, ok2 := strings.Cut(rest, "\n")
	f := strings.Split(first, ",")
	if !ok || !ok2 || len(f) != 5 {
		return r, "", "", fmt.Errorf("redisledger: record of result %d is cut off", index)
	}
	var h resultHead
	if err := json.Unmarshal([]byte(head), &h); err != nil {
		return r, "", "", fmt.Errorf("redisledger: record of result %d: %w", index, err)
	}
	finished, accepted := micros(f[1]), micros(f[2])
	r = skeleton.Result{Index: index, State: skeleton.Done, Status: h.Status, Type: h.Type, Key: h.Key, Reason: h.Reason,
		Attempt: h.Attempt, Lost: h.Lost, Late: f[3] == "1", Service: time.Duration(h.Service) * time.Microsecond,
		Sojourn: finished.Sub(accepted), Finished: finished}
	if body != "" {
		r.Body = []byte(body)
	}
	if f[0] == "x" {
		r.State, ref = skeleton.Dead, f[4]
		return r, "", ref, nil
	}
	r.Wait = time.Duration(h.Wait) * time.Microsecond
	return r, h.Name, "", nil
}

func micros(s string) time.Time {
	n, _ := strconv.ParseInt(s, 10, 64) // written by our own scripts
	return fromMicros(n)
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// runInfo is the description of a run as scripts write it.
type runInfo struct {
	job      string
	id       string // of the job, filled in by who reads
	piece    string
	off      int
	idx      int
	n        int // tasks
	class    int
	due      time.Time
	accepted time.Time
	attempts int
	noRetry  bool
	tenant   string
}

func decodeRun(raw string) (runInfo, error) {
	f := strings.SplitN(raw, ",", 11)
	if len(f) != 11 {
		return runInfo{}, fmt.Errorf("redisledger: description of a run: %q", raw)
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(f[i]) // written by our own scripts
		return v
	}
	return runInfo{job: f[0], piece: f[1], off: n(2), idx: n(3), n: n(4), class: n(5), due: micros(f[6]), accepted: micros(f[7]),
		attempts: n(8), noRetry: n(9)&1 == 1, tenant: f[10]}, nil
}

// clip shortens an answer that is kept only to be read by people.
func clip(b []byte, n int) []byte {
	if len(b) > n {
		b = b[:n]
	}
	return bytes.ToValidUTF8(b, []byte("�"))
}
