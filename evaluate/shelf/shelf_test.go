package shelf

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"
)

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "kept.jsonl")
	f := open(t, path)
	var got int
	if ok, err := f.Get("a", &got); ok || err != nil {
		t.Errorf("found %v, %v in an empty shelf", ok, err)
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if err := f.Put(strings.Repeat("k", i+1), i); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if err := f.Put("k", 7); err != nil {
		t.Fatal(err)
	}
	for _, shelf := range []*File{f, open(t, path)} {
		if ok, err := shelf.Get("k", &got); !ok || err != nil || got != 7 {
			t.Errorf("%v %v %d", ok, err, got)
		}
		if ok, _ := shelf.Get("kkkkk", &got); !ok || got != 4 {
			t.Errorf("%v %d", ok, got)
		}
	}
}

// A crash in the middle of a line costs that line.
func TestForgetsWhatWasCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	if err := os.WriteFile(path, []byte("{\"key\":\"a\",\"value\":1}\n{\"key\":\"b\",\"val"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	var got int
	if ok, _ := f.Get("b", &got); ok {
		t.Error("half a line was read")
	}
	if err := f.Put("c", 3); err != nil {
		t.Fatal(err)
	}
	if ok, err := open(t, path).Get("c", &got); !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	if err := os.WriteFile(path, []byte("{\"key\":\"a\",\"value\":1}\nmagic\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "kept.jsonl:2") || !strings.Contains(err.Error(), "delete") {
		t.Errorf("error %v", err)
	}
}

// Another program was killed in the middle of a line while this one had the file open.
func TestPutMendsWhatAnotherLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	f, other := open(t, path), open(t, path)
	if err := other.Put("a", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := other.file.WriteString(`{"key":"b","val`); err != nil {
		t.Fatal(err)
	}
	if err := f.Put("c", 3); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	var got int
	for key, want := range map[string]int{"a": 1, "c": 3} {
		if ok, err := again.Get(key, &got); !ok || err != nil || got != want {
			t.Errorf("%s: %v %v %d", key, ok, err, got)
		}
	}
}

// Whoever reads or writes keeps other programs out.
func TestAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	f := open(t, path)
	other := flock.New(path)
	if err := f.alone(func() error {
		if got, err := other.TryLock(); got || err != nil {
			t.Errorf("another got the lock: %v, %v", got, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := other.TryLock(); !got || err != nil {
		t.Errorf("the lock is kept: %v, %v", got, err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// A file that is something else stays as it is.
func TestOpenLeavesOtherFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	const notes = "no line ends here"
	if err := os.WriteFile(path, []byte(notes), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "notes.txt:1: not a kept result") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != notes {
		t.Errorf("the file is %q now, %v", left, err)
	}
}
