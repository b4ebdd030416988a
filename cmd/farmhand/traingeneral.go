package main

import (
	"context"
	"fmt"
	"io"

	"farmhand/internal/atomicfile"
	"farmhand/policy/learned"
	"farmhand/train"
)

const (
	// generalSeeds are those of the learners that a general policy is made of.
	generalSeeds = "1-8"
	// mostGeneral is how many learn for a general policy at most: one net holds half of them.
	mostGeneral = 16
)

// merge writes the mean of what the better half has learned.
func (o *trainOptions) merge(ctx context.Context, out, talk io.Writer, c train.Config, runs []*training) error {
	var files [][]byte
	for _, r := range runs {
		files = append(files, r.file)
	}
	tell := func(f *learned.File, trust float64, p train.Point) {
		fmt.Fprintf(talk, "%s, trust %.1f  %6.2f %% on time  %6.2f workers  %4.0f actions/h  short %.2f  cost %.3f\n", f.Seeds(), trust, 100*p.OnTime, p.Workers, p.Actions, p.Short, p.Cost)
	}
	file, p, err := train.Merge(ctx, c, tell, files...)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.out, file, 0o644); err != nil {
		return err
	}
	reached(out, o.out, fmt.Sprintf("of the better half of %d learners", len(runs)), &p)
	return nil
}
