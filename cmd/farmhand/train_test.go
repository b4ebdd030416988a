package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestTrainCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "train"), RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": exitCode, "renewed": awaitRenewed},
	})
}

// awaitRenewed waits until a file was written a few times.
func awaitRenewed(ts *testscript.TestScript, _ bool, args []string) {
	var last os.FileInfo
	for n, until := 0, time.Now().Add(time.Minute); n < 5; {
		info, err := os.Stat(ts.MkAbs(args[0]))
		if err == nil && (last == nil || !os.SameFile(info, last)) { // each time it is another file
			last = info
			n++
		}
		if time.Now().After(until) {
			ts.Fatalf("%s was not written", args[0])
		}
		time.Sleep(time.Millisecond)
	}
}
