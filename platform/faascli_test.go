package platform_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/logs"
	"github.com/openfaas/faas-provider/types"

	"farmhand/platform"
)

// cli sends requests in the shapes of faas-cli (its proxy package and go-sdk, read
// at c8191b7): the same methods, paths, queries and headers.
type cli struct {
	*bench
	t *testing.T
}

// manage sends a request of a command to the management API. Bodies are JSON.
func (c cli) manage(command, method, path, body string, want int) answer {
	c.t.Helper()
	req, err := http.NewRequest(method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.SetBasicAuth(c.user, c.password)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.send(command, req, want)
}

// send sends a request and compares the status.
func (c cli) send(command string, req *http.Request, want int) answer {
	c.t.Helper()
	req.Header.Set("User-Agent", "openfaas-go-sdk")
	a := c.do(req)
	if a.status != want {
		c.t.Errorf("faas-cli %s: %s %s is answered with %d %.300q, want %d", command, req.Method, req.URL, a.status, a.body, want)
	}
	return a
}

// read reads an answer that must be JSON.
func (c cli) read(a answer, v any) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil || a.header.Get("Content-Type") != "application/json" {
		c.t.Errorf("%v: %s: %.300q", err, a.header, a.body)
	}
}

// invoke calls as faas-cli invoke does: the name with its namespace, no login.
func (c cli) invoke(command, route string, header http.Header, want int) answer {
	c.t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.base+route, strings.NewReader("input"))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain")
	for name, values := range header {
		req.Header[name] = values
	}
	return c.send(command, req, want)
}

// logs reads a stream that ends.
func (c cli) logs(command, query string) (texts []string) {
	c.t.Helper()
	a := c.manage(command, http.MethodGet, "/system/logs?"+query, "", 200)
	for line := range strings.Lines(a.body) {
		var m logs.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Name == "" || m.Instance == "" || m.Timestamp.IsZero() {
			c.t.Errorf("faas-cli %s: %q, %v", command, line, err)
		}
		texts = append(texts, strings.TrimSuffix(m.Text, "\n"))
	}
	return texts
}

// onOwnProcess runs a platform as a process of its own, as users have it.
func onOwnProcess(t *testing.T, change ...func(*platformConfig)) cli {
	c := config(t)
	for _, f := range change {
		f(&c)
	}
	remote(t, c)
	return cli{attach(t, running(t, c.State)), t}
}

// cliDeployment is the body that faas-cli deploy posts for a function of a stack
// file: empty parts are there as well.
func cliDeployment(name, image string, more string) string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"service":%q,"image":%q,"namespace":"","envProcess":"","envVars":{"test_role":"function","write_timeout":"5s","healthcheck_interval":"0"},`+
		`"constraints":null,"labels":{},"annotations":{"farmhand.local.command":%q},"limits":{"memory":"64Mi"},"requests":null,"readOnlyRootFilesystem":false%s}`, name, image, self, more)
}

// Every command of faas-cli that speaks to a gateway, in the order of a user's
// day.
func TestFaasCLI(t *testing.T) {
	c := onOwnProcess(t, allowLocal)
	r := newReceiver(t)
	const functions, status, secrets = "/system/functions", "/system/function/echo?usage=1", "/system/secrets"

	c.manage("login", "GET", functions, "", 200)
	stranger := c
	stranger.bench = &bench{t: c.t, base: c.base, user: c.user, password: "wrong", http: c.http}
	stranger.manage("login with another password", "GET", functions, "", 401)
	health, _ := http.NewRequest("GET", c.base+"/healthz", nil) // without a login
	c.send("ready", health, 200)
	var info struct {
		Provider struct {
			Provider, Orchestration string
			Version                 struct{ SHA, Release string }
		}
		Version struct{ SHA, Release string }
		Arch    string
	}
	c.read(c.manage("version", "GET", "/system/info", "", 200), &info)
	if info.Provider.Provider != "farmhand" || info.Provider.Version.Release == "" || info.Version.Release == "" || info.Arch == "" {
		t.Errorf("version: %+v", info)
	}

	// secret: 200 and 202 are what it takes for success, and 201 of a new one.
	c.manage("secret create", "POST", secrets, `{"name":"api-key","namespace":"","value":"sesame","rawValue":"c2VzYW1l"}`, 201)
	c.manage("secret create, once more", "POST", secrets, `{"name":"api-key","namespace":"","value":"sesame"}`, 409)
	c.manage("secret update", "PUT", secrets, `{"name":"api-key","namespace":"openfaas-fn","value":"sesame 2"}`, 202)
	c.manage("secret update of a missing one", "PUT", secrets, `{"name":"other","value":"sesame"}`, 404)
	for _, query := range []string{"", "?namespace=openfaas-fn"} {
		var list []types.Secret
		c.read(c.manage("secret list", "GET", secrets+query, "", 200), &list)
		if !strings.Contains(fmt.Sprint(list), "api-key openfaas-fn") || strings.Contains(fmt.Sprint(list), "sesame") {
			t.Errorf("secret list: %v", list)
		}
	}

	// deploy: PUT, and POST when that is 404.
	with := `,"secrets":["api-key"]`
	c.manage("deploy", "PUT", functions, cliDeployment("echo", "example/echo:1", with), 404)
	c.manage("deploy", "POST", functions, cliDeployment("echo", "example/echo:1", with), 202)
	c.manage("deploy, once more", "PUT", functions, cliDeployment("echo", "example/echo:1", with), 202)
	c.manage("deploy --update=false", "POST", functions, cliDeployment("echo", "example/echo:1", with), 202)
	c.manage("deploy --replace", "DELETE", functions+"?namespace=openfaas-fn", `{"functionName":"echo"}`, 202)
	c.manage("deploy --replace", "POST", functions, cliDeployment("echo", "example/echo:1", with), 202)

	var f types.FunctionStatus
	until(t, "faas-cli ready echo", func() bool {
		c.read(c.manage("ready echo", "GET", status, "", 200), &f)
		return f.AvailableReplicas > 0
	})
	c.invoke("invoke", "/function/echo.openfaas-fn?q=1", nil, 200)
	var seen echoed
	a := c.invoke("invoke -H", "/function/echo.openfaas-fn", http.Header{"X-Mine": {"yes"}}, 200)
	if err := json.Unmarshal([]byte(a.body), &seen); err != nil || seen.Body != "input" || seen.Header.Get("X-Mine") != "yes" || seen.Header.Get("Content-Type") != "text/plain" || a.header.Get("X-Call-Id") == "" {
		t.Errorf("invoke: %+v, %v", a, err)
	}
	c.invoke("invoke of an unknown one", "/function/nope.openfaas-fn", nil, 404)
	for _, query := range []string{"", "?namespace=openfaas-fn"} {
		var list []types.FunctionStatus
		c.read(c.manage("list", "GET", functions+query, "", 200), &list)
		if len(list) != 1 || list[0].Name != "echo" || list[0].Namespace != "openfaas-fn" || list[0].InvocationCount != 2 || list[0].Replicas != 1 || list[0].Annotations == nil {
			t.Errorf("list: %+v", list)
		}
	}
	c.read(c.manage("describe", "GET", status+"&namespace=openfaas-fn", "", 200), &f)
	if f.Image != "example/echo:1" || f.Secrets[0] != "api-key" || f.Usage == nil || f.Limits == nil || f.Limits.Memory != "64Mi" {
		t.Errorf("describe: %+v", f)
	}
	c.manage("describe of an unknown one", "GET", "/system/function/nope?usage=1", "", 404)

	// invoke --async
	a = c.invoke("invoke --async", "/async-function/echo.openfaas-fn", http.Header{"X-Callback-Url": {r.url + "/done?x=1"}}, 202)
	back := receive(t, "the callback comes", r.got)
	if a.body != "" || back.path != "/done?x=1" || back.header.Get("X-Call-Id") != a.header.Get("X-Call-Id") || back.header.Get("X-Function-Status") != "200" ||
		back.header.Get("X-Function-Name") != "echo.openfaas-fn" || !strings.Contains(back.body, `"Body":"input"`) {
		t.Errorf("invoke --async: %+v, told as %+v", a, back)
	}

	// logs: all of it, the last ones, since, and on and on.
	next, _ := c.follow(t.Context(), "name=echo&namespace=openfaas-fn&tail=-1")
	c.print("echo", "one\ntwo\nthree\n")
	next()
	second := next()
	next()
	for query, want := range map[string]string{
		"name=echo&follow=false&tail=-1": "one two three",
		"name=echo&follow=false&tail=2":  "two three",
		"name=echo&namespace=openfaas-fn&follow=0&since=" + url.QueryEscape(second.Timestamp.Add(-time.Hour).Format(time.RFC3339)): "one two three",
		"name=echo&follow=false&since=" + url.QueryEscape(second.Timestamp.Add(time.Second).Format(time.RFC3339)):                  "",
		"name=echo&follow=false&instance=" + second.Instance:                                                                       "one two three",
		"name=nope&follow=false": "",
	} {
		if got := strings.Join(c.logs("logs", query), " "); got != want {
			t.Errorf("logs ?%s: %q, want %q", query, got, want)
		}
	}
	c.manage("logs with a strange tail", "GET", "/system/logs?name=echo&tail=x", "", 422)

	// scale, of go-sdk and faas-cli alike; a gateway itself names the namespace in
	// the query.
	c.manage("scale", "POST", "/system/scale-function/echo", `{"serviceName":"echo","replicas":2,"namespace":""}`, 202)
	c.manage("scale, by a gateway", "POST", "/system/scale-function/echo?namespace=openfaas-fn", `{"serviceName":"echo","replicas":1}`, 202)
	c.manage("scale of an unknown one", "POST", "/system/scale-function/nope", `{"serviceName":"nope","replicas":1}`, 404)

	var namespaces []string
	c.read(c.manage("namespaces", "GET", "/system/namespaces", "", 200), &namespaces)
	if len(namespaces) != 1 || namespaces[0] != "openfaas-fn" {
		t.Errorf("namespaces: %v", namespaces)
	}
	c.manage("namespace create", "POST", "/system/namespace/", `{"name":"mine","annotations":{"openfaas":"1"},"labels":{"openfaas":"1"}}`, 405)
	c.manage("namespace get", "GET", "/system/namespace/openfaas-fn", "", 501)

	c.manage("secret remove", "DELETE", secrets, `{"name":"api-key","namespace":"openfaas-fn"}`, 202)
	c.manage("secret remove, once more", "DELETE", secrets, `{"name":"api-key","namespace":""}`, 404)
	c.manage("remove", "DELETE", functions, `{"functionName":"echo","namespace":"openfaas-fn"}`, 202)
	c.manage("remove, once more", "DELETE", functions, `{"functionName":"echo"}`, 404)
	if a := c.manage("list", "GET", functions, "", 200); strings.TrimSpace(a.body) != "[]" {
		t.Errorf("list of nothing: %q", a.body)
	}
}

// store deploy sends what the store has of a function. Its image is found among
// the programs that were built before.
func TestFaasCLIStore(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "figlet")); err != nil {
		t.Fatal(err)
	}
	c := onOwnProcess(t, func(p *platform.Config) { p.Prebuilt = dir })
	body := `{"service":"figlet","image":"ghcr.io/openfaas/figlet:latest","namespace":"openfaas-fn","envProcess":"figlet","envVars":{"test_role":"function"},` +
		`"labels":{"com.openfaas.ui.ext":"txt"},"annotations":{"com.openfaas.ui.title":"Figlet"},"limits":null,"requests":null}`
	c.manage("store deploy figlet", "PUT", "/system/functions", body, 404)
	c.manage("store deploy figlet", "POST", "/system/functions", body, 202)
	c.invoke("invoke figlet", "/function/figlet.openfaas-fn", nil, 200)
	a := c.manage("store deploy env", "POST", "/system/functions", strings.ReplaceAll(body, "figlet", "env"), 400)
	if !strings.Contains(a.body, "--prebuilt DIR") {
		t.Errorf("%+v", a)
	}
}

// --ce: what a user of plain CE finds with the same commands.
func TestFaasCLIOnCE(t *testing.T) {
	c := onOwnProcess(t, allowLocal, func(p *platform.Config) { p.CE = true })
	c.manage("deploy", "POST", "/system/functions", cliDeployment("echo", "i", ""), 202)
	for _, n := range [][2]int{{0, 1}, {7, 5}} {
		c.manage("scale", "POST", "/system/scale-function/echo", `{"serviceName":"echo","replicas":`+strconv.Itoa(n[0])+`}`, 202)
		if got := c.detail("echo").Replicas; got != uint64(n[1]) {
			t.Errorf("scaled to %d: %d, want %d", n[0], got, n[1])
		}
	}
}
