package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestSimCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "sim"), RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": exitCode},
	})
}
