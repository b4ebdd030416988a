package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"farmhand/train"
)

func TestTrainCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "train"), RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": exitCode, "renewed": awaitRenewed, "spoil": spoil},
	})
}

// awaitRenewed waits until a file was written a few times, by another process: there is
// nothing to wait for but the file.
func awaitRenewed(ts *testscript.TestScript, _ bool, args []string) {
	var last os.FileInfo
	for n, until := 0, time.Now().Add(time.Minute); n < 3; {
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

// spoil writes a file that is like another, but for what is wrong with it.
func spoil(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[1]))
	switch args[0] {
	case "cut":
		b = b[:len(b)/2]
	case "header": // as long as no file is
		binary.LittleEndian.PutUint64(b, 1<<63)
	case "weight": // the last one is NaN
		binary.LittleEndian.PutUint64(b[len(b)-8:], math.Float64bits(math.NaN()))
	case "observation":
		b = bytes.Replace(b, []byte(`observation_version\":`), []byte(`observation_version\":9`), 1)
		b = resized(b)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b, 0o644))
}

// resized corrects the length of a header that has grown by a byte.
func resized(b []byte) []byte {
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+1)
	return b
}

// The summary of several learners names the best, the median and the worst (P84: how
// much luck there is between seeds must be seen).
func TestSummary(t *testing.T) {
	var runs []*training
	for seed, workers := range []float64{7, 5, 9, 6, 8} {
		r := &training{out: fmt.Sprintf("p-%d", seed), file: []byte{1}, chosen: train.Point{OnTime: 0.98, Workers: workers, Cost: workers}}
		r.cfg.Seed = uint64(seed)
		runs = append(runs, r)
	}
	runs[1].chosen.Missed = 0.5 // the cheapest is late
	var b strings.Builder
	summary(&b, runs, 300)
	var got []string
	for line := range strings.Lines(b.String()) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "best" || f[0] == "median" || f[0] == "worst") {
			got = append(got, f[0]+" "+f[1])
		}
	}
	if want := "best 3 median 4 worst 1"; strings.Join(got, " ") != want {
		t.Errorf("%v: want %s\n%s", got, want, b.String())
	}
}
