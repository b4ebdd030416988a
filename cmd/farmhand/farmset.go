package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farmhand/controller"
)

// change are the flags of a command that overrides settings.
type change struct {
	connection
	forTime time.Duration
}

func (c *change) forFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&c.forTime, "for", 0, "how long it holds, such as 30m; at most 720h (default: until it is unset)")
}

// run sends all changes at once and prints what holds then.
func (c *change) run(cmd *cobra.Command, worker string, changes map[string]*string) error {
	names := slices.Sorted(maps.Keys(changes))
	if cmd.Flags().Changed("for") {
		if c.forTime <= 0 {
			return usage("--for %s: want a duration above 0, such as 30m", c.forTime)
		}
		text := c.forTime.String()
		changes["for"] = &text
	}
	return c.withFarms(func(client *farmClient) error {
		v, err := client.change(cmd.Context(), worker, changes)
		if err != nil {
			return err
		}
		writeProblems(cmd.ErrOrStderr(), v)
		return c.print(cmd, v, func() { writeSettings(cmd.OutOrStdout(), v, names) })
	})
}

// settingName is a name as the controller has it: annotations have a prefix.
func settingName(s string) (string, error) {
	name := strings.TrimPrefix(strings.TrimSpace(s), "farmhand.")
	switch name {
	case "":
		return "", usage("%q names no setting; see farmhand farm show", s)
	case "for":
		return "", usage("for is no setting: use --for")
	}
	return name, nil
}

// worked is a check for WORKER and at least one of what.
func worked(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 {
			return usage("want %s WORKER %s..., got %d arguments; see %s --help", cmd.CommandPath(), what, len(args), cmd.CommandPath())
		}
		return nil
	}
}

func farmSetCmd() *cobra.Command {
	var c change
	cmd := &cobra.Command{
		Use: "set WORKER KEY=VALUE...", Short: "Override settings of a farm, all of them at once or none", Args: worked("KEY=VALUE"),
		Example: "  farmhand farm set thumbnail max=5 policy=staffing:headroom=1.3\n" +
			"  farmhand farm set thumbnail min=10 --for 30m",
		RunE: func(cmd *cobra.Command, args []string) error {
			changes := map[string]*string{}
			for _, arg := range args[1:] {
				key, value, ok := strings.Cut(arg, "=")
				if !ok {
					return usage("%q: want KEY=VALUE, such as max=5", arg)
				}
				name, err := settingName(key)
				if err != nil {
					return err
				}
				if changes[name] != nil {
					return usage("%s is given twice", name)
				}
				changes[name] = &value
			}
			return c.run(cmd, args[0], changes)
		},
	}
	c.flags(cmd)
	c.forFlag(cmd)
	return cmd
}

func farmUnsetCmd() *cobra.Command {
	var c change
	cmd := &cobra.Command{
		Use: "unset WORKER KEY...", Short: "Remove overrides of a farm: its own settings hold again", Args: worked("KEY"),
		Example: "  farmhand farm unset thumbnail max policy",
		RunE: func(cmd *cobra.Command, args []string) error {
			changes := map[string]*string{}
			for _, arg := range args[1:] {
				name, err := settingName(arg)
				if err != nil {
					return err
				}
				changes[name] = nil
			}
			return c.run(cmd, args[0], changes)
		},
	}
	c.flags(cmd)
	return cmd
}

func farmPauseCmd() *cobra.Command {
	var c change
	var mode string
	cmd := &cobra.Command{
		Use: "pause WORKER", Short: "Keep a farm as it is, or let the rule scale it", Args: exactly("WORKER"),
		Long: "Keep a farm as it is, or let the rule scale it.\n\n" +
			"  paused   nothing is decided, the count stays\n" +
			"  dry-run  all is decided and noted, the count stays\n" +
			"  shadow   the rule scales the farm, what its policy wishes is noted",
		Example: "  farmhand farm pause thumbnail --for 30m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]controller.Mode{controller.Paused, controller.DryRun, controller.Shadow}, controller.Mode(mode)) {
				return usage("--mode %q: want paused, dry-run or shadow", mode)
			}
			return c.run(cmd, args[0], map[string]*string{"mode": &mode})
		},
	}
	c.flags(cmd)
	c.forFlag(cmd)
	cmd.Flags().StringVar(&mode, "mode", string(controller.Paused), "paused, dry-run or shadow")
	return cmd
}

func farmResumeCmd() *cobra.Command {
	var c change
	cmd := &cobra.Command{
		Use: "resume WORKER", Short: "Let the farm's policy scale it again", Args: exactly("WORKER"),
		Example: "  farmhand farm resume thumbnail",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd, args[0], map[string]*string{"mode": nil})
		},
	}
	c.flags(cmd)
	return cmd
}
