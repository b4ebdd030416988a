package main

import (
	"path/filepath"
	"strings"
	"testing"

	"farmhand/train/paper"
)

func TestTrainPaper(t *testing.T) {
	out := filepath.Join(t.TempDir(), "p.json")
	run := func(args ...string) error {
		cmd := trainCmd()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetErr(&strings.Builder{})
		cmd.SetArgs(append([]string{"--env", "FarmPaper-v0", "-o", out}, args...))
		return cmd.Execute()
	}
	if err := run("--scenario", "paper-fixed", "--learner", "sarsa-published", "--steps", "60"); err != nil {
		t.Fatal(err)
	}
	p, err := paper.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if p.Steps != 60 || p.Case.Scenario != "paper-fixed" || p.Table == nil {
		t.Errorf("a policy of %v after %d steps", p.Case, p.Steps)
	}
	for want, args := range map[string][]string{
		"--env":                             {"--env", "FarmPaper-v9"},
		"--learner":                         {"--scenario", "paper-fixed", "--learner", "reinforce"},
		"--scenario":                        {"--scenario", "constant", "--learner", "dqn"},
		"wants one":                         {"--learner", "dqn"},
		"Steps":                             {"--scenario", "paper-fixed", "--learner", "dqn", "--steps", "0"},
		"--margin is for --env Farm-v0":     {"--scenario", "paper-fixed", "--learner", "dqn", "--margin", "0.2"},
		"--general is for --env Farm-v0":    {"--scenario", "paper-fixed", "--learner", "dqn", "--general"},
		"--from is for --env Farm-v0":       {"--scenario", "paper-fixed", "--learner", "dqn", "--from", out},
		"--peer is for --env Farm-v0":       {"--scenario", "paper-fixed", "--learner", "dqn", "--peer", "static:n=3"},
		"--rests is for --env Farm-v0":      {"--scenario", "paper-fixed", "--learner", "dqn", "--rests"},
		"--fallback is for --env Farm-v0":   {"--scenario", "paper-fixed", "--learner", "dqn", "--fallback", "static:n=3"},
		"--jumps is for --env FarmPaper-v0": {"--env", "Farm-v0", "--scenario", "constant", "--jumps"},
		"no such file":                      {"--scenario", "paper-fixed", "--learner", "dqn", "-o", filepath.Join(out, "..", "none", "p.json")},
		"Target":                            {"--scenario", "paper-fixed", "--learner", "dqn", "--target", "1"},
	} {
		if err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v: want one about %s", args, err, want)
		}
	}
}
