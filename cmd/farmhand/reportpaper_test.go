package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A report of what is there: one policy, learned by the command, and no row of others.
func TestReportPaper(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "paper.md")
	run := func(args ...string) error {
		cmd := reportPaperCmd()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetErr(&strings.Builder{})
		cmd.SetArgs(append([]string{"--policies", dir, "-o", out, "--seeds", "1", "--episodes", "2"}, args...))
		return cmd.Execute()
	}
	if err := run("--only", "sarsa-published-paper-fixed-1.json"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "| sarsa-published |"); n != 1 || strings.Contains(string(text), "| ppo |") {
		t.Errorf("%d rows of the learner: want one, and none of another:\n%s", n, text)
	}
	for want, args := range map[string][]string{"--seeds": {"--seeds", "0"}, "--only": {"--only", "["}} {
		if err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v: want one about %s", args, err, want)
		}
	}
}

// What the report would tell wrongly, or write where nobody looks, is refused before
// anything is learned.
func TestReportPaperRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // in which is no folder docs
	run := func(args ...string) string {
		cmd := reportPaperCmd()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetErr(&strings.Builder{})
		cmd.SetArgs(append([]string{"--policies", dir, "--only", "sarsa-published-paper-fixed-1.json"}, args...))
		if err := cmd.Execute(); err != nil {
			return err.Error()
		}
		return ""
	}
	if err := run(); !strings.Contains(err, "no folder docs here") {
		t.Errorf("without --out: error %q: want one about the folder", err)
	}
	if err := run("--out", ""); err != "" {
		t.Fatal(err)
	}
	if err := os.Rename("sarsa-published-paper-fixed-1.json", "sarsa-published-paper-fixed-2.json"); err != nil {
		t.Fatal(err)
	}
	if err := run("--out", "", "--seeds", "2"); !strings.Contains(err, "with seed 1") {
		t.Errorf("a policy of another seed: error %q: want one that says so", err)
	}
}
