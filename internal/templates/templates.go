// Package templates makes the program of a function from its folder and its
// template, as the image is made by faas-cli and the template's Dockerfile.
package templates

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openfaas/go-sdk/stack"
)

// What a template may have at its root, where its Dockerfile and Main look.
const (
	mainFolder = "_main"        // a main package for the handler's module
	defaultMod = "function.mod" // go.mod of a handler that has none
	defaultSum = "function.sum"

	// where the main package comes to, and what stands in it for the handler's
	// module
	mainPackage = "farmworker"
	placeholder = `"handler/function"`
)

// Function is what faas-cli build needs to know of a function.
type Function struct {
	Root     string   // folder of the stack file; template/ lies in it
	Language string   // of the template
	Handler  string   // the function's own folder
	Copy     []string // configuration.copy: paths below Root
}

func (f Function) template() string { return filepath.Join(f.Root, "template", f.Language) }

// HasMain reports whether the template brings the main package, as farm-worker
// does. The handler folder is one itself otherwise.
func (f Function) HasMain() bool {
	if !filepath.IsLocal(f.Language) {
		return false
	}
	st, err := os.Stat(filepath.Join(f.template(), mainFolder))
	return err == nil && st.IsDir()
}

// Context makes the function's build context in a folder, as faas-cli build
// --shrinkwrap does: the template, the handler's files in its handler_folder,
// and over them what is copied from Root. It returns the handler's place.
func (f Function) Context(into string) (string, error) {
	if !filepath.IsLocal(f.Language) {
		return "", fmt.Errorf("lang %q: want the name of a folder in %s", f.Language, filepath.Dir(f.template()))
	}
	lang, err := stack.ParseYAMLForLanguageTemplate(filepath.Join(f.template(), "template.yml"))
	if err != nil {
		return "", fmt.Errorf("template %s: %w", f.Language, err)
	}
	folder := "function"
	if lang.HandlerFolder != "" {
		folder = lang.HandlerFolder
	}
	if !filepath.IsLocal(folder) {
		return "", fmt.Errorf("template %s: handler_folder %q leads out of the build context", f.Language, folder)
	}
	c := copier{into: into}
	place := filepath.Join(into, folder)
	if err := c.copy(f.template(), into); err != nil {
		return "", fmt.Errorf("template %s: %w", f.Language, err)
	}
	list, err := os.ReadDir(f.handler())
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if e.Name() == "build" || e.Name() == "template" {
			continue
		}
		if err := c.copy(filepath.Join(f.handler(), e.Name()), filepath.Join(place, e.Name())); err != nil {
			return "", err
		}
	}
	for _, path := range f.Copy {
		if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
			return "", fmt.Errorf("configuration.copy: %q does not lie below %s", path, f.Root)
		}
		if err := c.copy(filepath.Join(f.Root, path), filepath.Join(place, path)); err != nil {
			return "", fmt.Errorf("configuration.copy: %w", err)
		}
	}
	return place, nil
}

func (f Function) handler() string {
	if filepath.IsAbs(f.Handler) {
		return f.Handler
	}
	return filepath.Join(f.Root, f.Handler)
}

// Main makes, in a new folder, what the Dockerfile of a template with a main
// package builds, and returns where, and which package of it.
func (f Function) Main(ctx context.Context, into string) (dir, pkg string, err error) {
	if dir, err = f.Context(into); err != nil {
		return "", "", err
	}
	c := copier{into: into}
	for from, to := range map[string]string{defaultMod: "go.mod", defaultSum: "go.sum"} {
		if _, err := os.Stat(filepath.Join(dir, to)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := c.copy(filepath.Join(into, from), filepath.Join(dir, to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
	}
	list := exec.CommandContext(ctx, "go", "list", "-m")
	list.Dir, list.Env = dir, append(os.Environ(), "GOWORK=off")
	module, err := list.Output()
	if err != nil {
		return "", "", fmt.Errorf("go.mod of %s: %w", f.Handler, said(err))
	}
	if err := c.copy(filepath.Join(into, mainFolder), filepath.Join(dir, mainPackage)); err != nil {
		return "", "", err
	}
	file := filepath.Join(dir, mainPackage, "main.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	name := `"` + strings.TrimSpace(string(module)) + `"`
	return dir, "./" + mainPackage, os.WriteFile(file, []byte(strings.Replace(string(text), placeholder, name, 1)), 0o644)
}

// said adds to an error of a command what that wrote.
func said(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
