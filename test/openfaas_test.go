package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/logs"
	"github.com/openfaas/faas-provider/types"
	sdk "github.com/openfaas/go-sdk"
	"github.com/openfaas/go-sdk/stack"

	"farmhand/platform"
	"farmhand/skeleton/jobapi"
)

// user is somebody who knows OpenFaaS and its Go client, and nothing of the
// platform but its address and password.
type user struct {
	t     *testing.T
	state string
	sdk   *sdk.Client
}

// stackUser starts a platform that knows the programs of the suite's stack file
// and has deployed nothing.
func stackUser(t *testing.T) *user {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("SKIPPED, UNPROVEN: redis-server is not installed (apt-get install redis-server)")
	}
	programs := t.TempDir()
	for _, name := range []string{"montecarlo", "thumbnail"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(programs, name), ".")
		cmd.Dir, cmd.Env = filepath.Join("..", "functions", name), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, name := range []string{"dispatcher", "controller"} {
		if err := os.Symlink(filepath.Join(bin, "functions", name), filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	u := &user{t: t, state: filepath.Join(t.TempDir(), "state")}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(u.state, "logs", "platform.log"))
			t.Logf("platform.log ends with\n%s", log[max(0, len(log)-4000):])
		}
		u.farmhand("down")
	})
	u.farmhand("up", "-d", "--stack", filepath.Join("..", "stack.yml"), "--prebuilt", programs, "--listen", "127.0.0.1:0", "--metrics-listen", "none",
		"--cold-start", "none", "--callback-allow", "127.0.0.1")
	address, err := url.Parse(u.read("gateway.url"))
	if err != nil {
		t.Fatal(err)
	}
	u.sdk = sdk.NewClient(address, &sdk.BasicAuth{Username: u.read("credentials/basic-auth-user"), Password: u.read("credentials/basic-auth-password")}, http.DefaultClient)
	return u
}

// farmhand runs a command on this user's platform.
func (u *user) farmhand(args ...string) string {
	u.t.Helper()
	out, err := exec.Command(filepath.Join(bin, "farmhand"), append(args, "--state", u.state)...).CombinedOutput()
	if err != nil {
		u.t.Errorf("farmhand %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

func (u *user) read(name string) string {
	u.t.Helper()
	raw, err := os.ReadFile(filepath.Join(u.state, name))
	if err != nil {
		u.t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// deploy is what faas-cli deploy does with a function: PUT, then POST.
func (u *user) deploy(d types.FunctionDeployment) {
	u.t.Helper()
	code, err := u.sdk.Update(u.t.Context(), d)
	if code == http.StatusNotFound {
		code, err = u.sdk.Deploy(u.t.Context(), d)
	}
	if err != nil || code != http.StatusAccepted {
		u.t.Fatalf("deploy %s: %d %v", d.Service, code, err)
	}
}

// ready is what faas-cli ready does: it waits.
func (u *user) ready(name string) {
	u.t.Helper()
	until(u.t, patience, name+" is ready", func() bool {
		f, err := u.sdk.GetFunction(u.t.Context(), name, sdk.DefaultNamespace)
		return err == nil && f.AvailableReplicas > 0
	})
}

// invoke calls a function, and returns what it says.
func (u *user) invoke(name string, async bool, body string, header ...string) (status int, answer []byte) {
	u.t.Helper()
	route, query, _ := strings.Cut(name, "?")
	req, err := http.NewRequestWithContext(u.t.Context(), http.MethodPost, "/?"+query, strings.NewReader(body))
	if err != nil {
		u.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := u.sdk.InvokeFunction(route, "", async, false, req)
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		u.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

const option = `{"spot":100,"strike":105,"rate":0.02,"volatility":0.25,"maturity":1,"kind":"call","paths":10000,"seed":7}`

// A program that knows OpenFaaS' Go client deploys the stack file, runs a job,
// scales, reads logs, makes an asynchronous call and a scheduled one.
func TestStackThroughSDK(t *testing.T) {
	t.Parallel()
	u, ctx := stackUser(t), t.Context()
	services, err := stack.ParseYAMLFile(filepath.Join("..", "stack.yml"), "", "", true)
	if err != nil {
		t.Fatal(err)
	}
	deployments := map[string]types.FunctionDeployment{}
	for name, f := range services.Functions {
		d := types.FunctionDeployment{Service: name, Image: f.Image, Namespace: sdk.DefaultNamespace, EnvProcess: f.FProcess, EnvVars: f.Environment,
			Secrets: f.Secrets, Labels: f.Labels, Annotations: f.Annotations, ReadOnlyRootFilesystem: f.ReadOnlyRootFilesystem}
		u.deploy(d)
		deployments[name] = d
	}
	for name := range deployments {
		u.ready(name)
	}

	// A job, by the route of clients that have no sub-paths.
	bearer := "Bearer " + u.read("secrets/farmhand-token")
	var s jobapi.Submitted
	until(t, patience, "the job is taken", func() bool { // the controller lists the workers first
		status, answer := u.invoke("dispatcher?worker=montecarlo&wait=30s", false, option+"\n"+option, "Authorization", bearer, "Content-Type", "application/x-ndjson")
		return status == http.StatusOK && json.Unmarshal(answer, &s) == nil
	})
	if s.Job.Done != 2 || len(s.Results) != 2 || !strings.Contains(string(s.Results[0].Body), `"price"`) {
		t.Errorf("%+v", s)
	}

	if err := u.sdk.ScaleFunction(ctx, "thumbnail", sdk.DefaultNamespace, 3); err != nil {
		t.Error(err)
	}
	if f, err := u.sdk.GetFunction(ctx, "thumbnail", sdk.DefaultNamespace); err != nil || f.Replicas != 3 {
		t.Errorf("scaled to 3: %+v, %v", f, err)
	}

	following, enough := context.WithCancel(ctx)
	stream, err := u.sdk.GetLogs(following, "dispatcher", sdk.DefaultNamespace, true, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := <-stream; m.Name != "dispatcher" || m.Text == "" {
		t.Errorf("%+v", m)
	}
	enough()
	for m := range stream {
		if (m == logs.Message{}) {
			t.Error("an empty message")
		}
	}

	told := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- fmt.Sprintf("%s %s %s", r.Header.Get("X-Function-Name"), r.Header.Get("X-Function-Status"), body)
	}))
	defer receiver.Close()
	if status, answer := u.invoke("montecarlo", true, option, "X-Callback-Url", receiver.URL, "Content-Type", "application/json"); status != http.StatusAccepted || len(answer) > 0 {
		t.Errorf("%d %s", status, answer)
	}
	select {
	case text := <-told:
		if !strings.HasPrefix(text, `montecarlo.openfaas-fn 200 {"price":`) {
			t.Errorf("told %s", text)
		}
	case <-time.After(patience):
		t.Fatal("the callback does not come")
	}

	// The dispatcher takes the empty body of a schedule for what it is.
	for _, async := range []string{"false", "true"} {
		d := deployments["dispatcher"]
		annotations := map[string]string{"topic": "cron-function", "schedule": "@every 1s", "async": async}
		d.Annotations = &annotations
		u.deploy(d)
		want := map[string]string{"false": "@every 1s; next run ", "true": "@every 1s; queued; next run "}[async]
		until(t, patience, "a scheduled run", func() bool {
			status := u.farmhand("status")
			return strings.Contains(status, "schedule    dispatcher           "+want) && strings.Contains(status, map[string]string{"false": " got 200", "true": " got 202"}[async])
		})
	}
	for _, f := range deployments {
		if err := u.sdk.DeleteFunction(ctx, f.Service, sdk.DefaultNamespace); err != nil {
			t.Error(err)
		}
	}
	if list, err := u.sdk.GetFunctions(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("left: %+v, %v", list, err)
	}
}

// Jobs that are posted by the asynchronous route while the dispatcher stands still
// are accepted, and told to wait; the platform is killed, and they run after its
// restart (P51). Each is there once, since its key is.
func TestAcceptedCallsOutliveThePlatform(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	const jobs, atOnce = 20, platform.DefaultAsyncInflight
	f.signal("dispatcher", syscall.SIGSTOP)
	for i := range jobs {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/async-function/dispatcher?worker=worker", strings.NewReader(`{"answer":"yes"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+f.read("secrets/farmhand-token"))
		req.Header.Set("Idempotency-Key", fmt.Sprint("job ", i))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted || resp.Header.Get("X-Call-Id") == "" {
			t.Fatalf("%s %v", resp.Status, resp.Header)
		}
	}
	info, err := platform.Running(f.state)
	if err != nil {
		t.Fatal(err)
	}
	until(t, patience, "calls run and wait", func() bool {
		calls, err := platform.Async(t.Context(), info)
		return err == nil && *calls == platform.AsyncCalls{Waiting: jobs - atOnce, Running: atOnce, AtOnce: atOnce}
	})
	if err := syscall.Kill(info.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, patience, "no process is left", func() bool { return len(f.processes("")) == 0 })
	f.up()
	f.connect(f.url + "/function/dispatcher")
	f.ready(4)
	until(t, patience, "all jobs are done", func() bool {
		list, err := f.client.Jobs(t.Context(), "worker", "", 100)
		done := 0
		for _, j := range list.Jobs {
			done += j.Done
		}
		return err == nil && done >= jobs
	})
	if list, err := f.client.Jobs(t.Context(), "worker", "", 100); err != nil || len(list.Jobs) != jobs {
		t.Errorf("%d jobs, %v; want %d", len(list.Jobs), err, jobs)
	}
}
