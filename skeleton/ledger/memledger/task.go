package memledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/order"
)

// state of a task. Tasks that never left their run carry no state of their own.
type state uint8

const (
	inRun   state = iota // waiting, in the rest of its run
	alone                // waiting, came back: an entry of its own
	leased               //
	ghost                // cancelled, but its lease is still live
	delayed              //
	done                 //
	dead                 //
	dropped              // cancelled
)

// task is the record of one accepted task.
type task struct {
	run            *run
	meta           *meta
	body           []byte
	fence          int64 // of its last lease
	at             int64 // end of the lease or delay, time of death
	taken          int64 // when the lease began
	index          int32
	slot           int32 // alone: its order.Handle; done, dead: its place in the stream
	failures, lost uint16
	state          state
}

// meta is what most tasks share with the one before.
type meta struct {
	typ, key, stage, parent string
	timeout                 time.Duration
}

// run is a stretch of tasks of one submission that are equal to the queue.
type run struct {
	job      *job
	seq      int64
	first    int
	tasks    []task
	next     int          // tasks that have left it
	entry    order.Handle // of the rest; 0 = all have left
	shape    shape
	due      int64 // 0 = none
	accepted int64
}

// shape is what tasks of a run have in common before they are accepted.
type shape struct {
	class    int
	tenant   string
	deadline int64
	due      int64
	attempts int
	noRetry  bool
}

func shapeOf(t *skeleton.NewTask) shape {
	s := shape{class: t.Class, tenant: t.Tenant, deadline: t.Deadline.Microseconds(), attempts: t.Attempts, noRetry: t.NoRetry}
	if s.attempts == 0 {
		s.attempts = skeleton.DefaultAttempts
	}
	if s.deadline == 0 && !t.Due.IsZero() {
		s.due = max(1, micros(t.Due)) // 0 means none
	}
	return s
}

// piece is the tasks of one submission, by index from first on.
type piece struct {
	first int
	tasks []task
}

// job is a job and where its tasks are.
type job struct {
	skeleton.Job
	pieces   []piece
	runs     []*run
	places   []int32 // of an ended job without pieces: place in the stream by index, -1 = cancelled
	out      stream
	acked    int // results acknowledged in the order of the tasks
	keys     []string
	receipts []string
	expires  int64
	owed     int64 // when its callback is tried next; 0 = none is owed
	tries    int
	live     int // live leases
	touched  bool
	gone     bool
}

// task returns a task of a job that still has its pieces.
func (j *job) task(index int) *task {
	lo, hi := 0, len(j.pieces)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; j.pieces[mid].first <= index {
			lo = mid
		} else {
			hi = mid
		}
	}
	return &j.pieces[lo].tasks[index-j.pieces[lo].first]
}

// place returns where in the stream the result of a task stands.
func (j *job) place(index int) (at int, finished bool) {
	if j.places != nil {
		return int(j.places[index]), j.places[index] >= 0
	}
	t := j.task(index)
	return int(t.slot), t.state == done || t.state == dead
}

// A ref is the run's seq in ten digits, a dot, the index in seven: refs sort as
// tasks do that differ in nothing else.
const (
	refSeq   = 10
	refIndex = 7
	refLen   = refSeq + 1 + refIndex
)

func appendRef(b []byte, seq int64, index int32) []byte {
	b = digits(b, uint64(seq), refSeq)
	b = append(b, '.')
	return digits(b, uint64(index), refIndex)
}

// digits appends x with leading zeros.
func digits(b []byte, x uint64, width int) []byte {
	at := len(b)
	b = append(b, "0000000000"[:width]...)
	for i := at + width - 1; i >= at && x > 0; i-- {
		b[i] = byte('0' + x%10)
		x /= 10
	}
	return b
}

func (t *task) ref() string { return string(appendRef(nil, t.run.seq, t.index)) }

// find returns the task of a ref, or nil if there is none of that run any more.
func (f *farm) find(ref string) *task {
	seq, index, ok := parseRef(ref)
	if !ok {
		return nil
	}
	r := f.runs[seq]
	if r == nil || index < r.first || index >= r.first+len(r.tasks) {
		return nil
	}
	if t := &r.tasks[index-r.first]; t.run == r {
		return t
	}
	return nil // it was redriven into another run
}

func parseRef(ref string) (seq int64, index int, ok bool) {
	if len(ref) != refLen || ref[refSeq] != '.' {
		return 0, 0, false
	}
	for i := range refLen {
		if i == refSeq {
			continue
		}
		d := ref[i] - '0'
		if d > 9 {
			return 0, 0, false
		}
		if i < refSeq {
			seq = seq*10 + int64(d)
		} else {
			index = index*10 + int(d)
		}
	}
	return seq, index, true
}

// cursorOf names a place in the list of dead letters.
func cursorOf(l *letter) string { return fmt.Sprintf("%d.%d.%d", l.died, l.seq, l.index) }

func parseCursor(s string) (at letter, err error) {
	parts := strings.Split(s, ".")
	var n [3]int64
	for i := range n {
		if len(parts) != len(n) {
			return at, fmt.Errorf("%w: %q", ledger.ErrRef, s)
		}
		if n[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return at, fmt.Errorf("%w: %q", ledger.ErrRef, s)
		}
	}
	return letter{died: n[0], seq: n[1], index: int32(n[2])}, nil
}
