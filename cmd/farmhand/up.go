package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"farmhand/platform"
)

// stopPatience is how long the platform may take to end: a minute for calls,
// and the same again for processes, is the usual drain time.
const stopPatience = 3 * time.Minute

// A detached platform says on file descriptor 3 that it is up, or why not.
const (
	readyEnv = "FARMHAND_READY_FD"
	readyOK  = "up\n"
)

func upCmd() *cobra.Command {
	var c platform.Config
	var detach bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run the local platform: gateway, functions as processes, Redis",
		Example: "  farmhand up -d --stack stack.yml --deploy\n" +
			"  farmhand up --listen 127.0.0.1:0 --cold-start none",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Version = version
			if err := chooseState(&c.State); err != nil {
				return err
			}
			lastSources(cmd.ErrOrStderr(), &c)
			if detach {
				return upDetached(cmd, c.State, c.Deploy)
			}
			return upForeground(cmd.Context(), cmd.OutOrStdout(), c)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&detach, "detach", "d", false, "run in the background; return once the gateway answers")
	stateFlag(cmd, &c.State)
	f.StringVar(&c.Listen, "listen", platform.DefaultListen, "loopback address of the gateway; port 0 picks a free one")
	f.StringVar(&c.MetricsListen, "metrics-listen", platform.DefaultMetricsListen, "address of /metrics, or none")
	f.StringVar(&c.Stack, "stack", "", "stack file: says which image is which program (default, with --prebuilt: as last time)")
	f.StringVar(&c.Prebuilt, "prebuilt", "", "folder of programs named as their functions, used instead of building")
	f.BoolVar(&c.Deploy, "deploy", false, "deploy every function of the stack file; wait until the dispatcher knows its workers")
	f.StringVar(&c.Redis, "redis", platform.DefaultRedis, "auto, memory, or a redis:// URL; auto takes $farmhand_redis_url, else a redis-server of its own, else memory")
	f.StringVar(&c.ColdStart, "cold-start", platform.DefaultColdStart, "injected start-up time: none, constant:DURATION, or lognormal:MU,SIGMA of seconds (default: as measured on OpenFaaS)")
	f.Uint64Var(&c.Seed, "seed", 1, "seed of the start-up times")
	f.BoolVar(&c.CE, "ce", false, "behave as plain OpenFaaS CE: 1 to 5 replicas, never zero, random balancing, one asynchronous call at a time")
	f.StringArrayVar(&c.AllowDirs, "allow-dir", nil, "folder whose programs the annotation farmhand.local.command may run (repeatable)")
	f.StringVar(&c.NATSListen, "nats-listen", platform.DefaultNATSListen, "loopback address of the broker of asynchronous calls, or none; port 0 takes that of last time, or a free one")
	f.DurationVar(&c.AckWait, "ack-wait", 0, "an asynchronous call that takes longer is made again (default: 1m, or longer than --upstream-timeout lets a call take)")
	f.IntVar(&c.AsyncInflight, "async-inflight", platform.DefaultAsyncInflight, "asynchronous calls made at once; with --ce always 1")
	f.StringArrayVar(&c.CallbackAllow, "callback-allow", nil, "host, *.domain or URL prefix that X-Callback-Url may name, beside the gateway itself (repeatable)")
	f.DurationVar(&c.UpstreamTimeout, "upstream-timeout", platform.DefaultUpstreamTimeout, "longest call of a function")
	return cmd
}

func stateFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "state", "", "state folder (default $XDG_STATE_HOME/farmhand or ~/.local/state/farmhand)")
}

func chooseState(dir *string) (err error) {
	if *dir == "" {
		*dir, err = platform.DefaultState()
		return err
	}
	*dir, err = filepath.Abs(*dir)
	return err
}

// lastSources takes the programs from where they were last time, if nothing
// else is said: what was deployed needs them.
func lastSources(errOut io.Writer, c *platform.Config) {
	if c.Stack != "" || c.Prebuilt != "" {
		return
	}
	c.Stack, c.Prebuilt = platform.LastSources(c.State)
	c.Stack = stillThere(errOut, "--stack", c.Stack)
	c.Prebuilt = stillThere(errOut, "--prebuilt", c.Prebuilt)
}

// stillThere says that a path of last time is used again, or that it is gone.
func stillThere(errOut io.Writer, flag, path string) string {
	if path == "" {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		fmt.Fprintf(errOut, "last time there was %s %s: it is gone\n", flag, path)
		return ""
	}
	fmt.Fprintf(errOut, "as last time: %s %s\n", flag, path)
	return path
}

// upForeground runs the platform until it is told to end; told again, it ends
// at once.
func upForeground(ctx context.Context, out io.Writer, c platform.Config) error {
	tell := readySignal()
	c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	p, err := platform.Start(ctx, c)
	if err != nil {
		tell(err.Error())
		return err
	}
	if os.Getenv(readyEnv) == "" { // else the parent says it
		printInfo(out, p.Info())
		unrestored, err := platform.ListUnrestored(c.State)
		if err != nil {
			c.Log.Error("cannot tell what was not restored", "error", err)
		}
		printUnrestored(out, unrestored)
		if c.Deploy {
			if err := awaitFarms(ctx, out, p.Info()); err != nil && ctx.Err() == nil {
				c.Log.Warn(err.Error())
			}
		}
	}
	tell(readyOK)
	<-ctx.Done()
	c.Log.Info("ending; once more ends at once")
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	patience, stop := signal.NotifyContext(patience, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return p.Stop(patience)
}

// readySignal returns a function that tells a waiting parent, if there is one.
func readySignal() func(string) {
	if os.Getenv(readyEnv) == "" {
		return func(string) {}
	}
	f := os.NewFile(3, "ready")
	syscall.CloseOnExec(3)
	return func(text string) {
		_, _ = io.WriteString(f, text) // a parent that went away needs no answer
		_ = f.Close()
	}
}

// upDetached runs this command once more, without -d and in a session of its
// own, and waits until it is up, and the farms if any were deployed.
func upDetached(up *cobra.Command, state string, deployed bool) error {
	ctx, out := up.Context(), up.OutOrStdout()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(state, "logs"), 0o700); err != nil {
		return fmt.Errorf("state folder: %w (set --state to a folder you may write)", err)
	}
	logFile := filepath.Join(state, "logs", "platform.log")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(self, append(withoutDetach(os.Args[1:]), "--detach=false", "--state", state)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{w}
	cmd.Env = append(os.Environ(), readyEnv+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = w.Close() // the child's copy is what counts
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	answer, err := io.ReadAll(r) // to its end: the child has spoken or is gone
	if err != nil {
		return err
	}
	if string(answer) != readyOK {
		_ = cmd.Wait() // what it said says more
		if len(answer) == 0 {
			return fmt.Errorf("the platform ended before it was up; see %s", logFile)
		}
		return errors.New(string(answer))
	}
	info, err := platform.Running(state)
	if err != nil {
		return err
	}
	printInfo(out, info)
	fmt.Fprintf(out, "log         %s\n", logFile)
	unrestored, err := platform.ListUnrestored(state)
	if err != nil {
		return err
	}
	printUnrestored(out, unrestored)
	if deployed {
		if err := awaitFarms(ctx, out, info); err != nil {
			return err
		}
	}
	fmt.Fprintf(up.ErrOrStderr(), "end it with farmhand down%s\n", stateHint(state))
	return cmd.Process.Release()
}

// stateHint is the flag that a command needs for a state folder, if any.
func stateHint(state string) string {
	if usual, err := platform.DefaultState(); state == "" || err == nil && usual == state {
		return ""
	}
	return fmt.Sprintf(" --state '%s'", state)
}

// printUnrestored says which functions did not come back, and why.
func printUnrestored(out io.Writer, list []platform.Unrestored) {
	for _, f := range list {
		fmt.Fprintf(out, "NOT BACK    %-20s %s\n", f.Function, f.Reason)
	}
}

// withoutDetach drops a -d given as an argument of its own; a later
// --detach=false outweighs the rest.
func withoutDetach(args []string) []string {
	var kept []string
	for _, a := range args {
		if a != "-d" && a != "--detach" {
			kept = append(kept, a)
		}
	}
	return kept
}

// printInfo says what a user needs first.
func printInfo(out io.Writer, info platform.Info) {
	host := strings.TrimPrefix(info.URL, "http://")
	fmt.Fprintf(out, "gateway     %s\n", info.URL)
	if info.MetricsURL != "" {
		fmt.Fprintf(out, "metrics     %s\n", info.MetricsURL)
	}
	fmt.Fprintf(out, "login       faas-cli login --gateway http://%s --username admin --password-stdin < %s\n", host, filepath.Join(info.State, "credentials", "basic-auth-password"))
	fmt.Fprintf(out, "token       %s\n", filepath.Join(info.State, "secrets", "farmhand-token"))
	fmt.Fprintf(out, "redis       %s at %s; durability %q: %s\n", info.RedisKind, info.RedisAddr, info.Durability, info.Durable)
	if info.NATSAddr != "" {
		fmt.Fprintf(out, "nats        %s; cluster faas-cluster; its address with the token: %s\n", info.NATSAddr, filepath.Join(info.State, "nats.url"))
	}
	fmt.Fprintf(out, "cold start  %s (injected)\n", info.ColdStart)
	if info.CE {
		fmt.Fprintln(out, "as CE       1 to 5 replicas, never zero, random balancing, one asynchronous call at a time")
	}
}

// running looks up the platform that runs on a state folder, "" being the usual
// one. If there is none, the error names the folder.
func running(state string) (platform.Info, error) {
	if err := chooseState(&state); err != nil {
		return platform.Info{}, err
	}
	info, err := platform.Running(state)
	if err != nil {
		err = fmt.Errorf("%s: %w", state, err)
	}
	return info, err
}

func downCmd() *cobra.Command {
	var state string
	var force bool
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "End the local platform; what is deployed comes back with the next up",
		Example: "  farmhand down",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, err := running(state)
			if errors.Is(err, platform.ErrNotRunning) {
				fmt.Fprintln(cmd.OutOrStdout(), err)
				return nil
			}
			if err != nil {
				return err
			}
			sig := syscall.SIGTERM
			if force {
				sig = syscall.SIGKILL
			}
			if err := info.Process.Signal(sig); err != nil && info.Process.Alive() {
				return err
			}
			end := time.Now().Add(stopPatience + 15*time.Second)
			for !info.Process.Await(200 * time.Millisecond) {
				if err := cmd.Context().Err(); err != nil {
					return fmt.Errorf("process %d goes on ending: %w", info.Process.Pid, err)
				}
				if time.Now().After(end) {
					return fmt.Errorf("process %d does not end; farmhand down --force kills it", info.Process.Pid)
				}
			}
			if force { // it had no time to clean up
				if err := platform.Sweep(info.State, slog.New(slog.DiscardHandler)); err != nil {
					return err
				}
			}
			fmt.Fprintln(cmd.OutOrStdout(), "ended")
			return nil
		},
	}
	stateFlag(cmd, &state)
	cmd.Flags().BoolVar(&force, "force", false, "kill it, cutting off calls under way")
	return cmd
}
