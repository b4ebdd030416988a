// Package shelf keeps what evaluations have computed in a file: a line of JSON for
// each key, at the end of which new lines are appended. A key that was kept twice
// has its last value. Several programs may append to one file.
package shelf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// File is a shelf. Its methods may be called at the same time.
type File struct {
	mu   sync.Mutex // guards all below
	kept map[string]json.RawMessage
	file *os.File
}

type line struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Open reads the file, and makes it and its folder where they are missing. A last
// line that was cut off by a crash is forgotten; any other line that is not valid is
// an error.
func Open(path string) (*File, error) {
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f := &File{kept: map[string]json.RawMessage{}}
	whole := raw[:bytes.LastIndexByte(raw, '\n')+1]
	for n, text := range bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n")) {
		var l line
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("%s:%d: not a kept result: %w (delete the file to compute anew)", path, n+1, err)
		}
		f.kept[l.Key] = l.Value
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if f.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return nil, err
	}
	if len(whole) < len(raw) {
		if err := f.file.Truncate(int64(len(whole))); err != nil {
			return nil, errors.Join(err, f.file.Close())
		}
	}
	return f, nil
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
	_, err = f.file.Write(append(text, '\n')) // one write: lines of several programs do not mix
	return err
}

// Close the file. What was put is there already.
func (f *File) Close() error { return f.file.Close() }
