package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"farmhand/registry/redisregistry"
	"farmhand/trainer"
	"farmhand/trainer/redisruns"
)

// trainingTime bounds a training of seconds on a machine that is busy with other ones.
const trainingTime = 15 * time.Minute

// trained lets the trainer serve a request that is posted asynchronously, with slices that
// the broker delivers again while they are under way, and a trainer that is killed in the
// middle of some. It ends, as one run, with a verdict on a policy in the registry.
func (f *farm) trained(request trainer.Request) trainer.Run {
	f.t.Helper()
	t, runs := f.t, redisruns.New(f.rdb, nil)
	token := f.read("secrets/farmhand-token")
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the client had no answer and tries again
		f.async("trainer", body, trainer.Key(token).Sign(body))
	}
	get := func() trainer.Run {
		r, err := runs.Get(t.Context(), request.Run)
		if err != nil {
			return trainer.Run{} // not yet
		}
		return r
	}
	kills := 0
	for _, phase := range []trainer.Phase{trainer.Calibrate, trainer.Learn, trainer.Judge} {
		until(t, trainingTime, "the run is at "+string(phase), func() bool {
			r := get()
			return r.Held && r.Progress.Phase == phase || r.State != "" && r.State != trainer.Running
		})
		if r := get(); r.State != trainer.Running {
			break
		}
		killed := f.signal("trainer", syscall.SIGKILL)
		before := get().Slice
		kills++
		until(t, trainingTime, "the run goes on after a kill", func() bool { r := get(); return r.Slice > before || r.State != trainer.Running })
		if alive(killed) {
			t.Errorf("process %d lives on", killed)
		}
	}
	until(t, trainingTime, "the run is over", func() bool { return get().State != trainer.Running })
	r := get()
	if r.State != trainer.Done || r.Progress.Verdict == nil || kills == 0 {
		t.Fatalf("the run is %s after %d kills: %s; %+v", r.State, kills, r.Error, r.Progress)
	}
	t.Logf("%d slices, %.0f s of work, %d kills: %s", r.Slice, r.Progress.Spent, kills, r.Progress.Verdict.Outcome)
	list, err := runs.List(t.Context())
	if err != nil || len(slices.DeleteFunc(list, func(r trainer.Run) bool { return r.Request.Schedule })) != 1 {
		t.Errorf("%d runs, %v", len(list), err)
	}
	versions, err := redisregistry.New(f.rdb, redisregistry.Limits{}).List(t.Context())
	if err != nil || len(versions) != 1 || versions[0].Version != r.Progress.Version || versions[0].Verdicts["worker"].Outcome != r.Progress.Verdict.Outcome {
		t.Errorf("the registry has %+v, %v", versions, err)
	}
	f.unbrokered(token)
	if out, _ := f.farmhand("train", "--run", request.Run); !strings.Contains(out, string(r.Progress.Verdict.Outcome)) {
		t.Errorf("farmhand train --run:\n%s", out)
	}
	return r
}

// async posts to a function through the broker.
func (f *farm) async(function string, body []byte, signature string) {
	f.t.Helper()
	req, err := http.NewRequest(http.MethodPost, f.url+"/async-function/"+function, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set(trainer.HeaderSignature, signature)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		f.t.Fatalf("status %d", resp.StatusCode)
	}
}

// unbrokered checks that the token is in no file of the broker, which has the request.
func (f *farm) unbrokered(token string) {
	f.t.Helper()
	found := false
	err := filepath.WalkDir(f.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // files come and go
		}
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte(trainer.HeaderSignature)) {
			return nil
		}
		found = true
		for _, text := range encodings(token) {
			if bytes.Contains(raw, []byte(text)) {
				f.t.Errorf("%s has the token", path)
			}
		}
		return nil
	})
	if err != nil || !found {
		f.t.Errorf("no file of the broker has the request, %v", err)
	}
}

// encodings are a text, and what it looks like in the middle of base64.
func encodings(text string) []string {
	list := []string{text}
	for shift := range 3 {
		coded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + text))
		list = append(list, coded[(8*shift+5)/6:len(coded)-2])
	}
	return list
}
