package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

const timeFormat = "2006-01-02 15:04:05"

func jobsCmd() *cobra.Command {
	var c connection
	var worker string
	var limit int
	cmd := &cobra.Command{
		Use: "jobs", Short: "List jobs, newest first", Args: exactly(),
		Example: "  farmhand jobs --worker thumbnail",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := atLeastOne(limit); err != nil {
				return err
			}
			return c.with(cmd, func(client *jobclient.Client) error {
				list, err := client.Jobs(cmd.Context(), worker, "", limit)
				if err != nil {
					return err
				}
				return c.print(cmd, list, func() {
					w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
					fmt.Fprintln(w, "JOB\tSTATE\tTOTAL\tDONE\tDEAD\tPENDING\tCREATED")
					for _, j := range list.Jobs {
						fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", j.ID, j.State, j.Total, j.Done, j.Dead, j.Pending, j.Created.Local().Format(timeFormat))
					}
					_ = w.Flush() // standard output
				})
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&worker, "worker", "", "only jobs of this worker")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return cmd
}

func jobCmd() *cobra.Command {
	var c connection
	var f follow
	cmd := &cobra.Command{
		Use: "job ID", Short: "Show a job; with --wait or --out get its results", Args: exactly("ID"),
		Example: "  farmhand job thumbnail~01ARZ3NDEKTSV4RRFFQ69G5FAV --out thumbs",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return c.with(cmd, func(client *jobclient.Client) error {
				if f.wanted() {
					return f.run(cmd, &c, client, args[0], readRecord(c.stateDir(), args[0]).Files)
				}
				j, err := client.Job(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.print(cmd, j, func() { printJob(cmd, j) })
			})
		},
	}
	c.flags(cmd)
	f.flags(cmd)
	return cmd
}

func printJob(cmd *cobra.Command, j jobapi.JobView) {
	fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %d tasks: %d done, %d dead, %d cancelled, %d pending\n",
		j.ID, j.State, j.Total, j.Done, j.Dead, j.Cancelled, j.Pending)
}

func cancelCmd() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a job's queued and running tasks", Args: exactly("ID"),
		Example: "  farmhand cancel montecarlo~01ARZ3NDEKTSV4RRFFQ69G5FAV",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(client *jobclient.Client) error {
				before, err := client.Job(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				j, err := client.Cancel(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if before.Ended != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), "the job was already over: nothing is left to cancel")
				}
				return c.print(cmd, j, func() { printJob(cmd, j) })
			})
		},
	}
	c.flags(cmd)
	return cmd
}
