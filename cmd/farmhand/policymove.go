package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farmhand/registry"
	"farmhand/registry/policyapi"
)

func policyPromoteCmd() *cobra.Command {
	var c connection
	var r registry.Reason
	cmd := &cobra.Command{
		Use: "promote WORKER NAME", Short: "Make a version the champion of a worker", Args: exactly("WORKER", "NAME"),
		Long: `Make a version the champion of a worker; the controller acts on it within one interval
where the worker's policy is learned.

A version that the gate has promoted for this worker needs nothing else, as long as the
champion is still the one that it was compared with. Any other is refused (exit code 4),
unless --force --reason says why; that is kept in the history.

The champion itself can be promoted again by force: where it was handed back to its rule,
it gets another chance at once.`,
		Example: "  farmhand policy promote thumbnail thumbnail:challenger\n  farmhand policy promote thumbnail 2f61c0ffee12 --force --reason 'tried it in shadow for a week'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.Forced && strings.TrimSpace(r.Text) == "" {
				return usage("--force needs --reason: it is kept in the history")
			}
			return c.move(cmd, args[0], args[1], r)
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&r.Forced, "force", false, "whatever the gate says")
	cmd.Flags().StringVar(&r.Text, "reason", "", "why; kept in the history")
	return cmd
}

func policyRollbackCmd() *cobra.Command {
	var c connection
	var r registry.Reason
	cmd := &cobra.Command{
		Use: "rollback WORKER", Short: "Bring back the champion before this one", Args: exactly("WORKER"),
		Long: `Bring back the champion before this one; where this was the first, the worker has none
then. It goes one promotion back: a second rollback is refused until something was
promoted again.`,
		Example: "  farmhand policy rollback thumbnail --reason 'late since noon'",
		RunE:    func(cmd *cobra.Command, args []string) error { return c.move(cmd, args[0], "", r) },
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&r.Text, "reason", "", "why; kept in the history")
	return cmd
}

// move makes a version the champion, or without one rolls back, and says what is so
// then.
func (c *connection) move(cmd *cobra.Command, worker, name string, r registry.Reason) error {
	r.By = whoami()
	return c.withPolicies(func(client policyClient) error {
		m, err := client.promote(cmd.Context(), worker, name, r)
		if err != nil {
			return err
		}
		return c.print(cmd, m, func() { fmt.Fprintln(cmd.OutOrStdout(), movedText(m)) })
	})
}

func movedText(m policyapi.Moved) string {
	switch {
	case m.Aliases.Champion == "":
		return m.Farm + " has no champion now"
	case !m.Changed:
		return fmt.Sprintf("the champion of %s is %s already; --force --reason TEXT gives it another chance where it was handed back", m.Farm, registry.Short(m.Aliases.Champion))
	}
	return fmt.Sprintf("the champion of %s is %s, the one before it %s", m.Farm, registry.Short(m.Aliases.Champion), shortOr(m.Aliases.Previous))
}
