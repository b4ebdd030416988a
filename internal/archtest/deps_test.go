package archtest

import (
	"flag"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the dependency lists")

// What a function's binary links beyond the standard library is checked in, so
// that a new dependency is seen in review (make deps rewrites the lists).
func TestDependencies(t *testing.T) {
	for pkg, deps := range dependencies(t, "Deps", "farmhand/functions/...") {
		name := filepath.Base(pkg)
		var list []string
		for _, dep := range deps {
			first, _, _ := strings.Cut(dep, "/")
			if strings.Contains(first, ".") && first != "vendor" || first == "farmhand" {
				list = append(list, dep)
			}
		}
		sort.Strings(list)
		got := strings.Join(list, "\n") + "\n"
		file := filepath.Join("..", "..", "functions", name, "deps.txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v; make deps writes it", err)
			continue
		}
		if string(want) != got {
			t.Errorf("the dependencies of %s have changed; look at the difference after make deps", name)
		}
	}
}
