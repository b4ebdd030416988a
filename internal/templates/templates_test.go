package templates_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openfaas/go-sdk/builder"
	"github.com/openfaas/go-sdk/stack"

	"farmhand/internal/templates"
)

// sample is a worker that stands outside of every Go module of this project.
const sample = "sample"

// root is the folder of the project; tests go elsewhere.
var root = func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// programs is a folder of what was built before in this run.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "templates-")
	if err != nil {
		panic(err)
	}
	programs = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program is what the build stage of a function's Dockerfile makes, in a context
// made by go-sdk.
func program(t *testing.T, name string, f templates.Function) string {
	t.Helper()
	file := filepath.Join(programs, name)
	if _, err := os.Stat(file); err != nil {
		if err := os.Rename(buildStage(t, asFaasCLI(t, name, f), "TEST=."), file); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// suite are the functions of stack.yml.
func suite(t *testing.T) map[string]templates.Function {
	t.Helper()
	s, err := stack.ParseYAMLFile(filepath.Join(root, "stack.yml"), "", "", true)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]templates.Function{}
	for name, f := range s.Functions {
		list[name] = templates.Function{Root: root, Language: f.Language, Handler: f.Handler, Copy: s.StackConfiguration.CopyExtraPaths}
	}
	if len(list) < 4 {
		t.Fatalf("stack.yml has %d functions", len(list))
	}
	return list
}

// workers are functions of the template farm-worker, each in a project of its
// own that has the template and the worker's folder.
func workers(t *testing.T) map[string]templates.Function {
	t.Helper()
	list := map[string]templates.Function{}
	for name, from := range map[string]string{sample: "template/farm-worker/function", "probe": "internal/templates/testdata/probe"} {
		dir := t.TempDir()
		for to, from := range map[string]string{"template/farm-worker": "template/farm-worker", name: from} {
			if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join(root, from))); err != nil {
				t.Fatal(err)
			}
		}
		list[name] = templates.Function{Root: dir, Language: "farm-worker", Handler: "./" + name}
	}
	return list
}

// asFaasCLI makes the build context as faas-cli build --shrinkwrap does.
func asFaasCLI(t *testing.T, name string, f templates.Function) string {
	t.Helper()
	t.Chdir(f.Root)
	lang, err := stack.LoadLanguageTemplate(f.Language)
	if err != nil {
		t.Fatal(err)
	}
	options := []builder.BuildContextOption{builder.WithBuildDir(t.TempDir())}
	if lang.HandlerFolder != "" {
		options = append(options, builder.WithHandlerOverlay(lang.HandlerFolder))
	}
	dir, err := builder.CreateBuildContext(name, f.Handler, f.Language, f.Copy, options...)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// What the local platform builds from is what faas-cli sends to a builder.
func TestContextIsThatOfFaasCLI(t *testing.T) {
	functions := suite(t)
	maps.Copy(functions, workers(t))
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			into := t.TempDir()
			if _, err := f.Context(into); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, asFaasCLI(t, name, f)), tree(t, into)); diff != "" {
				t.Errorf("-faas-cli +templates:\n%s", diff)
			}
		})
	}
}

// tree has the mode and content of every file.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		info, _ := d.Info()
		files[path] = fmt.Sprintf("%v %x", info.Mode()&0o111, sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestContextRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*templates.Function)
		want   string
	}{
		"no template":       {func(f *templates.Function) { f.Language = "farm-nothing" }, "template farm-nothing"},
		"a path as lang":    {func(f *templates.Function) { f.Language = "../template/farm-worker" }, "name of a folder"},
		"no handler":        {func(f *templates.Function) { f.Handler = "./nowhere" }, "nowhere"},
		"copy the project":  {func(f *templates.Function) { f.Copy = []string{"."} }, "does not lie below"},
		"copy from outside": {func(f *templates.Function) { f.Copy = []string{"../x"} }, "does not lie below"},
		"copy nothing":      {func(f *templates.Function) { f.Copy = []string{"x"} }, "configuration.copy"},
	} {
		t.Run(name, func(t *testing.T) {
			f := workers(t)[sample]
			c.change(&f)
			if _, err := f.Context(t.TempDir()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A build context inside of the handler's folder does not swallow itself.
func TestContextInsideTheHandler(t *testing.T) {
	f := workers(t)[sample]
	f.Handler = "."
	into := filepath.Join(f.Root, "made")
	if err := os.Mkdir(into, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Context(into); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(into, "function", "made")); err == nil {
		t.Error("it has a copy of itself")
	}
}

// What the other tests cannot see of the Dockerfiles: the image they end with.
func TestDockerfiles(t *testing.T) {
	for _, name := range []string{"farm-function", "farm-worker"} {
		text := strings.Join(lines(t, filepath.Join(root, "template", name, "Dockerfile")), "\n")
		for _, want := range []string{
			"ghcr.io/openfaas/of-watchdog:0.11.3", "golang:1.26-alpine", "CGO_ENABLED=0", "\nUSER 12000", "\nHEALTHCHECK ",
			"mode=http", "upstream_url=http://127.0.0.1:8082", "ready_path=/_/ready", "fprocess=./handler", "healthcheck_interval=",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
	}
}

// The local platform and the image have the same program of a worker, byte for
// byte, whatever the worker's module is called, with a go.mod or without.
func TestMainIsTheImagesProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: building workers as platform and image do; make test runs it")
	}
	functions := workers(t)
	// One in the suite's own stack file, whose copies bring another go.mod.
	functions["inside"] = templates.Function{Root: root, Language: "farm-worker", Handler: "template/farm-worker/function", Copy: suite(t)["montecarlo"].Copy}
	for name, f := range functions {
		image := program(t, name, f)
		if !f.HasMain() {
			t.Fatalf("%s: the template has no main package", name)
		}
		dir, pkg, err := f.Main(context.Background(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(t.TempDir(), name)
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", own, pkg)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		ours, _ := os.ReadFile(own)
		theirs, err := os.ReadFile(image)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s: the platform's program has %d bytes, the image's %d: they differ", name, len(ours), len(theirs))
		}
	}
	for name, f := range suite(t) {
		if f.HasMain() {
			t.Errorf("%s: the local platform would not build its folder", name)
		}
	}
}
