package policies

import (
	"os"
	"path/filepath"
	"testing"

	"farmhand/policy/learned"
	"farmhand/train"
)

// What is shipped can run, and is what training makes with the settings of today.
func TestShippedPolicies(t *testing.T) {
	p, err := learned.Load(General)
	if err != nil {
		t.Fatal(err)
	}
	if p.File.Rule != train.GeneralRule || p.File.Fallback != train.GeneralRule {
		t.Errorf("the general policy is advised by %s and falls back to %s: want %s", p.File.Rule, p.File.Fallback, train.GeneralRule)
	}
	files, err := filepath.Glob("*.safetensors")
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := learned.Load(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(p.Evaluation) == 0 {
			t.Errorf("%s does not say what it comes to: want farmhand report learned or general --record", name)
		}
	}
}
