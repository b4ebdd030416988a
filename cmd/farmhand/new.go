package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"farmhand/template"
)

func newCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new", Short: "Begin something of your own: a worker",
		Example: "  farmhand new worker resize",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no %s %s; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWorkerCmd())
	return cmd
}

func newWorkerCmd() *cobra.Command {
	var w newWorker
	cmd := &cobra.Command{
		Use: "worker NAME", Short: "Write a worker in Go that works, and say how to run it",
		Long: `Write a worker in Go that works: a folder NAME with its handler, a test and a
go.mod; the template it is built with, beside the stack file; and its entry in
that. Nothing is overwritten.`,
		Example: "  farmhand new worker resize\n" +
			"  farmhand new worker resize --stack stack.yml",
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.name = args[0]
			if err := w.check(); err != nil {
				return err
			}
			if err := w.write(); err != nil {
				return err
			}
			return w.tell(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&w.dir, "dir", ".", "folder to put the worker into")
	cmd.Flags().StringVar(&w.stack, "stack", "", "stack file to add the worker to (default: a new one, NAME.yml in --dir)")
	return cmd
}

// newWorker is what is asked for, and what comes of it.
type newWorker struct {
	name, dir string
	stack     string // file
	added     bool   // to a stack file there was

	handler      string // folder of the worker, seen from the stack file
	text         []byte // of the stack file
	keepTemplate bool
	needsSuite   bool // programs of dispatcher and controller are needed
	ownMod       bool // configuration.copy brings a go.mod that replaces the worker's
}

// functionName is what OpenFaaS takes for a name: an RFC 1035 label.
var functionName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (w *newWorker) folder() string { return filepath.Join(w.dir, w.name) }

func (w *newWorker) templateFolder() string {
	return filepath.Join(filepath.Dir(w.stack), "template", template.Worker)
}

// check says what is in the way, before anything is written.
func (w *newWorker) check() error {
	if !functionName.MatchString(w.name) {
		return usage("%q is no name of a function: want at most 63 lower-case letters, digits and dashes, a letter first and no dash last", w.name)
	}
	if w.name == "template" || w.name == "build" {
		return usage("%q is a folder of faas-cli's; take another name", w.name)
	}
	if err := absent(w.folder()); err != nil {
		return err
	}
	w.added = w.stack != ""
	if !w.added {
		w.stack = filepath.Join(w.dir, w.name+".yml")
		if err := absent(w.stack); err != nil {
			return err
		}
	}
	if err := w.checkTemplate(); err != nil {
		return err
	}
	return w.plan()
}

// checkTemplate looks whether the template is there already.
func (w *newWorker) checkTemplate() error {
	dir := w.templateFolder()
	if absent(dir) == nil {
		return nil
	}
	if st, err := os.Stat(filepath.Join(dir, "_main")); err != nil || !st.IsDir() {
		return fmt.Errorf("%s is not the template of this program; move it away", dir)
	}
	w.keepTemplate = true
	return nil
}

// absent is an error if there is something of this name.
func absent(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s is there already; it is left as it is", path)
	case os.IsNotExist(err):
		return nil
	default:
		return err
	}
}

// tell says what was written, and the commands to go on with.
func (w *newWorker) tell(out io.Writer) error {
	self, stack := word(os.Args[0]), word(w.stack)
	kept := ""
	if w.keepTemplate {
		kept = " (kept)"
	}
	fmt.Fprintf(out, "worker      %s\ntemplate    %s%s\nstack       %s\n", w.folder(), w.templateFolder(), kept, w.stack)
	if w.ownMod {
		fmt.Fprintf(out, "note        configuration.copy of %s brings a go.mod, which replaces that of the worker: modules that it uses must be in there\n", w.stack)
	}
	up := fmt.Sprintf("%s up -d --stack %s", self, stack)
	suite, found := "", true
	if w.needsSuite {
		if suite, found = suitePrograms(); !found {
			suite = "DIR"
		}
		up += " --prebuilt " + word(suite)
	}
	fmt.Fprintf(out, "\ntest it     go -C %s test ./...\nrun it      %s --deploy\n", word(w.folder()), up)
	fmt.Fprintf(out, "            (end a platform that runs already: %s down)\n", self)
	if !found {
		fmt.Fprintln(out, "            DIR is the folder with the programs dispatcher and controller: make build in Farmhand's own folder makes bin/functions")
	}
	fmt.Fprintf(out, "try it      echo '{\"text\": \"farm\", \"rounds\": 1000}' | %s submit %s --ndjson --wait\n", self, w.name)
	fmt.Fprintf(out, "change it   %s, then %s down, and run it again\n", filepath.Join(w.folder(), "handler.go"), self)
	fmt.Fprintf(out, "cluster     REGISTRY=... faas-cli up -f %s --filter %s\n", stack, w.name)
	return nil
}

// suitePrograms is the folder of the suite's programs, which make build puts
// beside this program.
func suitePrograms() (string, bool) {
	self, err := os.Executable()
	if err != nil {
		return "", false
	}
	dir := filepath.Join(filepath.Dir(self), "functions")
	for _, name := range []string{"dispatcher", "controller"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || !st.Mode().IsRegular() {
			return "", false
		}
	}
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return dir, true
}

// word quotes what a shell would take apart.
func word(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("-_./:@%+=,", r) && !isAlnum(r) }) || s == "" {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func isAlnum(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
