package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"farmhand/cmd/farmhand/internal/bench"
	"farmhand/evaluate"
	"farmhand/evaluate/report"
	"farmhand/evaluate/shelf"
	"farmhand/internal/atomicfile"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/policy/learned"
	"farmhand/sim"
	"farmhand/sim/workload"
)

// refereeFlags are those of all commands that run policies against one another.
type refereeFlags struct {
	scenarios []string
	own       ownTrace
	jobs      int
	cache     string
	unguarded bool
}

func (f *refereeFlags) add(cmd *cobra.Command) {
	f.own.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.jobs, "jobs", runtime.GOMAXPROCS(0), "runs at the same time")
	flags.StringVar(&f.cache, "cache", "", "file of what was computed before (default: farmhand/evaluations.jsonl in the user's cache folder)")
	flags.BoolVar(&f.unguarded, "unguarded", false, "let no guard limit the policies")
}

func (f *refereeFlags) addScenarios(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.scenarios, "scenario", nil, "scenarios, by comma: built-in names, trace:NAME, .yaml or .csv files")
}

// find the scenarios.
func (f *refereeFlags) find(names []string) ([]*workload.Scenario, error) {
	if len(names) == 0 {
		return nil, usage("no --scenario: want one or more of %s, trace:NAME, or a file", strings.Join(workload.Names(), ", "))
	}
	if err := f.own.check(names...); err != nil {
		return nil, err
	}
	var list []*workload.Scenario
	for _, name := range names {
		s, err := f.own.load(name)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(list, func(o *workload.Scenario) bool { return o.Name == s.Name }); i >= 0 {
			return nil, usage("--scenario: %s and %s are both called %s: want each once, with a name of its own", names[i], name, s.Name)
		}
		list = append(list, s)
	}
	return list, nil
}

// open makes the settings; close ends them.
func (f *refereeFlags) open() (s evaluate.Settings, shut func() error, err error) {
	if f.jobs < 1 {
		return s, nil, usage("--jobs %d: want 1 or more", f.jobs)
	}
	path := f.cache
	if path == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return s, nil, usage("%v: name a file with --cache", err)
		}
		path = filepath.Join(dir, "farmhand", "evaluations.jsonl")
	}
	file, err := shelf.Open(path)
	if err != nil {
		return s, nil, err
	}
	s = evaluate.Settings{Jobs: f.jobs, Store: file}
	if !f.unguarded {
		s.Guard = &guard.Settings{}
	}
	return s, file.Close, nil
}

// checkFiles finds out before hours of work whether its results can be written; a name
// that is empty is none.
func checkFiles(flag string, names ...string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		if err := atomicfile.Check(name); err != nil {
			return usage("%s: %v", flag, err)
		}
	}
	return nil
}

// ticker counts runs on a progress bar.
func ticker(w io.Writer, what string, total int) (func(), *progress) {
	p := newProgress(w, what, total)
	var mu sync.Mutex
	return func() {
		mu.Lock()
		defer mu.Unlock()
		p.add(1)
	}, &p
}

func evalCmd() *cobra.Command {
	var f refereeFlags
	var o evalOptions
	cmd := &cobra.Command{
		Use: "eval", Short: "Run policies against one another on the same simulated work", Args: exactly(),
		Long: `Run policies against one another on the same simulated work.

Each policy serves the same tasks, seed by seed, behind the guard that a live farm
has. A policy named without parameters has those that farmhand calibrate found for
the scenario, where it was calibrated, else its defaults; each row says which. The
best fixed count is calibrated on the way.

--policies takes names of laws, specifications such as staffing:down=15, files that
farmhand calibrate --out or farmhand train wrote, and
  all      all laws
  bounds   regime-oracle, which knows when the load changes, and oracle, which knows
           everything; oracle takes half a minute a seed, and serves five at most`,
		Example: `  farmhand eval --scenario burst-cron-150ms --policies all --seeds 10
  farmhand eval --scenario mine.yaml --policies static,staffing:down=15,bounds --json
  farmhand eval --scenario own.csv --deadline 2s --service 300ms --policies all`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runEval(cmd, &f, &o) },
	}
	f.add(cmd)
	f.addScenarios(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.policies, "policies", "all", "policies, by comma")
	flags.IntVar(&o.seeds, "seeds", 10, "seeds: runs of each policy on each scenario")
	flags.Uint64Var(&o.seed, "seed", evaluate.EvaluationSeeds()[0], "the first of them")
	flags.BoolVar(&o.defaults, "defaults", false, "use the defaults of all laws, calibrated or not")
	flags.StringVar(&o.peer, "peer", "", "calibrated law to compare with at equal lateness; best: the cheapest on target")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	flags.BoolVar(&o.asCSV, "csv", false, "print CSV")
	return cmd
}

type evalOptions struct {
	policies      string
	seeds         int
	seed          uint64
	defaults      bool
	peer          string
	asJSON, asCSV bool
}

func runEval(cmd *cobra.Command, f *refereeFlags, o *evalOptions) error {
	if err := checkSeeds(o.seed, o.seeds); err != nil {
		return err
	}
	if o.asCSV && o.asJSON {
		return usage("--csv and --json: want one of them")
	}
	scenarios, err := f.find(f.scenarios)
	if err != nil {
		return err
	}
	settings, shut, err := f.open()
	if err != nil {
		return err
	}
	defer shut() //nolint:errcheck // every line is written when it is put
	ctx, began := cmd.Context(), time.Now()
	field := &field{calibrator: evaluate.Calibrator{Settings: settings, Budget: evaluate.FullBudget()}, defaults: o.defaults}
	var cases []evaluate.Case
	runs := 0
	for _, s := range scenarios {
		list, err := field.contenders(ctx, s, o.policies)
		if err != nil {
			return err
		}
		cases = append(cases, evaluate.Case{Scenario: s, Contenders: list})
		if o.trained(list) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: some of these seeds are those that calibration chose parameters with, and flatter what it found; --seed %d has others\n", s.Name, evaluate.EvaluationSeeds()[0])
		}
		runs += len(list) * o.seeds
		if o.peer != "" {
			r, err := field.rival(ctx, s, o.peer)
			if err != nil {
				return err
			}
			field.rivals = append(field.rivals, r)
			runs += len(r.members) * o.seeds
		}
	}
	settings.Store = nil // runs take seconds
	var bar *progress
	settings.Ran, bar = ticker(cmd.ErrOrStderr(), "runs", runs)
	entries, err := runCases(ctx, settings, cases, o)
	for i, r := range field.rivals {
		if err == nil {
			err = r.run(ctx, evaluate.Study{Settings: settings, Seeds: o.list()}, scenarios[i])
		}
	}
	bar.finish()
	if err != nil && (ctx.Err() == nil || len(entries) == 0) {
		return err
	}
	if failed := field.print(cmd, entries, o, time.Since(began)); failed != nil {
		return failed
	}
	if err != nil {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted: the rows above are those that were finished")}
	}
	return nil
}

// list are the seeds.
func (o *evalOptions) list() (seeds []uint64) {
	for i := range o.seeds {
		seeds = append(seeds, o.seed+uint64(i))
	}
	return seeds
}

// trained reports whether calibrated contenders are judged with seeds that calibration
// chose them by.
func (o *evalOptions) trained(list []evaluate.Contender) bool {
	calibrated := func(c evaluate.Contender) bool { return c.Origin == evaluate.Calibrated || c.Origin == evaluate.Pooled }
	training := evaluate.TrainingSeeds()
	return o.seed <= training[len(training)-1] && slices.ContainsFunc(list, calibrated)
}

// oracleSeeds are as many as the plan oracle serves at most.
const oracleSeeds = 5

// runCases runs the cases; the plan oracle with fewer seeds than the others.
func runCases(ctx context.Context, settings evaluate.Settings, cases []evaluate.Case, o *evalOptions) ([]evaluate.Entry, error) {
	study := evaluate.Study{Settings: settings, Seeds: o.list()}
	isOracle := func(c evaluate.Contender) bool { return c.Name == "oracle" }
	rest, oracles := slices.Clone(cases), slices.Clone(cases)
	for i := range cases {
		rest[i].Contenders = slices.DeleteFunc(slices.Clone(cases[i].Contenders), isOracle)
		oracles[i].Contenders = slices.DeleteFunc(slices.Clone(cases[i].Contenders), func(c evaluate.Contender) bool { return !isOracle(c) })
	}
	entries, err := study.Run(ctx, rest)
	if err != nil {
		return entries, err
	}
	study.Seeds = study.Seeds[:min(oracleSeeds, o.seeds)]
	more, err := study.Run(ctx, oracles)
	return append(entries, more...), err
}

// field makes the contenders of a scenario.
type field struct {
	calibrator evaluate.Calibrator
	defaults   bool
	untuned    map[string]bool
	rivals     []*rival // by scenario, where there is a --peer
}

// bounds are the oracles.
var bounds = []string{"regime-oracle", "oracle"}

// contenders reads a list of policies for a scenario.
func (f *field) contenders(ctx context.Context, s *workload.Scenario, policies string) (list []evaluate.Contender, err error) {
	for _, item := range splitPolicies(policies) {
		var items []string
		switch item {
		case "all":
			items = peers()
		case "bounds":
			items = bounds
		default:
			items = []string{item}
		}
		for _, name := range items {
			c, err := f.contender(ctx, s, name)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(list, func(o evaluate.Contender) bool { return o.Spec == c.Spec && o.Origin == c.Origin }) {
				list = append(list, c)
			}
		}
	}
	if len(list) == 0 {
		return nil, usage("--policies is empty: want all, bounds, names, specifications or files")
	}
	return list, nil
}

// peers are all laws that decide by themselves.
func peers() (names []string) {
	for _, law := range policy.Laws() {
		if law.Name != "manual" {
			names = append(names, law.Name)
		}
	}
	return names
}

func (f *field) contender(ctx context.Context, s *workload.Scenario, name string) (evaluate.Contender, error) {
	switch filepath.Ext(name) {
	case ".json":
		return calibratedFile(name)
	case policyExt:
		c, err := policyFile(name)
		if err != nil {
			return c, usage("--policies: %v", err)
		}
		return c, nil
	}
	if name == "oracle" {
		return evaluate.Plan(ctx, evaluate.PlanEffort), nil
	}
	if strings.Contains(name, ":") {
		c, err := evaluate.Law(name, evaluate.Given)
		if err != nil {
			return c, usage("--policies: %v", err)
		}
		return c, nil
	}
	family, err := familyOf(name)
	if err != nil {
		return evaluate.Contender{}, usage("--policies: %v, %s, all, bounds, or a .json or .safetensors file", err, strings.Join(bounds, ", "))
	}
	if len(family.Free) == 0 {
		return evaluate.Law(name, evaluate.Default)
	}
	if !f.defaults {
		one := []*workload.Scenario{s}
		known, err := f.calibrator.Known(ctx, family, one, evaluate.FullBudget(), evaluate.QuickBudget())
		if err == nil && known == nil && family.Counted && evaluate.HasDues(s) {
			known, err = f.calibrator.Calibrate(ctx, family, one)
		}
		if err != nil {
			return evaluate.Contender{}, err
		}
		if known != nil {
			return known.Contender(family, known.Best)
		}
	}
	if f.untuned == nil {
		f.untuned = map[string]bool{}
	}
	f.untuned[name] = true
	if name == "regime-oracle" {
		return family.Default()
	}
	return evaluate.Law(name, evaluate.Default)
}

func familyOf(name string) (evaluate.Family, error) {
	if name == "regime-oracle" {
		return evaluate.Regime(), nil
	}
	return evaluate.LawFamily(name)
}

// splitPolicies splits at commas, but not within the parameters of a specification:
// a piece that only sets a parameter belongs to the policy before.
func splitPolicies(text string) (list []string) {
	for piece := range strings.SplitSeq(text, ",") {
		piece = strings.TrimSpace(piece)
		if n := len(list); n > 0 && strings.Contains(piece, "=") && !strings.Contains(piece, ":") && strings.Contains(list[n-1], ":") {
			list[n-1] += "," + piece
		} else if piece != "" {
			list = append(list, piece)
		}
	}
	return list
}

// policyExt ends the names of policy files.
const policyExt = ".safetensors"

// policyFile reads what farmhand train wrote.
func policyFile(path string) (evaluate.Contender, error) {
	p, err := learned.Read(path)
	if err != nil {
		return evaluate.Contender{}, err
	}
	return evaluate.Contender{Name: filepath.Base(path), Spec: p.Name(), Origin: evaluate.PolicyFile, Version: p.Name(),
		Make: func(sim.Config) (policy.Policy, error) { return p, nil }}, nil
}

// calibratedFile reads what calibrate --out wrote.
func calibratedFile(path string) (evaluate.Contender, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return evaluate.Contender{}, usage("--policies: %v", err)
	}
	var c evaluate.Calibration
	if err := json.Unmarshal(raw, &c); err != nil {
		return evaluate.Contender{}, usage("%s: not a file of farmhand calibrate --out: %v", path, err)
	}
	if c.Best.Specification == "" {
		return evaluate.Contender{}, usage("%s: not a file of farmhand calibrate --out: it has no best", path)
	}
	family, err := familyOf(c.Family)
	if err != nil {
		return evaluate.Contender{}, usage("%s: family: %v", path, err)
	}
	contender, err := c.Contender(family, c.Best)
	if err != nil {
		return evaluate.Contender{}, usage("%s: best: %v", path, err)
	}
	return contender, nil
}

// print the rows.
func (f *field) print(cmd *cobra.Command, entries []evaluate.Entry, o *evalOptions, took time.Duration) error {
	out := cmd.OutOrStdout()
	rows := make([]evaluate.Row, len(entries))
	hours := 0.0
	for i := range entries {
		rows[i] = entries[i].Row()
		for _, e := range entries[i].Episodes {
			hours += e.Result.Horizon / 3600
		}
	}
	if n := len(f.untuned); n > 0 && !f.defaults {
		fmt.Fprintf(cmd.ErrOrStderr(), "with their defaults: %d policies; farmhand calibrate finds better parameters\n", n)
	}
	ranks := report.Rank(entries)
	for i := range ranks {
		for _, r := range f.rivals {
			if r.scenario == ranks[i].Scenario {
				ranks[i].Against(r.law, r.front, entries)
			}
		}
	}
	switch {
	case o.asCSV:
		return report.CSV(out, rows)
	case o.asJSON:
		r := bench.NewReport(o.seed)
		r.Figures["eval_s"], r.Figures["eval_simulated_h"] = took.Seconds(), hours
		return printJSON(out, struct {
			Rows    []evaluate.Row `json:"rows"`
			Against []comparison   `json:"against,omitempty"`
			*bench.Report
		}{rows, comparisons(ranks), r})
	}
	return report.Text(out, ranks)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
