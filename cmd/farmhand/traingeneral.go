package main

import (
	"context"
	"fmt"
	"io"

	"farmhand/internal/atomicfile"
	"farmhand/train"
)

const (
	// generalSeeds are those of the learners whose mean a general policy is.
	generalSeeds = "1-8"
	// mostMembers is how many a general policy has at most: one net holds all of theirs.
	mostMembers = 8
)

// merge writes the mean of what all have learned.
func (o *trainOptions) merge(ctx context.Context, out, talk io.Writer, c train.Config, runs []*training) error {
	var files [][]byte
	for _, r := range runs {
		files = append(files, r.file)
	}
	tell := func(trust float64, p train.Point) {
		fmt.Fprintf(talk, "trust %.1f  %6.2f %% on time  %6.2f workers  %4.0f actions/h  short %.2f  cost %.3f\n", trust, 100*p.OnTime, p.Workers, p.Actions, p.Short, p.Cost)
	}
	file, p, err := train.Merge(ctx, c, tell, files...)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.out, file, 0o644); err != nil {
		return err
	}
	reached(out, o.out, fmt.Sprintf("of %d learners", len(runs)), &p)
	return nil
}
