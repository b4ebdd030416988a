package platform_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"
)

// A function's life through the client that faas-cli is built on.
func TestLifeThroughSDK(t *testing.T) {
	b, ctx := start(t), context.Background()
	d := function("echo")
	if code, err := b.client.Update(ctx, d); code != http.StatusNotFound {
		t.Errorf("update of an unknown function: %d %v, want 404", code, err)
	}
	if list, err := b.client.GetFunctions(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("empty platform lists %v, %v", list, err)
	}
	b.deploy(d)
	list, err := b.client.GetFunctions(ctx, "openfaas-fn")
	if err != nil || len(list) != 1 || list[0].Name != "echo" || list[0].Image != "test:latest" || list[0].Annotations == nil {
		t.Errorf("list: %+v, %v", list, err)
	}
	f, err := b.client.GetFunction(ctx, "echo", "openfaas-fn")
	if err != nil || f.Replicas != 1 || f.AvailableReplicas != 1 || f.Namespace != "openfaas-fn" || f.CreatedAt.IsZero() || f.Usage != nil {
		t.Errorf("status: %+v, %v", f, err)
	}
	req, _ := http.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
	resp, err := b.client.InvokeFunction("echo", "", false, false, req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("invoke: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if list, err = b.client.GetFunctions(ctx, ""); err != nil || list[0].InvocationCount != 1 {
		t.Errorf("invocation count: %+v, %v", list, err)
	}
	if code, err := b.client.Update(ctx, d); code != http.StatusAccepted || err != nil {
		t.Errorf("update: %d %v", code, err)
	}
	if code, err := b.client.Deploy(ctx, d); code != http.StatusAccepted || err != nil {
		t.Errorf("deploy again: %d %v", code, err)
	}
	var raw map[string]map[string]any // arch is a string: it is left out
	_ = json.Unmarshal([]byte(b.system("GET", "/system/info", "").body), &raw)
	if v, _ := raw["provider"]["version"].(map[string]any); raw["provider"]["provider"] != "farmhand" || v["release"] != "dev" || v["sha"] == nil || raw["version"]["release"] != "dev" {
		t.Errorf("info: %v", raw)
	}
	info, err := b.client.GetInfo(ctx)
	if err != nil || info.Provider.Provider != "farmhand" || info.Provider.Orchestration != "processes" || info.Arch == "" {
		t.Errorf("info: %+v, %v", info, err)
	}
	if ns, err := b.client.GetNamespaces(ctx); err != nil || len(ns) != 1 || ns[0] != "openfaas-fn" {
		t.Errorf("namespaces: %v, %v", ns, err)
	}
	if code, err := b.client.CreateNamespace(ctx, types.FunctionNamespace{Name: "mine"}); code != http.StatusMethodNotAllowed {
		t.Errorf("create a namespace: %d %v", code, err)
	}
	if err := b.client.DeleteFunction(ctx, "echo", "openfaas-fn"); err != nil {
		t.Error(err)
	}
	if a := b.call("echo"); a.status != http.StatusNotFound || a.header.Get("X-Call-Id") != "" || !strings.HasPrefix(a.body, "error finding function echo.openfaas-fn: ") {
		t.Errorf("call of a deleted function: %+v", a)
	}
	if err := b.client.DeleteFunction(ctx, "echo", "openfaas-fn"); err == nil {
		t.Error("deleting twice succeeds")
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *platformConfig) { c.AllowDirs = append(c.AllowDirs, dir) })
	b.deploy(function("echo"))
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		text                     string
	}{
		{"no service", "POST", "/system/functions", `{"image":"i"}`, 400, "service"},
		{"no image", "POST", "/system/functions", `{"service":"a"}`, 400, "image"},
		{"labels are strings", "POST", "/system/functions", `{"service":"a","image":"i","labels":{"x":1}}`, 400, "JSON"},
		{"least not a number", "POST", "/system/functions", `{"service":"a","image":"i","labels":{"com.openfaas.scale.min":"-1"}}`, 400, "com.openfaas.scale.min"},
		{"least above most", "POST", "/system/functions", `{"service":"a","image":"i","labels":{"com.openfaas.scale.min":"3","com.openfaas.scale.max":"2"}}`, 400, "com.openfaas.scale.max"},
		{"write below exec", "POST", "/system/functions", `{"service":"a","image":"i","envVars":{"write_timeout":"5s","exec_timeout":"10s"}}`, 400, "write_timeout"},
		{"bad duration", "POST", "/system/functions", `{"service":"a","image":"i","envVars":{"exec_timeout":"soon"}}`, 400, "exec_timeout"},
		{"endless write_timeout", "POST", "/system/functions", `{"service":"a","image":"i","envVars":{"write_timeout":"2562047h"}}`, 400, "write_timeout"},
		{"endless healthcheck_interval", "POST", "/system/functions", `{"service":"a","image":"i","envVars":{"healthcheck_interval":"2562047h"}}`, 400, "healthcheck_interval"},
		{"endless seconds", "POST", "/system/functions", `{"service":"a","image":"i","envVars":{"read_timeout":"86401"}}`, 400, "at most 24h"},
		{"bad max_inflight", "POST", "/system/functions", `{"service":"a","image":"i","envVars":{"max_inflight":"x"}}`, 400, "max_inflight"},
		{"other namespace", "POST", "/system/functions", `{"service":"a","image":"i","namespace":"other"}`, 400, "openfaas-fn"},
		{"list of another namespace", "GET", "/system/functions?namespace=other", "", 400, "openfaas-fn"},
		{"program by relative path", "POST", "/system/functions", `{"service":"a","image":"i","annotations":{"farmhand.local.command":"sleep 1"}}`, 400, "absolute"},
		{"program that cannot be run", "POST", "/system/functions", `{"service":"a","image":"i","annotations":{"farmhand.local.command":"` + dir + `/text 1"}}`, 400, "chmod +x " + dir + "/text"},
		{"program that is a folder", "POST", "/system/functions", `{"service":"a","image":"i","annotations":{"farmhand.local.command":"` + dir + `"}}`, 400, "farmhand.local.command"},
		{"ready path not escaped", "POST", "/system/functions", `{"service":"a","image":"i","annotations":{"com.openfaas.ready.http.path":"/%zz"}}`, 400, "com.openfaas.ready.http.path"},
		{"ready path with a tab", "POST", "/system/functions", `{"service":"a","image":"i","annotations":{"com.openfaas.ready.http.path":"/a\tb"}}`, 400, "com.openfaas.ready.http.path"},
		{"ready path with a space", "POST", "/system/functions", `{"service":"a","image":"i","annotations":{"com.openfaas.ready.http.path":"/a b"}}`, 400, "com.openfaas.ready.http.path"},
		{"ready path of another host", "POST", "/system/functions", `{"service":"a","image":"i","annotations":{"com.openfaas.ready.http.path":"@evil/"}}`, 400, "com.openfaas.ready.http.path"},
		{"large notes", "POST", "/system/functions", `{"service":"a","image":"i","labels":{"x":"` + strings.Repeat("x", 40<<10) + `"},"annotations":{"farmhand.policy":"` + strings.Repeat("y", 25<<10) + `"}}`, 400, "labels and annotations"},
		{"notes within the bound", "POST", "/system/functions", `{"service":"a","image":"i","annotations":{"farmhand.policy":"` + strings.Repeat("y", 60<<10) + `"}}`, 400, "image"},
		{"large body", "POST", "/system/functions", `{"service":"` + strings.Repeat("a", 1<<20) + `"}`, 413, ""},
		{"status of an unknown one", "GET", "/system/function/nope", "", 404, "nope"},
		{"status in another namespace", "GET", "/system/function/echo?namespace=other", "", 404, "other"},
		{"scale an unknown one", "POST", "/system/scale-function/nope", `{"serviceName":"nope","replicas":1}`, 404, "nope"},
		{"scale by GET", "GET", "/system/scale-function/echo", "", 405, ""},
		{"delete an unknown one", "DELETE", "/system/functions", `{"functionName":"nope"}`, 404, "nope"},
		{"delete nothing", "DELETE", "/system/functions", `{}`, 400, "functionName"},
		{"wrong method", "PATCH", "/system/functions", "", 405, ""},
		{"logs of nobody", "GET", "/system/logs", "", 400, "name"},
		{"tail of logs", "GET", "/system/logs?name=echo&tail=ten", "", 422, "whole number"},
		{"huge tail of logs", "GET", "/system/logs?name=echo&tail=99999999999999999999", "", 422, "whole number"},
		{"logs since", "GET", "/system/logs?name=echo&since=5m", "", 422, "2006-01-02T15:04:05Z"},
		{"logs since with a bare plus", "GET", "/system/logs?name=echo&since=2006-01-02T15:04:05+02:00", "", 422, "%2B"},
		{"logs by POST", "POST", "/system/logs?name=echo", "", 405, ""},
		{"elsewhere", "GET", "/nowhere", "", 404, ""},
		{"nothing to see", "GET", "/system/telemetry", "", 404, ""},
		{"metrics elsewhere", "GET", "/metrics", "", 404, ""},
		{"a namespace", "GET", "/system/namespace/openfaas-fn", "", 501, "openfaas-fn"},
		{"no namespace", "GET", "/system/namespace/", "", 501, "openfaas-fn"},
		{"no namespace at all", "GET", "/system/namespace", "", 501, "openfaas-fn"},
		{"create a namespace", "POST", "/system/namespace/", `{"name":"mine"}`, 405, ""},
		{"change a namespace", "PUT", "/system/namespace/mine", `{"name":"mine"}`, 405, ""},
		{"delete a namespace", "DELETE", "/system/namespace/mine", `{"name":"mine"}`, 405, ""},
		{"namespaces by POST", "POST", "/system/namespaces", "", 405, ""},
		{"alert", "POST", "/system/alert", `{"status":"firing","receiver":"scale-up","alerts":[{"status":"firing","labels":{"alertname":"APIHighInvocationRate","function_name":"nope.openfaas-fn"}}]}`, 200, ""},
		{"broken alert", "POST", "/system/alert", `[`, 400, "JSON"},
		{"alert by GET", "GET", "/system/alert", "", 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := b.system(c.method, c.path, c.body)
			if a.status != c.status || !strings.Contains(a.body, c.text) {
				t.Errorf("got %d %.300q, want %d and %q", a.status, a.body, c.status, c.text)
			}
			if json.Valid([]byte(a.body)) && a.body != "" {
				t.Errorf("an error must not be JSON: %q", a.body)
			}
		})
	}
}

func TestNames(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	for _, path := range []string{"/system/function/echo", "/system/function/echo.openfaas-fn", "/system/function/echo?namespace=openfaas-fn"} {
		if a := b.system("GET", path, ""); a.status != 200 {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for path, body := range map[string]string{
		"/system/scale-function/echo":                       `{"serviceName":"echo","replicas":1,"namespace":"openfaas-fn"}`,
		"/system/scale-function/echo.openfaas-fn":           `{"serviceName":"echo","replicas":1}`,
		"/system/scale-function/echo?namespace=openfaas-fn": `{"serviceName":"echo.openfaas-fn","replicas":1}`,
	} {
		if a := b.system("POST", path, body); a.status != 202 {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for path, status := range map[string]int{"echo": 200, "echo/": 200, "echo.openfaas-fn": 200, "echo.openfaas-fn/x": 200, "echo.other": 404, "": 404} {
		if a := b.call(path); a.status != status {
			t.Errorf("/function/%s: %d, want %d", path, a.status, status)
		}
	}
}

func TestCredentials(t *testing.T) {
	b := start(t)
	user, password := b.Credentials()
	for _, path := range []string{"/system/functions", "/system/info", "/system/function/x", "/system/namespaces", "/system/secrets", "/system/logs", "/system/scale-function/x", "/system/namespace/x", "/system/alert", "/system/telemetry", "/system/elsewhere"} {
		for _, c := range [][2]string{{"", ""}, {user, ""}, {user, password + "x"}, {"root", password}} {
			req, _ := http.NewRequest("GET", b.URL()+path, nil)
			if c[0] != "" {
				req.SetBasicAuth(c[0], c[1])
			}
			a := b.do(req)
			if a.status != 401 || a.header.Get("Www-Authenticate") != `Basic realm="Restricted"` || a.body != "invalid credentials" {
				t.Errorf("%s as %q: %+v", path, c[0], a)
			}
		}
	}
	req, _ := http.NewRequest("GET", b.URL()+"/healthz", nil)
	if a := b.do(req); a.status != 200 || a.body != "" {
		t.Errorf("health: %+v", a)
	}
	req, _ = http.NewRequest("POST", b.URL()+"/healthz", nil)
	if a := b.do(req); a.status != 405 {
		t.Errorf("health by POST: %+v", a)
	}
}

// A web page elsewhere reaches neither the API nor a function.
func TestForeignPages(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	for host, status := range map[string]int{"evil.example": 421, "127.0.0.1.evil.example": 421, "localhost": 200, "localhost:1": 200, "LOCALHOST:1": 200, "localhost.evil.example": 421, "[::1]:80": 200, "10.0.0.1:8080": 421} {
		req, _ := http.NewRequest("GET", b.URL()+"/function/echo", nil)
		req.Host = host
		if a := b.do(req); a.status != status {
			t.Errorf("Host %s: %d, want %d", host, a.status, status)
		}
	}
	for _, path := range []string{"/function/echo", "/system/functions"} {
		req, _ := http.NewRequest("POST", b.URL()+path, strings.NewReader("{}"))
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		if a := b.do(req); a.status != 403 {
			t.Errorf("cross-origin POST %s: %d", path, a.status)
		}
	}
}

// What a function finds around it: its deployment's environment and secrets,
// and nothing of the platform's.
func TestFunctionsWorld(t *testing.T) {
	t.Setenv("OF_THE_PLATFORM", "yes")
	b := start(t)
	if err := os.WriteFile(filepath.Join(b.config.State, "secrets", "mine"), []byte("hidden"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := function("echo", "farmhand_redis_url", "redis://elsewhere:1/0", "farmhand_gateway_url", "http://elsewhere", "colour", "green",
		"farmhand_metrics_listen", ":8083")
	d.Secrets = []string{"mine", "farmhand-redis", "basic-auth-password"}
	b.deploy(d)
	var w struct {
		Env     []string
		Secrets map[string]string
	}
	if err := json.Unmarshal([]byte(b.call("echo/world").body), &w); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, v := range w.Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	full, err := b.RedisURL()
	if err != nil {
		t.Fatal(err)
	}
	auth, address, _ := strings.Cut(strings.TrimPrefix(full, "redis://"), "@")
	_, password := b.Credentials()
	if env["farmhand_redis_url"] != "redis://"+address || env["farmhand_gateway_url"] != b.URL() || env["colour"] != "green" ||
		env["farmhand_metrics_listen"] != "127.0.0.1:0" ||
		env["OPENFAAS_NAME"] != "echo" || env["OPENFAAS_NAMESPACE"] != "openfaas-fn" || env["OF_THE_PLATFORM"] != "" || env["farmhand_nats_url"] != "" {
		t.Errorf("environment: %v", env)
	}
	if !strings.HasPrefix(env["HOME"], b.config.State+"/run/") || env["TMPDIR"] != env["HOME"] {
		t.Errorf("folders: %s, %s", env["HOME"], env["TMPDIR"])
	}
	want := map[string]string{"mine": "hidden 600", "farmhand-redis": strings.TrimPrefix(auth, ":") + " 600", "basic-auth-password": password + " 600"}
	if len(w.Secrets) != len(want) {
		t.Errorf("secrets: %d, want %d", len(w.Secrets), len(want))
	}
	for name, value := range want {
		if w.Secrets[name] != value {
			t.Errorf("secret %s is not as expected", name)
		}
	}
}

// A program that was built before is found by the name of its image.
func TestPrebuilt(t *testing.T) {
	dir := t.TempDir()
	self, _ := os.Executable()
	if err := os.Symlink(self, filepath.Join(dir, "worker")); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *platformConfig) { c.Prebuilt = dir })
	for _, image := range []string{"registry.example/team/worker:1.2", "worker", "worker@sha256:0123"} {
		b.deploy(types.FunctionDeployment{Service: "w", Image: image, EnvVars: map[string]string{"test_role": "function"}})
	}
	if a := b.call("w"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

// The stack file says which image is which program; --deploy deploys them all.
func TestStack(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: stack file and --deploy, which build a program; make test runs it")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module stacktest\n\ngo 1.24\n")
	write("functions/hello/main.go", `package main

import ("fmt"; "net/http"; "os")

func main() {
	_ = http.ListenAndServe(os.Getenv("farmhand_listen"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getenv("greeting"), os.Getenv("from_file")) }))
}
`)
	write("functions/broken/main.go", "package main\n\nfunc main() { undefined() }\n")
	write("more.yml", "environment:\n  from_file: '!'\n")
	write("stack.yml", `version: "1.0"
provider: {name: openfaas}
functions:
  hello:
    handler: ./functions/hello
    image: ${NOBODY_SETS_THIS:-example}/hello
    environment: {greeting: hello}
    environment_file: [more.yml]
    labels: {com.openfaas.scale.min: 2}
`)
	t.Setenv("GOFLAGS", "")
	b := start(t, func(c *platformConfig) { c.Stack, c.Deploy = filepath.Join(dir, "stack.yml"), true })
	b.ready("hello")
	if d := b.detail("hello"); d.Replicas != 2 {
		t.Errorf("replicas: %d, want scale.min", d.Replicas)
	}
	if a := b.call("hello"); a.body != "hello!" {
		t.Errorf("%+v", a)
	}
	// The stack file is read anew; what cannot be built is said with the
	// compiler's words.
	write("stack.yml", "provider: {name: openfaas}\nfunctions:\n  broken: {handler: ./functions/broken, image: broken}\n")
	a := b.system("POST", "/system/functions", `{"service":"broken","image":"broken:latest"}`)
	if a.status != 400 || !strings.Contains(a.body, "undefined: undefined") {
		t.Errorf("%+v", a)
	}
}
