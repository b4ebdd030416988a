package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"farmhand/policy/learned"
	"farmhand/registry"
)

// policyCmd holds the commands for learned policies in production.
func policyCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Look at learned policies, and say which of them acts for a farm",
		Long: `Look at learned policies, and say which of them acts for a farm.

Each is a version, named by the SHA-256 of its file; twelve digits of it, or any
beginning that is unique, name it too, and so does WORKER:champion, WORKER:challenger
or WORKER:previous. The champion of a worker acts where its policy is learned.`,
		Example: "  farmhand policy import p.safetensors\n  farmhand policy list\n  farmhand policy promote thumbnail 2f61c0ffee12 --force --reason 'tried it in shadow for a week'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no %s %s; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(policyListCmd(), policyShowCmd(), policyDiffCmd(), policyPromoteCmd(), policyRollbackCmd(), policyExportCmd(), policyImportCmd(), policyJudgeCmd())
	return cmd
}

func policyListCmd() *cobra.Command {
	var c connection
	var farm string
	cmd := &cobra.Command{
		Use: "list", Short: "List the versions, the newest first; of one worker with the history of its champions", Args: exactly(),
		Example: "  farmhand policy list\n  farmhand policy list --worker thumbnail",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withPolicies(func(client policyClient) error {
				l, err := client.list(cmd.Context(), farm)
				if err != nil {
					return err
				}
				return c.print(cmd, l, func() {
					switch {
					case len(l.Policies) > 0:
						writePolicies(cmd.OutOrStdout(), l.Policies)
					case farm != "":
						fmt.Fprintf(cmd.ErrOrStderr(), "no policy has to do with %s: farmhand policy list lists all\n", farm)
					default:
						fmt.Fprintln(cmd.ErrOrStderr(), "there is no policy: farmhand policy import puts one there, and the trainer does")
					}
					if len(l.History) > 0 {
						fmt.Fprintln(cmd.OutOrStdout())
						writeHistory(cmd.OutOrStdout(), l.History)
					}
					for _, what := range l.Damaged {
						fmt.Fprintln(cmd.ErrOrStderr(), oneLine(what))
					}
				})
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&farm, "worker", "", "only those that this worker has to do with, and how its champions changed")
	return cmd
}

func writePolicies(out io.Writer, list []registry.Version) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "VERSION\tIMPORTED\tBY\tLEARNER\tSCENARIO\tSTEPS\tGATE\tUSED")
	for _, v := range list {
		var uses, gate []string
		for _, u := range v.Uses {
			uses = append(uses, u.Farm+":"+u.Alias)
		}
		for _, farm := range slices.Sorted(maps.Keys(v.Verdicts)) {
			gate = append(gate, fmt.Sprintf("%s: %s", farm, v.Verdicts[farm].Outcome))
		}
		s := v.Summary
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", registry.Short(v.Version), timeText(v.At), textOr(v.Origin.By), textOr(s.Learner), textOr(shortened(s.Scenario)), s.Steps,
			textOr(strings.Join(gate, ", ")), textOr(strings.Join(uses, ", ")))
	}
	_ = w.Flush() // standard output
}

// textOr is what others wrote, on one line, or a dash.
func textOr(s string) string { return cmp.Or(oneLine(s), unknown) }

// shortOr is a version, or a dash.
func shortOr(version string) string { return textOr(registry.Short(version)) }

// shortened is a text that fits into a table.
func shortened(s string) string {
	const most = 24
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func writeHistory(out io.Writer, list []registry.Change) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "WHEN\tWHAT\tFROM\tTO\tBY\tWHY")
	for _, c := range list {
		what := string(c.Kind)
		if c.Forced {
			what += ", forced"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", timeText(c.At), what, shortOr(c.From), shortOr(c.To), textOr(c.By), textOr(c.Text))
	}
	_ = w.Flush() // standard output
}

func policyShowCmd() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a version: where it comes from, who uses it, what the gate found", Args: exactly("NAME"),
		Example: "  farmhand policy show thumbnail:challenger",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withPolicies(func(client policyClient) error {
				v, err := client.show(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.print(cmd, v, func() { writePolicy(cmd.OutOrStdout(), v) })
			})
		},
	}
	c.flags(cmd)
	return cmd
}

func writePolicy(out io.Writer, v registry.Version) {
	s := v.Summary
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "version\t%s\n", v.Version)
	fmt.Fprintf(w, "imported\t%s by %s\n", timeText(v.At), textOr(v.Origin.By))
	fmt.Fprintf(w, "note\t%s\n", textOr(v.Origin.Note))
	fmt.Fprintf(w, "learner\t%s, %s, %d steps\n", textOr(s.Learner), (&learned.Meta{Seed: s.Seed, Members: s.Members}).Seeds(), s.Steps)
	fmt.Fprintf(w, "learned in\t%s, %s\n", textOr(s.Environment), textOr(s.Scenario))
	fmt.Fprintf(w, "advised by\t%s\n", textOr(s.Rule))
	fmt.Fprintf(w, "falls back on\t%s\n", textOr(cmp.Or(s.Fallback, s.Rule)))
	fmt.Fprintf(w, "bytes\t%d\n", v.Bytes)
	for _, name := range slices.Sorted(maps.Keys(s.Training)) {
		fmt.Fprintf(w, "training: %s\t%.6g\n", oneLine(name), s.Training[name])
	}
	for _, u := range v.Uses {
		fmt.Fprintf(w, "%s of\t%s\n", oneLine(u.Alias), oneLine(u.Farm))
	}
	_ = w.Flush() // standard output
	for _, farm := range slices.Sorted(maps.Keys(v.Verdicts)) {
		writeVerdict(out, farm, v.Verdicts[farm])
	}
}

func writeVerdict(out io.Writer, farm string, v registry.Verdict) {
	fmt.Fprintf(out, "\nthe gate of %s: ", oneLine(farm))
	writeChecks(out, v)
}

func writeChecks(out io.Writer, v registry.Verdict) {
	fmt.Fprintf(out, "%s\ncompared with the rule %s, and the champion %s\n", oneLine(string(v.Outcome)), textOr(v.Rule), shortOr(v.Champion))
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "METRIC\tWORK\tAGAINST\tVALUE\t95 %\tLIMIT\tRUNS\tOUTCOME")
	for _, c := range v.Checks {
		limit := "≤"
		if c.AtLeast {
			limit = "≥"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.4f\t%.4f to %.4f\t%s %.4g\t%d\t%s\n", oneLine(c.Metric), oneLine(c.Work), shortened(oneLine(c.Against)), float64(c.Value), float64(c.Lo), float64(c.Hi), limit, c.Limit, c.N, oneLine(string(c.Outcome)))
	}
	_ = w.Flush() // standard output
	for _, note := range v.Notes {
		fmt.Fprintln(out, oneLine(note))
	}
}
