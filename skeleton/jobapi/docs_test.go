package jobapi

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var (
	codes  = regexp.MustCompile(`problem\.New\([^"\n]*"([a-z-]+)"`)
	routes = regexp.MustCompile(`handle\("([A-Z]+) ([^"]+)"`)
)

// docs/api.md speaks of every problem, route, option and field there is.
func TestDocsAreComplete(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs := string(raw)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codes.FindAllStringSubmatch(string(source), -1) {
			found++
			if !strings.Contains(docs, "`"+m[1]+"`") {
				t.Errorf("docs/api.md lacks the problem %s (%s)", m[1], file)
			}
		}
		for _, m := range routes.FindAllStringSubmatch(string(source), -1) {
			found++
			path := strings.TrimSuffix(m[2], "{$}")
			if !strings.Contains(docs, m[1]+" "+path) && !strings.Contains(docs, strings.ReplaceAll(path, "{id}", "$JOB")) {
				t.Errorf("docs/api.md lacks %s %s", m[1], path)
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d problems and routes found", found)
	}
	for name := range setters {
		if !strings.Contains(docs, "| `"+name+"` |") {
			t.Errorf("docs/api.md lacks the option %s", name)
		}
	}
	for name := range taskSetters {
		if !strings.Contains(docs, "`"+name+"`") {
			t.Errorf("docs/api.md lacks the field %s of an item", name)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Result]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "finished" && !strings.Contains(docs, "`"+name+"`") {
			t.Errorf("docs/api.md lacks the field %s of a result", name)
		}
	}
}
