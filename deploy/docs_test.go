package deploy_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/openfaas/go-sdk/stack"

	"farmhand/skeleton"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The stack files on the page are ones, and their workers are what a controller
// takes for workers, with settings that it understands.
func TestStackFilesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/deploy-openfaas.md")
	if err != nil {
		t.Fatal(err)
	}
	workers := 0
	for _, m := range yamlBlock.FindAllSubmatch(page, -1) {
		file, err := stack.ParseYAMLData(m[1], "", "", false)
		if err != nil || len(file.Functions) == 0 {
			t.Errorf("%v in\n%s", err, m[1])
			continue
		}
		for name, f := range file.Functions {
			if f.Labels == nil || !skeleton.IsWorker(*f.Labels) {
				continue
			}
			workers++
			s, problems := skeleton.ParseSettings(*f.Labels, *f.Annotations)
			if len(problems) > 0 || s.Max != 5 || s.Deadline == 0 || s.Timeout == skeleton.DefaultTimeout {
				t.Errorf("%s: %+v, %v", name, s, problems)
			}
		}
	}
	if workers != 2 {
		t.Errorf("%d workers are on the page", workers)
	}
}
