package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"farmhand/internal/atomicfile"
	"farmhand/template"
)

// write puts the worker, its template and its entry where they belong. What it
// could not finish it takes back.
func (w *newWorker) write() (err error) {
	made := []string{}
	defer func() {
		if err != nil {
			for _, path := range made {
				err = errors.Join(err, os.RemoveAll(path))
			}
		}
	}()
	files := template.WorkerFiles()
	if !w.keepTemplate {
		made = append(made, w.templateFolder())
		if err := writeAll(files, w.templateFolder()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(w.folder(), 0o755); err != nil { // nobody else made it meanwhile
		return err
	}
	made = append(made, w.folder())
	sample, err := fs.Sub(files, "function")
	if err != nil {
		return err
	}
	if err := writeAll(sample, w.folder()); err != nil {
		return err
	}
	for from, to := range map[string]string{"function.mod": "go.mod", "function.sum": "go.sum"} {
		data, err := fs.ReadFile(files, from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(w.folder(), to), data, 0o644); err != nil {
			return err
		}
	}
	return w.writeStack()
}

func (w *newWorker) writeStack() error {
	if w.added {
		st, err := os.Stat(w.stack)
		if err != nil {
			return err
		}
		file, err := filepath.EvalSymlinks(w.stack)
		if err != nil {
			return err
		}
		return atomicfile.Write(file, w.text, st.Mode().Perm())
	}
	f, err := os.OpenFile(w.stack, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(w.text)
	return errors.Join(err, f.Close())
}

// writeAll writes files into a new folder.
func writeAll(files fs.FS, dir string) error {
	return fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, path)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return fmt.Errorf("template: %w", err)
		}
		return nil
	})
}
