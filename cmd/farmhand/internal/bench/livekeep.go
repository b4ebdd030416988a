package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"farmhand/telemetry"
)

// A kept run is a folder: run.json, and of the i-th row a block of telemetry, live
// and of the first simulated run.
const runFile = "run.json"

func rowsFile(i int, side string) string { return fmt.Sprintf("%02d-%s.rows", i, side) }

// Keep writes a run to a folder, which is made.
func (r *LiveRun) Keep(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, runFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	for i := range r.Rows {
		for side, rows := range map[string][]telemetry.Row{"live": r.Rows[i].Rows, "sim": r.Rows[i].SimRows} {
			block, err := telemetry.Encode(rows)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, rowsFile(i, side)), block, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadLive reads a run that was kept.
func ReadLive(folder string) (*LiveRun, error) {
	text, err := os.ReadFile(filepath.Join(folder, runFile))
	if err != nil {
		return nil, err
	}
	r := &LiveRun{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(folder, runFile), err)
	}
	for i := range r.Rows {
		for side, rows := range map[string]*[]telemetry.Row{"live": &r.Rows[i].Rows, "sim": &r.Rows[i].SimRows} {
			file := filepath.Join(folder, rowsFile(i, side))
			block, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if *rows, err = telemetry.Decode(block); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return r, nil
}
