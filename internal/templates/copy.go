package templates

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// copier copies files and folders with their modes; of a link it copies what
// that leads to.
type copier struct {
	into string // left out, should it lie in what is copied
}

func (c copier) copy(from, to string) error {
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	if st.Mode().IsRegular() {
		return copyFile(from, to, st.Mode().Perm())
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is neither a file nor a folder", from)
	}
	if own, err := os.Stat(c.into); err == nil && os.SameFile(own, st) {
		return nil
	}
	if err := os.MkdirAll(to, st.Mode().Perm()|0o700); err != nil {
		return err
	}
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := c.copy(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
