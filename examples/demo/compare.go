package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/types"
	"golang.org/x/sync/errgroup"

	"farmhand/controller"
	"farmhand/registry/policyapi"
	"farmhand/sim/workload"
	"farmhand/skeleton"
)

// The two farms that get the same bursts at the same moments. Their workers sleep, as
// one does that waits for somebody else: two processors cannot compute for ten.
const (
	byRule   = "bursts-rule"    // scaled by a rule
	byPolicy = "bursts-learned" // scaled by the learned policy
)

// comparison is what the two farms get.
type comparison struct {
	after  time.Duration // since the beginning of the demo
	levels []level
}

// level is a rate and how long it lasts.
type level struct {
	rate    float64 // tasks a second
	seconds float64
}

// With the way through the platform, some 3 ms, the tasks take as long as those of
// burst-cron-150ms, which the policy has learned from.
const (
	sleepMean    = 0.037 // seconds
	sleepCV      = 0.6
	compareEvery = 20 * time.Millisecond // between posts
	compareSeed  = 1
	mostAtCE     = 100 // tasks a second, for five workers
)

// deployCompared makes the two farms. Which learned policy acts is for the registry to
// say, see promote.
func (f *farm) deployCompared(ctx context.Context) error {
	bin, err := filepath.Abs(f.bin)
	if err != nil {
		return err
	}
	for name, policy := range map[string]string{byRule: controller.DefaultPolicy, byPolicy: "learned"} {
		annotations := map[string]string{"farmhand.local.command": filepath.Join(bin, "farmhand") + " bench worker", skeleton.AnnotationPolicy: policy,
			skeleton.AnnotationDeadline: "150ms", skeleton.AnnotationTarget: "0.97", skeleton.AnnotationInterval: "2s"}
		f.settings[name] = annotations
		if err := f.gateway.Deploy(ctx, types.FunctionDeployment{Service: name, Image: "sleeper:latest",
			EnvVars:     map[string]string{"max_inflight": "1", "write_timeout": "65s", "exec_timeout": "60s"},
			Labels:      &map[string]string{skeleton.LabelWorker: "true", "com.openfaas.scale.min": "1", "com.openfaas.scale.max": "64"},
			Annotations: &annotations}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// promote makes a policy file the champion of a farm, as an operator does, and waits
// until the controller goes by it.
func (f *farm) promote(ctx context.Context, name, file string) error {
	var v struct {
		Version string `json:"version"`
	}
	if err := f.command(ctx, &v, "policy", "import", file, "--json"); err != nil {
		return err
	}
	var m policyapi.Moved
	if err := f.command(ctx, &m, "policy", "promote", name, v.Version, "--force", "--reason", "for the demo", "--json"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if v, err := f.look(ctx, name); err == nil && v.Learned != nil && v.Learned.Origin == "champion" {
			fmt.Printf("%s was promoted for %s: %s\n", file, name, v.Learned.Version)
			return nil
		}
		if sleep(ctx, 200*time.Millisecond) != nil {
			return errors.New("the promotion does not reach the controller within a minute")
		}
	}
}

// command runs farmhand on this platform and reads the JSON that it prints.
func (f *farm) command(ctx context.Context, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(f.bin, "farmhand"), append(args, "--state", f.state)...)
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("farmhand %s: %w: %s", strings.Join(args, " "), err, told.String())
	}
	return nil
}

// compare posts the bursts to both farms and waits until all is done.
func (f *farm) compare(ctx context.Context, s *show, c comparison) ([]job, error) {
	if err := sleep(ctx, c.after); err != nil {
		return nil, err
	}
	tasks := c.tasks()
	at := make([]time.Duration, len(tasks.At))
	for i, t := range tasks.At {
		at[i] = time.Duration(t * float64(time.Second))
	}
	s.say("— the same bursts to a rule and to a learned policy: %s —", c)
	names := []string{byRule, byPolicy}
	jobs := make([]job, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		s.begin(name)
		group.Go(func() (err error) {
			if jobs[i], err = f.open(ctx, name, len(at)); err != nil {
				return err
			}
			err = f.offer(ctx, jobs[i], at, compareEvery, func(b *bytes.Buffer, k int) { fmt.Fprintf(b, "%.6f\n", tasks.Service[k]) })
			if err != nil {
				return err
			}
			return f.finish(ctx, jobs[i])
		})
	}
	return jobs, group.Wait()
}

// tasks draws when they come and for how long their workers sleep.
func (c comparison) tasks() *workload.Tasks {
	s := workload.Scenario{Service: workload.LogNormalOf(sleepMean, sleepCV)}
	var l workload.Levels
	for _, x := range c.levels {
		s.Horizon += x.seconds
		l.Levels = append(l.Levels, workload.Level{Rate: x.rate, For: workload.Constant{Value: x.seconds}})
	}
	s.Arrivals = l
	return s.Draw(compareSeed)
}

// atCE is the comparison that plain CE has workers for.
func (c comparison) atCE() comparison {
	low := comparison{after: c.after}
	for _, l := range c.levels {
		low.levels = append(low.levels, level{min(l.rate, mostAtCE), l.seconds})
	}
	return low
}

func (c comparison) String() string {
	var list []string
	for _, l := range c.levels {
		list = append(list, fmt.Sprintf("%g/s for %g s", l.rate, l.seconds))
	}
	return strings.Join(list, ", ")
}
