package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"farmhand/cmd/farmhand/internal/bench"
	"farmhand/evaluate"
	"farmhand/internal/atomicfile"
	"farmhand/sim/workload"
)

func calibrateCmd() *cobra.Command {
	var f refereeFlags
	var o calibrateOptions
	cmd := &cobra.Command{
		Use: "calibrate", Short: "Search the parameters of a law for the fewest workers that keep enough tasks on time", Args: exactly(),
		Long: `Search the parameters of a law for the fewest worker-seconds with which enough tasks
are on time, on simulated work that no farmhand eval uses (seeds 1 to 8).

What is found is kept, and farmhand eval uses it for the scenario from then on; after
an interrupt the law that was under way begins anew, and those before it are there. With
--pooled one set of parameters has to serve all scenarios; farmhand eval takes it from
the file of --out.`,
		Example: `  farmhand calibrate --scenario burst-cron-150ms --law staffing
  farmhand calibrate --scenario constant,periodic,ramp --law staffing --pooled --out pooled.json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCalibrate(cmd, &f, &o) },
	}
	f.add(cmd)
	f.addScenarios(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.laws, "law", "all", "laws, by comma; parameters that are given are kept, as in staffing:down=15")
	flags.BoolVar(&o.pooled, "pooled", false, "one set of parameters for all scenarios")
	flags.BoolVar(&o.quick, "quick", false, "a smaller search")
	flags.StringVar(&o.out, "out", "", "file to write the result to, where there is one")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

type calibrateOptions struct {
	laws   string
	pooled bool
	quick  bool
	out    string
	asJSON bool
}

func runCalibrate(cmd *cobra.Command, f *refereeFlags, o *calibrateOptions) error {
	scenarios, err := f.find(f.scenarios)
	if err != nil {
		return err
	}
	families, err := o.families()
	if err != nil {
		return err
	}
	pools := [][]*workload.Scenario{scenarios}
	if !o.pooled {
		pools = nil
		for _, s := range scenarios {
			pools = append(pools, []*workload.Scenario{s})
		}
	}
	if o.out != "" && len(families)*len(pools) != 1 {
		return usage("--out: there are %d results: want one law, and one scenario or --pooled", len(families)*len(pools))
	}
	if err := checkFiles("--out", o.out); err != nil {
		return err
	}
	settings, shut, err := f.open()
	if err != nil {
		return err
	}
	defer shut() //nolint:errcheck // every line is written when it is put
	c := evaluate.Calibrator{Settings: settings, Budget: evaluate.FullBudget()}
	if o.quick {
		c.Budget = evaluate.QuickBudget()
	}
	var bar *progress
	c.Ran, bar = ticker(cmd.ErrOrStderr(), "runs", 0)
	var list []*evaluate.Calibration
	for _, pool := range pools {
		for _, family := range families {
			found, err := c.Calibrate(cmd.Context(), family, pool)
			if err != nil {
				bar.finish()
				return o.broken(cmd, list, len(families)*len(pools), err)
			}
			list = append(list, found)
		}
	}
	bar.finish()
	if o.out != "" {
		raw, err := json.MarshalIndent(list[0], "", "  ")
		if err != nil {
			return err
		}
		if err := atomicfile.Write(o.out, append(raw, '\n'), 0o644); err != nil {
			return err
		}
	}
	return printCalibrations(cmd, list, o.asJSON)
}

// broken prints what was found before the error, which is kept.
func (o *calibrateOptions) broken(cmd *cobra.Command, list []*evaluate.Calibration, all int, err error) error {
	if cmd.Context().Err() != nil {
		err = &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted: %d of %d calibrations are done and kept; begun again, it goes on with the others, of which the one under way begins anew", len(list), all)}
	}
	if len(list) > 0 {
		err = errors.Join(err, printCalibrations(cmd, list, o.asJSON))
	}
	return err
}

func (o *calibrateOptions) families() (list []evaluate.Family, err error) {
	items := splitPolicies(o.laws)
	if len(items) == 1 && items[0] == "all" {
		items = append(peers(), "regime-oracle")
	}
	for _, name := range items {
		family, err := familyOf(name)
		switch {
		case err != nil && strings.Contains(name, ":"): // it may be a parameter that is wrong
			return nil, usage("--law: %v", err)
		case err != nil:
			return nil, usage("--law: %v, regime-oracle, or all", err)
		}
		if len(family.Free) == 0 {
			return nil, usage("--law %s: there is no parameter left to search; farmhand eval says what it costs", name)
		}
		list = append(list, family)
	}
	if len(list) == 0 {
		return nil, usage("--law is empty: want all, or names of laws")
	}
	return list, nil
}

func printCalibrations(cmd *cobra.Command, list []*evaluate.Calibration, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		r := bench.NewReport(evaluate.TrainingSeeds()[0])
		for _, c := range list {
			r.Figures["calibrate_simulated_h"] += c.Hours
		}
		return printJSON(out, struct {
			Calibrations []*evaluate.Calibration `json:"calibrations"`
			*bench.Report
		}{list, r})
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tscenario\tworkers\ton time %\tfree\tfound")
	for _, c := range list {
		for i, name := range c.Scenarios {
			mark := "✓"
			if !c.Best.OnTarget {
				mark = "✗"
			}
			onTime := "–"
			if x := c.Best.OnTime[i]; x.Known() {
				onTime = fmt.Sprintf("%.2f", 100*x)
			}
			fmt.Fprintf(t, "%s\t%s\t%.2f\t%s\t%d\t%s\n", mark, name, c.Best.MeanWorkers[i], onTime, c.Free, c.Best.Specification)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if missed(list) {
		fmt.Fprintln(cmd.ErrOrStderr(), "✗ no parameters that were tried keep enough tasks on time; the nearest are shown")
	}
	return nil
}

func missed(list []*evaluate.Calibration) bool {
	for _, c := range list {
		if !c.Best.OnTarget {
			return true
		}
	}
	return false
}
