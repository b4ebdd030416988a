package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"
	"github.com/openfaas/go-sdk/stack"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi/jobclient"
	"farmhand/skeleton/ledger"
)

// Functions in other languages that know nothing of a farm become workers by labels
// and annotations alone: the handlers and the entries of the page, as they stand
// there. Each is scaled, does its tasks, and its refusals become dead letters.
func TestForeignWorkers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/deploy-openfaas.md")
	if err != nil {
		t.Fatal(err)
	}
	handlers := t.TempDir()
	f := start(t, config{up: []string{"--allow-dir", handlers}})
	for _, l := range []struct{ language, program, ending, name, bad, badType string }{
		{"python", "python3", "py", "wordcount", "\xff\xfe", "text/plain"},
		{"js", "node", "js", "wordcount-js", "{}", "application/json"},
	} {
		program, err := exec.LookPath(l.program)
		if err != nil {
			t.Logf("SKIPPED, UNPROVEN: there is no %s", l.program)
			continue
		}
		command := filepath.Join(handlers, l.name)
		serve, err := os.ReadFile("testdata/serve." + l.ending)
		if err != nil {
			t.Fatal(err)
		}
		folder := command + ".d"
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			filepath.Join(folder, "handler."+l.ending): blocks(t, page, l.language)[0],
			filepath.Join(folder, "serve."+l.ending):   string(serve),
			command:                                    fmt.Sprintf("#!/bin/sh\nexec '%s' '%s/serve.%s'\n", program, folder, l.ending),
		} {
			if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		d := ofPage(t, page, l.name)
		annotations := maps.Clone(*d.Annotations)
		annotations["farmhand.local.command"], annotations["farmhand.policy"] = command, "static:n=2"
		annotations["com.openfaas.ready.http.path"] = "/" // there is no watchdog to answer at its own
		d.Annotations = &annotations
		if err := f.gateway.Deploy(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		until(t, patience, l.name+" is a farm of two workers", func() bool {
			v, err := f.client.Farm(t.Context(), l.name)
			return err == nil && v.Ready == 2 && v.Settings.Timeout.Seconds() == 25
		})
		f.count(l.name, l.bad, l.badType)
	}
}

// count has a worker count words in 20 texts, and refuse one.
func (f *farm) count(worker, bad, badType string) {
	f.t.Helper()
	post := func(text, media string) string {
		s, err := f.client.Submit(f.t.Context(), jobclient.Options{"worker": worker}, jobclient.Piece{Type: media, Body: []byte(text)})
		if err != nil {
			f.t.Fatal(err)
		}
		return s.Job.ID
	}
	result := func(job string) skeleton.Result {
		until(f.t, patience, "the job has ended", func() bool { return f.view(job).Pending == 0 })
		page, err := f.store.Farm(worker).Results(f.t.Context(), job, ledger.Query{})
		if err != nil || len(page.Results) != 1 {
			f.t.Fatalf("%d results, %v", len(page.Results), err)
		}
		return page.Results[0]
	}
	for i := range 20 {
		var got struct{ Words, Distinct int }
		r := result(post(strings.Repeat("One two ", i+1), "text/plain"))
		if err := json.Unmarshal(r.Body, &got); err != nil || r.State != skeleton.Done || got.Words != 2*(i+1) || got.Distinct != 2 || r.Attempt != 1 {
			f.t.Errorf("%s: %s %s after %d attempts", worker, r.State, r.Body, r.Attempt)
		}
	}
	if r := result(post(bad, badType)); r.State != skeleton.Dead || r.Status != 422 || !strings.Contains(r.Reason+string(r.Body), "the task is no") {
		f.t.Errorf("%s: %s %d: %s %s", worker, r.State, r.Status, r.Reason, r.Body)
	}
}

// blocks are the code blocks of a page in a language.
func blocks(t *testing.T, page []byte, language string) (list []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(page, -1) {
		list = append(list, string(m[1]))
	}
	if len(list) == 0 {
		t.Fatalf("the page has no %s", language)
	}
	return list
}

// ofPage is the deployment of a function whose stack file stands on a page.
func ofPage(t *testing.T, page []byte, name string) types.FunctionDeployment {
	t.Helper()
	for _, text := range blocks(t, page, "yaml") {
		file, err := stack.ParseYAMLData([]byte(text), "", "", false)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := file.Functions[name]; ok {
			return types.FunctionDeployment{Service: name, Image: f.Image, Labels: f.Labels, Annotations: f.Annotations, EnvVars: f.Environment}
		}
	}
	t.Fatalf("the page has no function %s", name)
	return types.FunctionDeployment{}
}
