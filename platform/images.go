package platform

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openfaas/go-sdk/stack"

	"farmhand/internal/templates"
)

// images finds the program behind an image name. There are no containers here:
// an image is the function of the stack file that names it, built from its
// handler folder, or a program built before.
type images struct {
	stack    string // file; "" = none
	prebuilt string // folder; "" = none
	bin      string // where programs are built
	allow    []string
	log      *slog.Logger
	building chan struct{} // one build at a time: they share the machine with the functions
}

func newImages(c Config, bin string) *images {
	return &images{stack: c.Stack, prebuilt: c.Prebuilt, bin: bin, allow: c.AllowDirs, log: c.Log, building: make(chan struct{}, 1)}
}

// resolve sets the program of a spec, building it when need be.
func (im *images) resolve(ctx context.Context, s *spec) error {
	command, err := im.find(ctx, s)
	if err != nil {
		return err
	}
	sum, err := fileSum(command[0])
	if err != nil {
		return badRequest("image %s: %v", s.Image, err)
	}
	s.command, s.sum = command, sum
	return nil
}

func (im *images) find(ctx context.Context, s *spec) ([]string, error) {
	if line, ok := deref(s.Annotations)[annCommand]; ok {
		return im.allowed(strings.Fields(line))
	}
	name, f, err := im.fromStack(s.Image)
	if err != nil {
		return nil, err
	}
	if im.prebuilt != "" {
		if name == "" {
			name = baseName(s.Image)
		}
		file := filepath.Join(im.prebuilt, name)
		if runnable(file) {
			return []string{file}, nil
		}
	}
	if f == nil {
		return nil, badRequest("image %s: unknown here. This platform runs the functions of its stack file (%s): add a function with this image and its handler folder there, or start the platform with --stack FILE or --prebuilt DIR",
			s.Image, cmp.Or(im.stack, "none given"))
	}
	return im.build(ctx, name, f)
}

// allowed checks a command line against the allowed folders, links resolved.
func (im *images) allowed(command []string) ([]string, error) {
	if len(command) == 0 || !filepath.IsAbs(command[0]) {
		return nil, badRequest("annotation %s: want the absolute path of a program and its arguments", annCommand)
	}
	real, err := filepath.EvalSymlinks(command[0])
	if err != nil {
		return nil, badRequest("annotation %s: %v", annCommand, err)
	}
	for _, dir := range im.allow {
		root, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		if root, err = filepath.Abs(root); err != nil {
			continue
		}
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			if !runnable(real) {
				return nil, badRequest("annotation %s: %s is no program that can be run; name an executable file (chmod +x %s)", annCommand, command[0], command[0])
			}
			return append([]string{real}, command[1:]...), nil
		}
	}
	return nil, badRequest("annotation %s: %s is below no allowed folder; start the platform with --allow-dir %s", annCommand, command[0], filepath.Dir(command[0]))
}

func runnable(file string) bool {
	st, err := os.Stat(file)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// services reads the stack file anew, so that an edit counts from the next
// deployment on.
func (im *images) services() (*stack.Services, error) {
	if im.stack == "" {
		return &stack.Services{}, nil
	}
	s, err := stack.ParseYAMLFile(im.stack, "", "", true)
	if err != nil {
		return nil, badRequest("stack file %s: %v", im.stack, err)
	}
	return s, nil
}

// fromStack finds the function whose image it is; none is no error.
func (im *images) fromStack(image string) (string, *stack.Function, error) {
	s, err := im.services()
	if err != nil {
		return "", nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Functions)) {
		if f := s.Functions[name]; nameRule.MatchString(name) && tagged(f.Image) == tagged(image) {
			return name, &f, nil
		}
	}
	return "", nil, nil
}

// build compiles the main package in a function's handler folder.
func (im *images) build(ctx context.Context, name string, f *stack.Function) ([]string, error) {
	dir := f.Handler
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(im.stack), dir)
	}
	if st, err := os.Stat(dir); f.Handler == "" || err != nil || !st.IsDir() {
		return nil, badRequest("image %s: the handler folder %q of function %s is missing", f.Image, f.Handler, name)
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, badRequest("image %s: cannot be built, there is no go on PATH; install Go, or start the platform with --prebuilt DIR", f.Image)
	}
	select {
	case im.building <- struct{}{}:
		defer func() { <-im.building }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	target := filepath.Join(im.bin, name)
	im.log.Info("building", "function", name, "folder", dir)
	cmd := exec.CommandContext(ctx, tool, "build", "-trimpath", "-ldflags", "-s -w", "-o", target+".new", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if t := (templates.Function{Root: filepath.Dir(im.stack), Language: f.Language, Handler: dir}); t.HasMain() {
		defer os.RemoveAll(target + ".src")
		if err := im.fromTemplate(ctx, t, target+".src", cmd); err != nil {
			return nil, badRequest("image %s: %v", f.Image, err)
		}
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		out = bytes.TrimSpace(out)
		return nil, badRequest("image %s: go build in %s: %v\n%s", f.Image, dir, err, out[:min(len(out), 4000)])
	}
	if st, err := os.Stat(target + ".new"); err != nil || st.Mode()&0o111 == 0 {
		return nil, badRequest("image %s: the handler folder %s is no main package; without one it needs a template that has it, such as farm-worker, in template/ beside the stack file", f.Image, dir)
	}
	if err := os.Rename(target+".new", target); err != nil {
		return nil, fmt.Errorf("build %s: %w", name, err)
	}
	return []string{target}, nil
}

// fromTemplate puts a handler into its template, and has the main package of that
// built.
func (im *images) fromTemplate(ctx context.Context, t templates.Function, into string, cmd *exec.Cmd) error {
	s, err := im.services()
	if err != nil {
		return err
	}
	t.Copy = s.StackConfiguration.CopyExtraPaths
	if err := os.RemoveAll(into); err != nil {
		return err
	}
	dir, pkg, err := t.Main(ctx, into)
	cmd.Dir, cmd.Args[len(cmd.Args)-1] = dir, pkg
	cmd.Env = append(cmd.Env, "GOWORK=off") // as in an image
	return err
}

// tagged returns an image name with its tag.
func tagged(image string) string {
	if image == "" || strings.Contains(path.Base(image), ":") || strings.Contains(image, "@") {
		return image
	}
	return image + ":latest"
}

// baseName returns the last part of an image name without tag or digest.
func baseName(image string) string {
	base := path.Base(image)
	if i := strings.IndexAny(base, ":@"); i >= 0 {
		base = base[:i]
	}
	return base
}

func fileSum(file string) (sum string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
