package platform

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/openfaas/faas-provider/logs"
)

// Bounds of what is kept of a function's output.
const (
	maxLogLine = 64 << 10
	maxLogFile = 8 << 20 // one older file is kept beside it
)

// older ends the name of the older file.
const older = ".1"

// logStore keeps what functions print: one file per function, a JSON message a
// line, in the form the logs API gives them.
type logStore struct {
	dir string

	mu    sync.Mutex // guards files
	files map[string]*logFile
}

type logFile struct {
	mu      sync.Mutex // guards the rest
	path    string
	f       *os.File
	size    int64
	gen     int           // how many files went before this one; the older one kept is gen-1
	changed chan struct{} // closed with the next line; nil while nobody waits for it
}

func newLogStore(dir string) *logStore { return &logStore{dir: dir, files: map[string]*logFile{}} }

func (s *logStore) file(function string) *logFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	lf := s.files[function]
	if lf == nil {
		lf = &logFile{path: filepath.Join(s.dir, function+".ndjson")}
		s.files[function] = lf
	}
	return lf
}

// close closes the files; a later line opens its own again.
func (s *logStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lf := range s.files {
		lf.mu.Lock()
		if lf.f != nil {
			_ = lf.f.Close()
			lf.f = nil
		}
		lf.mu.Unlock()
	}
}

func (lf *logFile) append(m logs.Message) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	lf.mu.Lock()
	defer lf.mu.Unlock()
	if lf.f != nil && lf.size > maxLogFile {
		_ = lf.f.Close()
		lf.f = nil
		if err := os.Rename(lf.path, lf.path+older); err != nil {
			return err
		}
		lf.gen++
	}
	if lf.f == nil {
		if lf.f, err = os.OpenFile(lf.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			lf.f = nil
			return err
		}
		st, err := lf.f.Stat()
		if err != nil {
			return err
		}
		lf.size = st.Size()
	}
	if _, err := lf.f.Write(append(raw, '\n')); err != nil {
		return errors.Join(err, lf.f.Truncate(lf.size)) // a full disk: no half lines
	}
	lf.size += int64(len(raw)) + 1
	lf.notify()
	return nil
}

// notify wakes those who wait for the next line. The mutex is held.
func (lf *logFile) notify() {
	if lf.changed != nil {
		close(lf.changed)
		lf.changed = nil
	}
}

// drop removes what is kept of a function that is gone.
func (s *logStore) drop(function string) error {
	lf := s.file(function)
	lf.mu.Lock()
	defer lf.mu.Unlock()
	if lf.f != nil {
		_ = lf.f.Close()
		lf.f = nil
	}
	lf.gen += 2 // neither file is there any more
	lf.notify()
	var errs []error
	for _, path := range []string{lf.path, lf.path + older} {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// logPipe carries the output of one replica to its file.
type logPipe struct {
	r, w *os.File
	done chan struct{}
}

// pipe opens the way from a replica's standard output and error to its file.
// The caller hands w to the process and then says so with started.
func (s *logStore) pipe(function, instance string) (*logPipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("log pipe: %w", err)
	}
	p := &logPipe{r: r, w: w, done: make(chan struct{})}
	lf := s.file(function)
	go func() {
		defer close(p.done)
		defer r.Close()
		in := bufio.NewReaderSize(r, maxLogLine)
		for {
			line, err := in.ReadSlice('\n')
			if len(line) > 0 {
				// A full disk must not stop the function: go on reading.
				_ = lf.append(logs.Message{Name: function, Namespace: Namespace, Instance: instance,
					Timestamp: time.Now(), Text: strings.ToValidUTF8(string(line), "\uFFFD")})
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return // io.EOF, or Wait gave up
			}
		}
	}()
	return p, nil
}

// started closes our end: from now on only the process writes.
func (p *logPipe) started() { _ = p.w.Close() }

// Wait waits until the last line is kept; a process that left the group and
// holds the pipe open is not waited for.
func (p *logPipe) Wait() {
	_ = p.r.SetReadDeadline(time.Now().Add(time.Second))
	<-p.done
}
