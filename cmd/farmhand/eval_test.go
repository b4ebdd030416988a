package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestRefereeCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "referee"), RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": exitCode},
	})
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
