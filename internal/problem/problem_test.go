package problem_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"farmhand/internal/problem"
)

// A client's own words are not sent back at length.
func TestFieldIsShort(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", 1<<20), "x" + strings.Repeat("ü", 100)} {
		if p := problem.New(422, "bad-field", "no").At(name, "none"); len(p.Field) > 90 || len(p.Field) < 79 || !utf8.ValidString(p.Field) {
			t.Errorf("%d bytes: %.100q", len(p.Field), p.Field)
		}
	}
	if p := problem.New(422, "bad-field", "no").At("deadline", "none"); p.Field != "deadline" {
		t.Errorf("%q", p.Field)
	}
}
