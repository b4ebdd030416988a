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
