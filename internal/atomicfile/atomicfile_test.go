package atomicfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"farmhand/internal/atomicfile"
)

func TestFilesAreReplacedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for i, write := range []func(string, []byte, os.FileMode) error{atomicfile.Write, atomicfile.Replace, atomicfile.Write} {
		want := fmt.Sprint("content ", i)
		if err := write(path, []byte(want), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%q %v", got, err)
		}
		if st, err := os.Stat(path); err != nil || st.Mode() != 0o640 {
			t.Errorf("%v %v", st.Mode(), err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%v %v", entries, err)
		}
	}
	// What cannot be put in place leaves nothing behind.
	if err := os.MkdirAll(filepath.Join(dir, "folder", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "folder"), []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
}

func TestSyncMissesNoFile(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i := range 100 {
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i)))
		if err := atomicfile.Replace(paths[i], nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.Sync(paths...); err != nil {
		t.Error(err)
	}
	if err := os.Remove(paths[70]); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Sync(paths...); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := atomicfile.Sync(); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none", "file"), dir} {
		if err := atomicfile.Check(path); err == nil {
			t.Errorf("%s can be written", path)
		}
	}
	if err := atomicfile.Check(filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("it leaves %v, %v", entries, err)
	}
}
