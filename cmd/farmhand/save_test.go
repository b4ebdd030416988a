package main

import (
	"os"
	"path/filepath"
	"testing"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
)

// sync looks at every file that was saved since it last succeeded, also at that
// of what died; so a result whose file is not there is not acknowledged.
func TestSaverSyncsWhatItSaved(t *testing.T) {
	for _, name := range []string{"task-000000.bin", errorsFile} {
		dir := t.TempDir()
		s := newSaver(dir, "echo~1", nil)
		for _, r := range []jobapi.Result{
			{Index: 0, State: skeleton.Done, Base64: []byte("x")}, {Index: 1, State: skeleton.Dead}, {Index: 2, State: skeleton.Dead},
		} {
			if err := s.save(r); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, name)
		if err := os.Rename(path, path+".gone"); err != nil {
			t.Fatal(err)
		}
		if s.sync() == nil {
			t.Errorf("%s is not there, and nobody noticed", name)
		}
		if err := os.Rename(path+".gone", path); err != nil {
			t.Fatal(err)
		}
		if err := s.sync(); err != nil || len(s.fresh) != 0 {
			t.Errorf("%v, %v", s.fresh, err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}
