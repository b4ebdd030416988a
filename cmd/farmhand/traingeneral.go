package main

import (
	"context"
	"io"

	"farmhand/internal/atomicfile"
	"farmhand/train"
)

// generalSeeds are those of the learners whose mean a general policy is.
const generalSeeds = "1-4"

// merge writes the mean of what all have learned.
func (o *trainOptions) merge(ctx context.Context, out io.Writer, c train.Config, runs []*training) error {
	var files [][]byte
	for _, r := range runs {
		files = append(files, r.file)
	}
	file, p, err := train.Merge(ctx, c, files...)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.out, file, 0o644); err != nil {
		return err
	}
	came(out, o.out, &p)
	return nil
}
