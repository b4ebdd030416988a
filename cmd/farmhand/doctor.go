package main

import (
	"context"
	"fmt"
	"time"

	"github.com/openfaas/faas-provider/types"
	"github.com/spf13/cobra"

	"farmhand/controller"
	"farmhand/gateway"
	"farmhand/skeleton/jobapi"
)

// What a finding comes to.
const (
	findOK   = "ok"
	findWarn = "warn" // it works, but not as it could, or it cannot be told
	findFail = "fail"
)

// finding is one line of what the doctor says.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // of anything but ok
}

// doctor examines an OpenFaaS with the suite on it, from outside. What one check
// has learnt the next ones use.
type doctor struct {
	connection
	userFile, passwordFile  string
	redis                   string
	redisPasswordFile       string
	upstream, asyncPatience time.Duration

	url        string // of the gateway
	bearer     string // token of the suite
	management *gateway.Client

	ce         bool // it is a plain OpenFaaS CE, or a platform that behaves so
	functions  []types.FunctionStatus
	listed     bool // functions could be listed
	farms      jobapi.FarmList
	overview   controller.Overview
	dispatches bool                  // the dispatcher answers
	controls   bool                  // the controller does
	seen       []controller.FarmView // farms with their receipts, once they were read
	read       bool
	findings   []finding
}

func (d *doctor) add(status, check, fix, format string, args ...any) {
	d.findings = append(d.findings, finding{Check: check, Status: status, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

func (d *doctor) ok(check, format string, args ...any) { d.add(findOK, check, "", format, args...) }

func (d *doctor) warn(check, fix, format string, args ...any) {
	d.add(findWarn, check, fix, format, args...)
}

func (d *doctor) fail(check, fix, format string, args ...any) {
	d.add(findFail, check, fix, format, args...)
}

// sound says that a check has found nothing, if that is so.
func (d *doctor) sound(check, format string, args ...any) {
	for _, f := range d.findings {
		if f.Check == check {
			return
		}
	}
	d.ok(check, format, args...)
}

// amount is so many of a thing in words.
func amount(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func doctorCmd() *cobra.Command {
	d := &doctor{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine a gateway and the suite on it, and say what to mend",
		Long: `Examine a gateway and the suite on it, and say what to mend.

It changes nothing. It needs the gateway's own login for some checks: that of
--password-file, of farmhand up, or of faas-cli login. It sees Redis itself only
where it reaches it: on the machine of farmhand up, or through --redis, such as
redis://127.0.0.1:6379 behind kubectl port-forward.

Exit codes: 0 nothing has failed (there may be warnings), 1 something has.`,
		Example: "  farmhand doctor\n" +
			"  farmhand doctor --gateway https://gateway.example.com --token-file .secrets/farmhand-token",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.examine(cmd.Context()); err != nil {
				return err
			}
			return d.report(cmd)
		},
	}
	d.connection.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&d.userFile, "user-file", "", "file with the user of the gateway's own login (default: admin)")
	f.StringVar(&d.passwordFile, "password-file", "", "file with its password (default: that of farmhand up, or of faas-cli login)")
	f.StringVar(&d.redis, "redis", "", "URL of Redis (default: that of farmhand up)")
	f.StringVar(&d.redisPasswordFile, "redis-password-file", "", "file with the password of Redis")
	f.DurationVar(&d.upstream, "upstream-timeout", time.Minute, "the gateway's upstream_timeout, which it does not tell")
	f.DurationVar(&d.asyncPatience, "async-patience", 15*time.Second, "how long an asynchronous call may wait")
	return cmd
}

// examine makes all checks that can be made. An error is one of how it was called.
func (d *doctor) examine(ctx context.Context) error {
	var err error
	if d.url, err = d.gatewayURL(); err != nil {
		return err
	}
	if d.management, err = d.login(); err != nil {
		return err
	}
	defer d.management.CloseIdle()
	if !d.reachable(ctx) {
		return ctx.Err()
	}
	d.list(ctx)
	d.ask(ctx)
	d.examineRedis(ctx)
	if d.listed {
		d.timeouts()
		d.scalers(ctx)
		d.clamps(ctx)
		d.balancing(ctx)
	}
	d.clocks(ctx)
	d.async(ctx)
	return ctx.Err()
}

// report prints what was found, and fails if anything did.
func (d *doctor) report(cmd *cobra.Command) error {
	failed, warned := 0, 0
	for _, f := range d.findings {
		switch f.Status {
		case findFail:
			failed++
		case findWarn:
			warned++
		}
	}
	out := struct {
		Gateway  string    `json:"gateway"`
		OK       bool      `json:"ok"`
		Findings []finding `json:"findings"`
	}{d.url, failed == 0, d.findings}
	err := d.print(cmd, out, func() {
		w := cmd.OutOrStdout()
		for _, f := range d.findings {
			fmt.Fprintf(w, "%-4s  %-10s  %s\n", f.Status, f.Check, f.Detail)
			if f.Fix != "" {
				fmt.Fprintf(w, "                  → %s\n", f.Fix)
			}
		}
		if failed+warned > 0 {
			fmt.Fprintf(w, "%d failed, %d to look at\n", failed, warned)
		}
	})
	if err == nil && failed > 0 {
		err = &exitError{code: exitFailed}
	}
	return err
}
