// Package atomicfile replaces files as a whole: readers see the old or the new
// content, and so does the next start after a crash.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Unfinished begins the names of files that are being written: a crash may leave
// them.
const Unfinished = ".new-"

// Write replaces a file and returns when it is on disk.
func Write(path string, data []byte, mode os.FileMode) error {
	if err := replace(path, data, mode, (*os.File).Sync); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// Replace replaces a file; a crash before Sync may leave any content under its
// name.
func Replace(path string, data []byte, mode os.FileMode) error {
	return replace(path, data, mode, func(*os.File) error { return nil })
}

func replace(path string, data []byte, mode os.FileMode, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), Unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = sync(f)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// syncers is how many files are synced at once: a file system then writes its
// journal once for several of them.
const syncers = 16

// Sync returns when files that were replaced are on disk, and their names too.
func Sync(paths ...string) error {
	if err := syncAll(paths); err != nil {
		return err
	}
	folders := map[string]bool{}
	for _, path := range paths {
		folders[filepath.Dir(path)] = true
	}
	list := make([]string, 0, len(folders))
	for folder := range folders {
		list = append(list, folder)
	}
	return syncAll(list)
}

func syncAll(paths []string) error {
	errs := make([]error, len(paths))
	free := make(chan struct{}, syncers)
	var wg sync.WaitGroup
	for i, path := range paths {
		free <- struct{}{}
		wg.Go(func() {
			errs[i] = syncPath(path)
			<-free
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Check that Write can replace the file, before work whose result it is.
func Check(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: want the name of a regular file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), Unfinished+"*")
	if err != nil {
		return fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
