package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestRefereeCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "referee"), RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": exitCode},
	})
}

// After an interrupt the way to go on is told, and what is lost.
func TestBrokenReport(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	failed := errors.New("failed")
	if err := broken(ctx, "R.md", 2, 3, failed); err != failed {
		t.Errorf("without an interrupt: %v", err)
	}
	cancel()
	var exit *exitError
	if err := broken(ctx, "R.md", 2, 3, failed); !errors.As(err, &exit) || exit.code != exitInterrupted || !strings.Contains(err.Error(), "R.md has 2 of 3 scenarios") {
		t.Errorf("%v", err)
	}
}

func TestSplitPolicies(t *testing.T) {
	for text, want := range map[string][]string{
		"all":                              {"all"},
		"static, staffing":                 {"static", "staffing"},
		"staffing:floor=4,cap=9,static":    {"staffing:floor=4,cap=9", "static"},
		"static:n=4,staffing:down=15,a=.5": {"static:n=4", "staffing:down=15,a=.5"},
		"static,n=4":                       {"static", "n=4"}, // an error that names n=4
		" , ":                              nil,
	} {
		if got := splitPolicies(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
