package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"farmhand/gate"
	"farmhand/registry"
)

func policyJudgeCmd() *cobra.Command {
	var c connection
	var own ownTrace
	var scenarios []string
	var rule, champion string
	cmd := &cobra.Command{
		Use: "judge POLICY", Short: "Let the gate judge a policy here, on the unseen seeds of scenarios", Args: exactly("POLICY"),
		Long: `Let the gate judge a policy here, on the unseen seeds of scenarios, against a rule and
maybe a champion. Policies are versions or .safetensors files.

It is the trainer's gate without a farm's traffic; nothing is kept, and nothing is
promoted. Exit code 4 says that the gate would not let the policy through.`,
		Example: "  farmhand policy judge p.safetensors --scenario burst-cron-150ms --rule static:n=9\n" +
			"  farmhand calibrate --scenario mine.yaml --law staffing --out rule.json\n  farmhand policy judge p.safetensors --scenario mine.yaml --rule rule.json --champion thumbnail:champion",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := own.check(scenarios...); err != nil {
				return err
			}
			cfg := gate.Config{Rule: rule}
			if filepath.Ext(rule) == ".json" {
				calibrated, err := calibratedFile(rule)
				if err != nil {
					return err
				}
				cfg.Rule = calibrated.Spec
			}
			for _, name := range scenarios {
				s, err := own.find(name)
				if err != nil {
					return err
				}
				cfg.Scenarios = append(cfg.Scenarios, s)
			}
			var err error
			if cfg.Challenger, err = c.policyBytes(cmd.Context(), args[0]); err != nil {
				return err
			}
			if champion != "" {
				if cfg.Champion, err = c.policyBytes(cmd.Context(), champion); err != nil {
					return err
				}
			}
			return c.judge(cmd, cfg)
		},
	}
	c.flags(cmd)
	own.add(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&scenarios, "scenario", []string{"burst-cron-150ms"}, "scenarios, by comma: built-in names, trace:NAME, .yaml or .csv files")
	flags.StringVar(&rule, "rule", "staffing", "law with its parameters, or a file of farmhand calibrate --out")
	flags.StringVar(&champion, "champion", "", "policy that has to be beaten too")
	return cmd
}

// judge runs a gate to its end.
func (c *connection) judge(cmd *cobra.Command, cfg gate.Config) error {
	g, err := gate.New(cfg)
	if err != nil {
		return err
	}
	bar := newProgress(cmd.ErrOrStderr(), "trials", g.Trials())
	_, err = g.Run(cmd.Context(), func() bool { bar.add(1); return true })
	bar.finish()
	if err != nil {
		return err
	}
	v, err := g.Verdict()
	if err != nil {
		return err
	}
	err = c.print(cmd, v, func() { writeChecks(cmd.OutOrStdout(), v) })
	if err == nil && v.Outcome != registry.Promoted {
		return &exitError{code: exitRefused, err: fmt.Errorf("the gate would not let it through: %s", v.Outcome)}
	}
	return err
}
