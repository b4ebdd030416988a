package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"farmhand/internal/atomicfile"
	"farmhand/train/paper"
)

type reportPaperOptions struct {
	policies, out, only string
	seeds, episodes     int
}

func reportPaperCmd() *cobra.Command {
	o := reportPaperOptions{policies: filepath.Join("out", "paper"), out: filepath.Join("docs", "paper.md"), seeds: 3, episodes: 1000}
	cmd := &cobra.Command{
		Use: "paper", Short: "Learn policies for the published environment, measure them, and write docs/paper.md", Args: exactly(),
		Long: `Learn policies for FarmPaper-v0, the published environment of a task farm, measure them
on episodes that no training has seen, and write a document. Policies that are in the
folder already are not learned again, so that what was broken off goes on.`,
		Example: "  farmhand report paper --policies out/paper",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.policies, "policies", o.policies, "folder of policy files")
	f.StringVarP(&o.out, "out", "o", o.out, "the document; empty: only learn")
	f.StringVar(&o.only, "only", "", "learn only policies whose file's name is like this, as in dqn-*-1.json")
	f.IntVar(&o.seeds, "seeds", o.seeds, "of training")
	f.IntVar(&o.episodes, "episodes", o.episodes, "unseen, that each policy is measured on")
	return cmd
}

func (o *reportPaperOptions) run(cmd *cobra.Command) error {
	if o.seeds < 1 || o.episodes < 2 {
		return usage("--seeds %d, --episodes %d: want at least 1 and 2", o.seeds, o.episodes)
	}
	if err := o.checkOut(cmd.Flags().Changed("out")); err != nil {
		return err
	}
	if err := o.learn(cmd); err != nil || o.out == "" {
		return err
	}
	d := &paper.Report{Command: "farmhand report paper", Seeds: o.seeds, Episodes: o.episodes}
	d.Machine, _ = whereAndWhat(cmd.Context())
	for _, row := range paper.Plan() {
		m := paper.Measured{Row: row}
		for seed := range o.seeds {
			p, err := paper.Read(o.file(row, seed+1))
			if errors.Is(err, fs.ErrNotExist) && o.only != "" {
				continue
			}
			if err != nil {
				return err
			}
			r, err := paper.Measure(cmd.Context(), p, o.episodes)
			if err != nil {
				return err
			}
			m.Results = append(m.Results, r)
		}
		d.Rows = append(d.Rows, m)
	}
	for _, scenario := range []string{"paper-as-run", "paper-fixed"} {
		for n := 13; n <= 16; n++ {
			r, err := paper.Static(cmd.Context(), scenario, n, o.episodes)
			if err != nil {
				return err
			}
			d.Statics = append(d.Statics, paper.Constant{Scenario: scenario, Workers: n, Result: r})
		}
	}
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		return err
	}
	if err := atomicfile.Write(o.out, b.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d rows on %d episodes each\n", o.out, len(d.Rows)-len(d.Missing()), o.episodes)
	return nil
}

// checkOut before hours of learning: the document's folder by default is that of a
// checkout, and elsewhere nobody has asked for one.
func (o *reportPaperOptions) checkOut(named bool) error {
	if _, err := os.Stat(filepath.Dir(o.out)); !named && errors.Is(err, fs.ErrNotExist) {
		return usage("no folder %s here, as a checkout has: want --out, the name of the document, or --out \"\" to learn only", filepath.Dir(o.out))
	}
	return checkFiles("--out", o.out)
}

func (o *reportPaperOptions) file(row paper.Row, seed int) string {
	return filepath.Join(o.policies, row.File(uint64(seed)))
}

// matches reports whether any policy is meant by --only.
func (o *reportPaperOptions) matches() bool {
	for seed := 1; seed <= o.seeds; seed++ {
		for _, row := range paper.Plan() {
			if ok, err := filepath.Match(o.only, filepath.Base(o.file(row, seed))); ok || err != nil {
				return true // a pattern that is wrong is told of when it is used
			}
		}
	}
	return false
}

// have reports whether a policy is there. One with other settings than the row's is an
// error: it is not what the report would say it is.
func (o *reportPaperOptions) have(row paper.Row, seed int) (bool, error) {
	name := o.file(row, seed)
	p, err := paper.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := row.Check(p, uint64(seed)); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

// learn the policies that are missing.
func (o *reportPaperOptions) learn(cmd *cobra.Command) error {
	if err := os.MkdirAll(o.policies, 0o755); err != nil {
		return err
	}
	if o.only != "" && !o.matches() {
		return usage("--only %q: no policy's file is called so: the first is %s", o.only, filepath.Base(o.file(paper.Plan()[0], 1)))
	}
	for seed := 1; seed <= o.seeds; seed++ {
		for _, row := range paper.Plan() {
			name := o.file(row, seed)
			wanted, err := filepath.Match(o.only, filepath.Base(name))
			if err != nil {
				return usage("--only %q: %v", o.only, err)
			}
			have, err := o.have(row, seed)
			if err != nil {
				return err
			}
			if have || !wanted && o.only != "" {
				continue
			}
			c, err := row.Config(uint64(seed))
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", name)
			if err := trainPaper(cmd, c, name); err != nil {
				return err
			}
		}
	}
	return nil
}
