package platform_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What users get wrong is answered with the status that clients of OpenFaaS know,
// and a text that names the way out.
func TestFaults(t *testing.T) {
	var said log
	b := start(t, func(c *platformConfig) { c.Log = said.logger() })
	b.deploy(function("echo"))
	const functions, scale, secrets = "/system/functions", "/system/scale-function/echo", "/system/secrets"
	for _, c := range []struct {
		name, method, path, body, header string // header: "Name: value"
		status                           int
		fix                              string
	}{
		{"unknown image", "POST", functions, `{"service":"a","image":"nobody/knows:1"}`, "", 400, "start the platform with --stack FILE or --prebuilt DIR"},
		{"missing secret", "POST", functions, `{"service":"a","image":"i","secrets":["api-key"]}`, "", 400, `secret "api-key" of a: unknown; create it first, with faas-cli secret create`},
		{"invalid name", "POST", functions, `{"service":"My_Worker","image":"i"}`, "", 400, "want a name of at most 63 lower-case letters, digits and dashes"},
		{"negative replicas", "POST", scale, `{"serviceName":"echo","replicas":-1}`, "", 400, "Error unmarshalling request body: replicas: number -1 is no whole number of 0 or more"},
		{"half a replica", "POST", scale, `{"serviceName":"echo","replicas":1.5}`, "", 400, "whole number of 0 or more"},
		{"malformed scaling", "POST", scale, `{"replicas":`, "", 400, `Error unmarshalling request body: the body is no JSON object (unexpected EOF); want one such as {"serviceName"`},
		{"malformed JSON", "POST", functions, `{"service":"a",`, "", 400, `want one such as {"service":"NAME","image":"IMAGE"}`},
		{"no body", "PUT", functions, ``, "", 400, `want one such as {"service":"NAME","image":"IMAGE"}`},
		{"a list", "DELETE", functions, `[1]`, "", 400, `want one such as {"functionName":"NAME"}`},
		{"a number as a label", "POST", functions, `{"service":"a","image":"i","labels":{"com.openfaas.scale.min":0}}`, "", 400, "number is no text in quotes"},
		{"schedule with seconds", "POST", functions, `{"service":"a","image":"i","annotations":{"topic":"cron-function","schedule":"0 * * * * *"}}`, "", 400, "leave out the seconds"},
		{"schedule that hangs a connector", "PUT", functions, `{"service":"echo","image":"i","annotations":{"topic":"cron-function","schedule":"*/0 * * * *"}}`, "", 400, "want five fields"},
		{"no schedule", "POST", functions, `{"service":"a","image":"i","annotations":{"topic":"cron-function"}}`, "", 400, `add one such as "*/5 * * * *"`},
		{"strange factor", "POST", functions, `{"service":"a","image":"i","labels":{"com.openfaas.scale.factor":"200"}}`, "", 400, "want 0 to 100 percent"},
		{"wrong password", "GET", functions, "", "Authorization: Basic YWRtaW46d3Jvbmc=", 401, "invalid credentials"},
		{"no password", "GET", secrets, "", "Authorization: ", 401, "invalid credentials"},
		{"relative callback", "POST", "/async-function/echo", "", "X-Callback-Url: /function/echo", 202, ""}, // told in the log, see below
		{"callback elsewhere", "POST", "/async-function/echo", "", "X-Callback-Url: http://example.com/done", 400, "start the platform with --callback-allow HOST"},
		{"callback that is no URL", "POST", "/async-function/echo", "", "X-Callback-Url: http://[::1", 400, "missing ']' in host"},
		{"deploy by path", "POST", functions, `{"service":"../../bin/a","image":"i"}`, "", 400, "want a name"},
		{"deploy an image by path", "POST", functions, `{"service":"a","image":"../.."}`, "", 400, "unknown here"},
		{"mount a secret by path", "POST", functions, `{"service":"a","image":"i","secrets":["../credentials/basic-auth-password"]}`, "", 400, "unknown; create it first"},
		{"make a secret by path", "POST", secrets, `{"name":"../credentials/basic-auth-password","value":"v"}`, "", 400, "want at most 253 lower-case letters"},
		{"delete a secret by path", "DELETE", secrets, `{"name":"../credentials/basic-auth-password"}`, "", 400, "want at most 253 lower-case letters"},
		{"delete by path", "DELETE", functions, `{"functionName":"../echo"}`, "", 404, "openfaas-fn"},
		{"status by path", "GET", "/system/function/..%2Fecho", "", "", 404, "openfaas-fn"},
		{"scale by path", "POST", "/system/scale-function/%2e%2e%2fecho", `{"replicas":0}`, "", 404, "openfaas-fn"},
		{"call by path", "POST", "/function/../system/functions", "", "", 404, "error finding function"},
		{"call by escaped path", "POST", "/function/echo%2F..%2F..", "", "", 404, "error finding function"},
		{"queue by path", "POST", "/async-function/../system/functions", "", "", 202, ""}, // as any unknown function
		{"logs by path", "GET", "/system/logs?name=../platform", "", "", 200, ""},         // as of any unknown function
		{"program outside", "POST", functions, `{"service":"a","image":"i","annotations":{"farmhand.local.command":"/bin/sleep 1"}}`, "", 400, "start the platform with --allow-dir /bin"},
		{"program outside by path", "POST", functions, `{"service":"a","image":"i","annotations":{"farmhand.local.command":"` + filepath.Dir(os.Args[0]) + `/../../../../../../../../../bin/sleep 1"}}`, "", 400, "--allow-dir"},
		{"deploy from a web page", "POST", functions, `{"service":"a","image":"i"}`, "Origin: https://example.com", 403, "a web page of another origin may not"},
		{"call from a web page", "POST", "/function/echo", "", "Sec-Fetch-Site: cross-site", 403, "call it from the server of that page"},
		{"queue from a web page", "POST", "/async-function/echo", "", "Sec-Fetch-Site: same-site", 403, "a web page of another origin may not"},
		{"picture in a web page", "GET", "/function/echo", "", "Sec-Fetch-Site: cross-site", 403, "a web page of another origin may not"},
		{"socket of a web page", "GET", "/function/echo", "", "Origin: https://example.com", 403, "a web page of another origin may not"},
		{"address typed into a browser", "GET", "/system/namespace", "", "Sec-Fetch-Site: none", 501, "there is only openfaas-fn"},
		{"two bodies", "POST", functions, `{"service":"a","image":"i"}{}`, "", 400, "there is more after it"},
		{"half a second body", "PUT", functions, `{"service":"echo","image":"i"} x`, "", 400, "the body is no JSON object"},
		{"environment that no process takes", "POST", functions, `{"service":"a","image":"i","envVars":{"A":"` + strings.Repeat("x", 128<<10) + `"}}`, "", 400, "environment of a: 131073 bytes; shorten it to 122880"},
		{"fprocess that no process takes", "POST", functions, `{"service":"a","image":"i","envProcess":"` + strings.Repeat("x", 128<<10) + `"}`, "", 400, "environment of a"},
		{"image with a long name", "POST", functions, `{"service":"a","image":"` + strings.Repeat("x", 2000) + `"}`, "", 400, "its name has 2000 characters"},
		{"10 MB of labels", "POST", functions, `{"service":"a","image":"i","labels":{"l":"` + strings.Repeat("x", 10<<20) + `"}}`, "", 413, "larger than 1048576 bytes"},
		{"name with a dot", "POST", functions, `{"service":"a.b","image":"i"}`, "", 400, "want a name"},
		{"name beyond ASCII", "POST", functions, `{"service":"für","image":"i"}`, "", 400, "want a name"},
		{"name of a megabyte", "POST", functions, `{"service":"` + strings.Repeat("x", 1000<<10) + `","image":"i"}`, "", 400, " …"},
		{"call of nobody", "POST", "/function/nope", "", "", 404, "error finding function nope.openfaas-fn: function nope is not deployed; faas-cli list names those that are"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, b.base+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth(b.user, b.password)
			if name, value, ok := strings.Cut(c.header, ": "); ok {
				req.Header.Set(name, value)
			}
			a := b.do(req)
			if a.status != c.status || !strings.Contains(a.body, c.fix) || c.fix == "" && a.body != "" {
				t.Errorf("got %d %.300q, want %d and %q", a.status, a.body, c.status, c.fix)
			}
			if len(a.body) > 10<<10 {
				t.Errorf("an error of %d bytes", len(a.body))
			}
			if a.body != "" && (json.Valid([]byte(a.body)) || a.status >= 400 && !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain")) {
				t.Errorf("an error must be plain text: %v %q", a.header, a.body)
			}
		})
	}
	if list, err := b.client.GetFunctions(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("deployed in the end: %+v, %v", list, err)
	}
	until(t, "the log tells of the relative callback", func() bool {
		return strings.Contains(said.String(), "X-Callback-Url: the callback is not an absolute http or https URL; it takes an absolute URL")
	})
}
