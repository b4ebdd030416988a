// Command farmhand runs a task farm on one machine, posts work to it and looks
// at it. It is the only program where all rooms meet.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=…).
var version = "dev"

// Exit codes; exitHelp explains them.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitPartly      = 3
	exitRefused     = 4
	exitInterrupted = 130
)

const exitHelp = `
Exit codes: 0 all went well, 1 it failed, 2 the command line is wrong,
3 partly done (dead or cancelled tasks), 4 refused by a gate, 130 interrupted.`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCmd()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var coded *exitError
	if errors.As(err, &coded) {
		if coded.err != nil {
			fmt.Fprintln(os.Stderr, "farmhand:", coded.err)
		}
		return coded.code
	}
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "farmhand: interrupted:", err)
		return exitInterrupted
	}
	fmt.Fprintln(os.Stderr, "farmhand:", err)
	return exitFailed
}

// rootCmd lists the commands; each stands in a file of its name.
func rootCmd() *cobra.Command {
	const short = "A task farm on OpenFaaS: post work, get every result exactly once"
	root := &cobra.Command{
		Use:           "farmhand",
		Short:         short,
		Long:          short + ".\n" + exitHelp,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%v; see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(
		upCmd(), downCmd(), statusCmd(), doctorCmd(),
		submitCmd(), jobsCmd(), jobCmd(), cancelCmd(), deadCmd(), redriveCmd(),
		farmCmd(), topCmd(), newCmd(),
		simCmd(), traceCmd(), evalCmd(), calibrateCmd(), reportCmd(), elsewhere(trainCmd()), policyCmd(),
		benchCmd(),
	)
	return root
}

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error in how a command was called.
func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// atLeastOne checks a --limit.
func atLeastOne(limit int) error {
	if limit < 1 {
		return usage("--limit %d: want 1 or more", limit)
	}
	return nil
}

// exactly is cobra.ExactArgs with an error that says what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			want := strings.Join(append([]string{cmd.CommandPath()}, names...), " ")
			return usage("want %s, got %d arguments; see %s --help", want, len(args), cmd.CommandPath())
		}
		return nil
	}
}
