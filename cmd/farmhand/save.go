package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"farmhand/internal/atomicfile"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
)

// saver writes results into a folder: each under the name of its input, to
// which the extension of its own type is added where that is another. What died
// goes to errors.ndjson. A result has the same name however often the job is
// followed.
type saver struct {
	dir    string
	job    string
	names  []string
	failed map[int]bool // tasks of the job that errors.ndjson has
	errors *os.File
	saved  int
	fresh  []string // files that may not be on disk yet
}

const errorsFile = "errors.ndjson"

// deadTask is a line of errors.ndjson.
type deadTask struct {
	Job     string `json:"job"`
	Index   int    `json:"index"`
	Input   string `json:"input,omitempty"`
	Status  int    `json:"status,omitempty"`
	Reason  string `json:"reason"`
	Attempt int    `json:"attempt"`
}

func newSaver(dir, job string, files []string) *saver {
	return &saver{dir: dir, job: job, names: saveNames(files)}
}

// told says what was saved.
func (s *saver) told() string {
	text := fmt.Sprintf("%d files saved in %s", s.saved, s.dir)
	if s.errors != nil {
		text += "; what died is in " + filepath.Join(s.dir, errorsFile)
	}
	return text
}

// saveNames are the names of results: those of the files, with a number where
// two would collide, also where case does not count, or once an extension is
// added to one of them.
func saveNames(files []string) []string {
	names := make([]string, len(files))
	whole := map[string]bool{errorsFile: true}          // names that are given
	stems := map[string]bool{trimExt(errorsFile): true} // and what they extend
	for i, file := range files {
		name := filepath.Base(file)
		stem, ext := trimExt(name), filepath.Ext(name)
		if stem == "" {
			stem, ext = name, ""
		}
		clash := func() bool {
			key := strings.ToLower(name)
			return whole[key] || stems[key] || whole[trimExt(key)]
		}
		for n := 2; clash(); n++ {
			name = fmt.Sprintf("%s-%d%s", stem, n, ext)
		}
		whole[strings.ToLower(name)], stems[trimExt(strings.ToLower(name))] = true, true
		names[i] = name
	}
	return names
}

func trimExt(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// fileName is the name of a result of the type.
func fileName(name, media string) string {
	own, ext := filepath.Ext(name), extension(media)
	base, _, _ := mime.ParseMediaType(media)
	known, _, _ := mime.ParseMediaType(mime.TypeByExtension(own))
	if own != "" && (strings.EqualFold(own, ext) || base != "" && base == known) {
		return name
	}
	return name + ext
}

func (s *saver) save(r jobapi.Result) error {
	if r.State == skeleton.Dead {
		return s.fail(r)
	}
	name := fmt.Sprintf("task-%06d", r.Index)
	if r.Index < len(s.names) {
		name = s.names[r.Index]
	}
	body := r.Base64
	if r.Body != nil {
		body = r.Body
	}
	path := filepath.Join(s.dir, fileName(name, r.Type))
	if err := atomicfile.Replace(path, body, 0o644); err != nil {
		return err
	}
	s.fresh = append(s.fresh, path)
	s.saved++
	return nil
}

func (s *saver) fail(r jobapi.Result) error {
	if s.errors == nil {
		if err := s.openErrors(); err != nil {
			return err
		}
	}
	if s.failed[r.Index] {
		return nil
	}
	s.failed[r.Index] = true
	s.fresh = append(s.fresh, s.errors.Name())
	d := deadTask{Job: s.job, Index: r.Index, Status: r.Status, Reason: r.Reason, Attempt: r.Attempt}
	if r.Index < len(s.names) {
		d.Input = s.names[r.Index]
	}
	return json.NewEncoder(s.errors).Encode(d)
}

// openErrors goes on with the file of an earlier run.
func (s *saver) openErrors() (err error) {
	s.failed = map[int]bool{}
	if s.errors, err = os.OpenFile(filepath.Join(s.dir, errorsFile), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644); err != nil {
		return err
	}
	for d := json.NewDecoder(s.errors); ; {
		var t deadTask
		if d.Decode(&t) != nil { // its end, or no file of ours
			return nil
		}
		if t.Job == s.job {
			s.failed[t.Index] = true
		}
	}
}

// sync returns when all that was saved is on disk: then the server may forget
// it.
func (s *saver) sync() error {
	slices.Sort(s.fresh)
	s.fresh = slices.Compact(s.fresh)
	err := atomicfile.Sync(s.fresh...)
	if err == nil {
		s.fresh = nil
	}
	return err
}

func (s *saver) close() error {
	err := s.sync()
	if s.errors != nil {
		err = errors.Join(err, s.errors.Close())
	}
	return err
}

// extension of a media type: the usual one, not the first of the alphabet.
func extension(media string) string {
	usual := map[string]string{"image/jpeg": ".jpg", "text/plain": ".txt", "application/json": ".json", "application/octet-stream": ".bin"}
	base, _, err := mime.ParseMediaType(media)
	if err != nil {
		return ".bin"
	}
	if ext, ok := usual[base]; ok {
		return ext
	}
	all, err := mime.ExtensionsByType(base)
	if err != nil || len(all) == 0 {
		return ".bin"
	}
	return slices.Min(all)
}
