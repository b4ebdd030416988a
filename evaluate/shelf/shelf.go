// Package shelf keeps what evaluations have computed in a file: a line of JSON for
// each key, at the end of which new lines are appended. A key that was kept twice
// has its last value. Several programs may append to one file: whoever reads or
// writes it holds its lock.
package shelf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"
)

// File is a shelf. Its methods may be called at the same time.
type File struct {
	mu   sync.Mutex // guards all below
	kept map[string]json.RawMessage
	file *os.File
	lock *flock.Flock
}

type line struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// begin is how each line does.
const begin = `{"key":`

// Open reads the file, and makes it and its folder where they are missing. A last
// line that was cut off by a crash is forgotten; any other line that is not valid is
// an error.
func Open(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	f := &File{kept: map[string]json.RawMessage{}, file: file, lock: flock.New(path)}
	if err := f.alone(f.read); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// alone does something while no other program reads or writes the file.
func (f *File) alone(do func() error) error {
	if err := f.lock.Lock(); err != nil {
		return err
	}
	return errors.Join(do(), f.lock.Close())
}

func (f *File) read() error {
	raw, err := os.ReadFile(f.file.Name())
	if err != nil {
		return err
	}
	lines := bytes.Split(raw, []byte("\n"))
	cut := lines[len(lines)-1] // empty, or what a crash has left of a line
	for n, text := range lines[:len(lines)-1] {
		if len(text) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("%s:%d: not a kept result: %w (delete the file to compute anew)", f.file.Name(), n+1, err)
		}
		f.kept[l.Key] = l.Value
	}
	if !bytes.HasPrefix(cut, []byte(begin)) && !bytes.HasPrefix([]byte(begin), cut) {
		return fmt.Errorf("%s:%d: not a kept result: is it another file? (else delete it to compute anew)", f.file.Name(), len(lines))
	}
	return f.mend()
}

// mend forgets the last line where it was cut off, by a crash or for want of space.
func (f *File) mend() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	for last := []byte{0}; end > 0; end-- {
		if _, err := f.file.ReadAt(last, end-1); err != nil {
			return err
		}
		if last[0] == '\n' {
			break
		}
	}
	if end == info.Size() {
		return nil
	}
	return f.file.Truncate(end)
}

// Get reads the value of a key into v; ok is false where there is none.
func (f *File) Get(key string, v any) (ok bool, err error) {
	f.mu.Lock()
	raw, ok := f.kept[key]
	f.mu.Unlock()
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return false, fmt.Errorf("kept result %s: %w", key, err)
	}
	return true, nil
}

// Put keeps a value.
func (f *File) Put(key string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("result %s cannot be kept: %w", key, err)
	}
	text, err := json.Marshal(line{key, value})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept[key] = value
	return f.alone(func() error {
		if err := f.mend(); err != nil { // another program may have been killed
			return err
		}
		_, err := f.file.Write(append(text, '\n'))
		return err
	})
}

// Close the file. What was put is there already.
func (f *File) Close() error { return f.file.Close() }
