package main

import "testing"

// Each benchmark's --tasks is its own: that of footprint is of the large job.
func TestBenchTasks(t *testing.T) {
	bench := benchCmd()
	for name, want := range map[string]string{"queue": "100000", "dispatch": "5000", "footprint": "100000"} {
		cmd, _, err := bench.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		f := cmd.Flags().Lookup("tasks")
		if f == nil || f.DefValue != want {
			t.Errorf("bench %s --tasks: %+v, want %s by default", name, f, want)
		}
	}
}
