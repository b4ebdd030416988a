package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"farmhand/sim/workload"
)

// traceCmd holds the commands that look at recorded loads.
func traceCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "trace", Short: "Look at recorded loads that scenarios play",
		Example: "  farmhand trace list --traces ~/traces\n  farmhand trace stats own.csv",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no %s %s; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(traceListCmd(), traceStatsCmd())
	return cmd
}

// traceRow is what is told of a trace.
type traceRow struct {
	Trace string `json:"trace"`
	workload.Stats
}

func traceListCmd() *cobra.Command {
	var o workload.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the traces of a folder; a scenario trace:NAME plays one", Args: exactly(),
		Example: "  farmhand trace list --traces ~/traces",
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := o.List()
			if err != nil {
				return usage("%v", err)
			}
			if folder, _ := o.Folder(); len(names) == 0 { // List knows it
				return usage("no traces in %s: want files NAME.csv", folder)
			}
			return printTraces(cmd, o, names, time.Second, asJSON)
		},
	}
	traceFlags(cmd, &o, &asJSON)
	return cmd
}

func traceStatsCmd() *cobra.Command {
	var o workload.Options
	bin := time.Second
	var asJSON bool
	cmd := &cobra.Command{
		Use: "stats NAME|FILE...", Short: "Tell how recorded loads behave: rate, peaks, burstiness, load",
		Long: `Tell how recorded loads behave; docs/scenarios.md says what the figures mean and
what a file looks like. A file with a line per task is counted in bins of --bin.`,
		Example: "  farmhand trace stats huawei_private_f104 own.csv",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("want %s NAME|FILE..., got none; farmhand trace list lists the folder", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if bin <= 0 {
				return usage("--bin %v: want more than 0", bin)
			}
			return printTraces(cmd, o, args, bin, asJSON)
		},
	}
	traceFlags(cmd, &o, &asJSON)
	cmd.Flags().DurationVar(&bin, "bin", bin, "width of the bins that single tasks are counted in")
	return cmd
}

func traceFlags(cmd *cobra.Command, o *workload.Options, asJSON *bool) {
	cmd.Flags().StringVar(&o.Traces, "traces", "", "folder of traces (default $FARMHAND_TRACES)")
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

// printTraces prints what can be read, and returns what cannot.
func printTraces(cmd *cobra.Command, o workload.Options, names []string, bin time.Duration, asJSON bool) error {
	rows := []traceRow{}
	var unread error
	for _, name := range names {
		t, err := o.Trace(strings.TrimPrefix(name, "trace:"))
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		s, err := t.Stats(bin.Seconds())
		if err != nil {
			return usage("--bin: %s: %v", name, err)
		}
		rows = append(rows, traceRow{name, s})
	}
	switch {
	case len(rows) == 0 && unread != nil:
		return unread
	case asJSON:
		return errors.Join(unread, printJSON(cmd.OutOrStdout(), rows))
	}
	return errors.Join(unread, writeTraces(cmd.OutOrStdout(), rows))
}

func writeTraces(out io.Writer, rows []traceRow) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TRACE\tBIN s\tBINS\tHOURS\tARRIVALS\tRATE/s\tPEAK/MEAN\tIoD\tIoD_d\tAC1\tZERO\tSVC s\tLOAD")
	for _, r := range rows {
		service, load := unknown, unknown
		if r.Service > 0 {
			service, load = fmt.Sprintf("%.4g", r.Service), fmt.Sprintf("%.4g", r.Load)
		}
		fmt.Fprintf(w, "%s\t%g\t%d\t%.4g\t%.0f\t%.4g\t%.2f\t%.4g\t%.4g\t%.2f\t%.2f\t%s\t%s\n", r.Trace, r.Bin, r.Bins, r.Hours, r.Arrivals,
			r.Rate, r.PeakToMean, r.IoD, r.IoDTrend, r.AC1, r.Zero, service, load)
	}
	return w.Flush()
}
