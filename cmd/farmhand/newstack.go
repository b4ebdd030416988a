package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/openfaas/go-sdk/stack"
)

//go:embed new.yml
var newStack string

var newStackTemplate = template.Must(template.New("stack").Parse(newStack))

// plan makes the text of the stack file.
func (w *newWorker) plan() error {
	root, err := filepath.Abs(filepath.Dir(w.stack))
	if err != nil {
		return err
	}
	folder, err := filepath.Abs(w.folder())
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(root, folder)
	if err != nil {
		return err
	}
	w.handler = filepath.ToSlash(rel)
	if filepath.IsLocal(rel) {
		w.handler = "./" + w.handler
	}
	if !w.added {
		w.text = w.execute("stack")
	} else if w.text, err = os.ReadFile(w.stack); err != nil {
		return err
	}
	before, err := stack.ParseYAMLData(w.text, "", "", true)
	if err != nil {
		return fmt.Errorf("stack file %s: %w", w.stack, err)
	}
	if w.added {
		if _, ok := before.Functions[w.name]; ok {
			return fmt.Errorf("%s has a function %s already; it is left as it is", w.stack, w.name)
		}
		entry := string(w.execute("worker"))
		if w.text = appendFunction(w.text, entry); !onlyAdds(before, w.text, w.name) {
			return fmt.Errorf("%s: cannot be added to by this program; add a new worker without --stack and move its entry", w.stack)
		}
	}
	for _, f := range before.Functions {
		w.needsSuite = w.needsSuite || f.Handler == ""
	}
	w.ownMod = slices.ContainsFunc(before.StackConfiguration.CopyExtraPaths, func(path string) bool { return filepath.Clean(path) == "go.mod" })
	return nil
}

func (w *newWorker) execute(name string) []byte {
	var b bytes.Buffer
	if err := newStackTemplate.ExecuteTemplate(&b, name, map[string]string{"Name": w.name, "Handler": w.handler}); err != nil {
		panic(err) // the template is ours
	}
	return b.Bytes()
}

var (
	functionsKey = regexp.MustCompile(`^functions:\s*(#.*)?$`)
	topLevel     = regexp.MustCompile(`^[^\s#]`)
	indented     = regexp.MustCompile(`^( +)[^\s#]`)
)

// appendFunction puts an entry, indented by two, behind the last function of a
// stack file, and touches nothing else of its text.
func appendFunction(text []byte, entry string) []byte {
	lines := strings.SplitAfter(strings.TrimRight(string(text), "\n")+"\n", "\n")
	lines = lines[:len(lines)-1] // what is behind the last newline
	at := slices.IndexFunc(lines, func(l string) bool { return functionsKey.MatchString(strings.TrimRight(l, "\r\n")) })
	if at < 0 {
		lines = append(lines, "\n", "functions:\n")
		at = len(lines) - 1
	}
	end, indent := len(lines), "  "
	for i, found := at+1, false; i < len(lines); i++ {
		if topLevel.MatchString(lines[i]) {
			end = i
			break
		}
		if m := indented.FindStringSubmatch(lines[i]); m != nil && !found {
			indent, found = m[1], true
		}
	}
	// Comments and empty lines before the next key belong to that.
	for end > at+1 && (strings.TrimSpace(lines[end-1]) == "" || strings.HasPrefix(lines[end-1], "#")) {
		end--
	}
	var add []string
	if end > at+1 {
		add = append(add, "\n")
	}
	for _, line := range strings.SplitAfter(strings.Trim(entry, "\n")+"\n", "\n") {
		if line != "" {
			add = append(add, indent+strings.TrimPrefix(line, "  "))
		}
	}
	return []byte(strings.Join(slices.Insert(lines, end, add...), ""))
}

// onlyAdds reports whether a stack file has one function more than before, and
// all else is the same.
func onlyAdds(before *stack.Services, text []byte, name string) bool {
	after, err := stack.ParseYAMLData(text, "", "", true)
	if err != nil {
		return false
	}
	if f, ok := after.Functions[name]; !ok || f.Handler == "" {
		return false
	}
	delete(after.Functions, name)
	if len(before.Functions) == 0 && len(after.Functions) == 0 {
		after.Functions = before.Functions
	}
	return reflect.DeepEqual(before, after)
}
