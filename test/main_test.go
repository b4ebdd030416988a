package test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bin is where the programs were built, once for all tests.
var bin string

// parallel is how many platforms run at once: each is a dozen processes.
const parallel = "2"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", parallel) // the flag exists, the value is a number
	}
	var err error
	if bin, err = os.MkdirTemp("", "farmhand-test-"); err == nil {
		err = build()
	}
	defer func() { _ = os.RemoveAll(bin) }()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build makes the command, the functions of the suite, and the test worker.
func build() error {
	var errs []error
	for target, from := range map[string]string{
		"farmhand": "../cmd/farmhand", "functions/dispatcher": "../functions/dispatcher",
		"functions/controller": "../functions/controller", "functions/trainer": "../functions/trainer", "functions/worker": "worker",
	} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(bin, target), ".")
		cmd.Dir = from // its module has the dependencies
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("go build in %s: %w\n%s", from, err, out))
		}
	}
	return errors.Join(errs...)
}
