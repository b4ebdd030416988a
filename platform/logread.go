package platform

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/openfaas/faas-provider/logs"
)

// logPart is a stretch of one of a function's log files: whole lines, which do
// not change any more. It stays readable when the file is turned over.
type logPart struct {
	gen      int
	f        *os.File // nil when there is no such file
	from, to int64
}

// lines are the lines of the stretch, each valid until the next.
func (p logPart) lines() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if p.f == nil {
			return
		}
		in := bufio.NewReader(io.NewSectionReader(p.f, p.from, p.to-p.from))
		for {
			line, err := in.ReadBytes('\n')
			if err != nil || !yield(line) {
				return
			}
		}
	}
}

func (p logPart) close() {
	if p.f != nil {
		_ = p.f.Close() // was only read
	}
}

// open opens the file of a generation that is kept. The mutex is held.
func (lf *logFile) open(gen int) (logPart, error) {
	path := lf.path
	if gen < lf.gen {
		path += older
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return logPart{gen: gen}, nil
	}
	if err != nil {
		return logPart{gen: gen}, err
	}
	return logPart{gen: gen, f: f}.grown()
}

// grown returns what has come since to the same file.
func (p logPart) grown() (logPart, error) {
	p.from = p.to
	st, err := p.f.Stat()
	if err != nil {
		p.close()
		return logPart{gen: p.gen}, err
	}
	p.to = st.Size()
	return p, nil
}

// kept opens what is kept: the older file and the newer.
func (lf *logFile) kept() (old, recent logPart, err error) {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	if old, err = lf.open(lf.gen - 1); err != nil {
		return old, recent, err
	}
	if recent, err = lf.open(lf.gen); err != nil {
		old.close()
	}
	return old, recent, err
}

// after returns the stretch that follows one that was read, and closes files
// that are done with. When there is nothing yet, changed will be closed with the
// next line.
func (lf *logFile) after(p logPart) (next logPart, changed <-chan struct{}, err error) {
	lf.mu.Lock()
	defer lf.mu.Unlock()
	if p.f != nil {
		if p, err = p.grown(); err != nil || p.from < p.to {
			return p, nil, err
		}
	}
	gen := p.gen
	if p.f != nil && gen < lf.gen {
		gen++ // it was turned over and is read to its end
	}
	for gen = max(gen, lf.gen-1); p.f == nil || p.gen < lf.gen; gen++ {
		p.close()
		if p, err = lf.open(gen); err != nil || p.from < p.to {
			return p, nil, err
		}
		if gen == lf.gen {
			break
		}
	}
	if lf.changed == nil {
		lf.changed = make(chan struct{})
	}
	return p, lf.changed, nil
}

// send gives the messages that a query asks for to emit, and calls flush when
// there are no more for now. It holds one line at a time. With q.Follow it goes
// on until ctx ends.
func (lf *logFile) send(ctx context.Context, q logs.Request, emit func(line []byte) error, flush func() error) error {
	old, last, err := lf.kept()
	if err != nil {
		return err
	}
	defer func() { last.close() }()
	defer old.close()
	skip := 0
	if q.Tail > 0 {
		skip = old.count(q) + last.count(q) - q.Tail
	}
	pass := func(p logPart) error {
		for line := range p.lines() {
			if !asked(q, line) {
				continue
			}
			if skip--; skip >= 0 {
				continue
			}
			if err := errors.Join(ctx.Err(), emit(line)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := pass(old); err != nil {
		return err
	}
	if err := pass(last); err != nil || !q.Follow {
		return err
	}
	for {
		if err := flush(); err != nil {
			return err
		}
		var changed <-chan struct{}
		if last, changed, err = lf.after(last); err != nil {
			return err
		}
		if err := pass(last); err != nil {
			return err
		}
		if changed == nil {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// count is how many of a stretch's messages a query asks for.
func (p logPart) count(q logs.Request) int {
	n := 0
	for line := range p.lines() {
		if asked(q, line) {
			n++
		}
	}
	return n
}

// asked reports whether a line is a message that a query asks for.
func asked(q logs.Request, line []byte) bool {
	var m logs.Message
	if json.Unmarshal(line, &m) != nil {
		return false
	}
	return (q.Instance == "" || m.Instance == q.Instance) && (q.Since == nil || !m.Timestamp.Before(*q.Since))
}
