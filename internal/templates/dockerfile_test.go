package templates_test

import (
	"bufio"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// image is a build stage that is carried out on this machine, without docker: the
// paths of its image lie below root.
type image struct {
	t       *testing.T
	context string
	root    string
	workdir string
	env     []string
	ignored []string // patterns of .dockerignore
	args    []string // NAME=VALUE, as of --build-arg
}

// buildStage carries out the stage "build" of the Dockerfile in a build context,
// and returns the program it makes.
func buildStage(t *testing.T, context string, args ...string) string {
	t.Helper()
	im := &image{t: t, context: context, args: args, root: t.TempDir(), env: append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")}
	if _, err := os.Stat(filepath.Join(context, ".dockerignore")); err == nil {
		im.ignored = lines(t, filepath.Join(context, ".dockerignore"))
	}
	in := false
	for _, line := range lines(t, filepath.Join(context, "Dockerfile")) {
		word, rest, _ := strings.Cut(line, " ")
		if word == "FROM" {
			in = strings.HasSuffix(rest, " AS build")
		} else if in {
			im.do(word, rest)
		}
	}
	return filepath.Join(im.root, "build", "handler")
}

// do carries out one instruction, in the forms that the templates use.
func (im *image) do(word, rest string) {
	im.t.Helper()
	switch word {
	case "ARG":
		name, value, _ := strings.Cut(rest, "=")
		for _, arg := range im.args {
			if v, ok := strings.CutPrefix(arg, name+"="); ok {
				value = v
			}
		}
		im.env = append(im.env, name+"="+value)
	case "ENV":
		im.env = append(im.env, rest)
	case "WORKDIR":
		im.workdir = filepath.Join(im.root, rest)
		im.check(os.MkdirAll(im.workdir, 0o755))
	case "COPY":
		args := strings.Fields(rest)
		to := args[len(args)-1]
		for _, from := range args[:len(args)-1] {
			im.copy(from, to, len(args) > 2)
		}
	case "RUN":
		cmd := exec.Command("sh", "-c", rest)
		cmd.Dir, cmd.Env = im.workdir, im.env
		if out, err := cmd.CombinedOutput(); err != nil {
			im.t.Fatalf("RUN %s: %v\n%s", rest, err, out)
		}
	default:
		im.t.Fatalf("%s is not known here: teach it to this test", word)
	}
}

// copy copies a file, or what is in a folder, as COPY does.
func (im *image) copy(from, to string, several bool) {
	im.t.Helper()
	source := filepath.Join(im.context, from)
	target := filepath.Join(im.workdir, to)
	st, err := os.Stat(source)
	im.check(err)
	if !st.IsDir() {
		if several || strings.HasSuffix(to, "/") {
			target = filepath.Join(target, filepath.Base(from))
		}
		im.file(source, target)
		return
	}
	im.check(filepath.WalkDir(source, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(im.context, p)
		switch {
		case im.ignore(rel) && d.IsDir():
			return filepath.SkipDir
		case im.ignore(rel) || d.IsDir():
			return nil
		}
		below, _ := filepath.Rel(source, p)
		im.file(p, filepath.Join(target, below))
		return nil
	}))
}

func (im *image) file(from, to string) {
	im.t.Helper()
	data, err := os.ReadFile(from)
	im.check(err)
	im.check(os.MkdirAll(filepath.Dir(to), 0o755))
	im.check(os.WriteFile(to, data, 0o644))
}

// ignore knows names, and names at any depth.
func (im *image) ignore(rel string) bool {
	for _, pattern := range im.ignored {
		name := filepath.ToSlash(rel)
		if deep, ok := strings.CutPrefix(pattern, "**/"); ok {
			pattern, name = deep, path.Base(name)
		}
		if ok, err := path.Match(pattern, name); err != nil || ok {
			im.check(err)
			return true
		}
	}
	return false
}

func (im *image) check(err error) {
	im.t.Helper()
	if err != nil {
		im.t.Fatal(err)
	}
}

// lines reads a file without its comments, continued lines put together.
func lines(t *testing.T, file string) (list []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		more, continued := strings.CutSuffix(line, `\`)
		if whole += more; !continued {
			list, whole = append(list, whole), ""
		}
	}
	return list
}
