package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farmhand/evaluate/report"
	"farmhand/policy/learned"
	"farmhand/sim/workload"
)

// A policy that has seen the test half, and one that is named twice, are not judged.
func TestGeneralFiles(t *testing.T) {
	kept := filepath.Join("..", "..", "policies", "burst-cron-150ms.safetensors")
	p, err := learned.Read(kept)
	if err != nil {
		t.Fatal(err)
	}
	p.Scenario = "constant," + workload.Test[1]
	var b bytes.Buffer
	if err := p.File.Write(&b); err != nil {
		t.Fatal(err)
	}
	seen := filepath.Join(t.TempDir(), "seen.safetensors")
	if err := os.WriteFile(seen, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string][]string{
		"was learned on " + workload.Test[1] + ", which is of the test half": {kept, seen},
		"hold the same policy": {kept, kept},
	} {
		if _, err := general(files, &report.General{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v: want one that %s", files, err, want)
		}
	}
	var d report.General
	if list, err := general([]string{kept}, &d); err != nil || len(list) != 1 || d.Policies[0].File != filepath.Base(kept) {
		t.Errorf("%v, %v, %+v", list, err, d.Policies)
	}
}

// Traces that are missing are left out, and told of; without them no rule is calibrated.
func TestGeneralWithoutTraces(t *testing.T) {
	t.Setenv("FARMHAND_TRACES", "")
	var f refereeFlags
	var d report.General
	test, training, err := f.halves(&d)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range slices.Concat(test, training) {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "variable bursty flash constant periodic ramp" || len(test) != 3 {
		t.Errorf("%s: want the built-in scenarios of the test half, then those of the other", got)
	}
	if len(d.Missing) != 8 || !strings.HasPrefix(d.Missing[0], workload.Test[3]+": the folder of traces is not known") {
		t.Errorf("missing: %q", d.Missing)
	}
	f.scenarios = []string{workload.Test[3]}
	if _, _, err := f.halves(&d); err == nil || !strings.Contains(err.Error(), "--scenario: ") {
		t.Errorf("a trace that is named: error %v", err)
	}
}
