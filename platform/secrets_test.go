package platform_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"
)

// world asks the test function what it finds around it.
func (b *bench) world(name string) (env []string, secrets map[string]string) {
	b.t.Helper()
	var w struct {
		Env     []string
		Secrets map[string]string
	}
	if err := json.Unmarshal([]byte(b.call(name+"/world").body), &w); err != nil {
		b.t.Fatal(err)
	}
	return w.Env, w.Secrets
}

// A secret's life through the client that faas-cli is built on.
func TestSecretsThroughSDK(t *testing.T) {
	b, ctx := start(t), context.Background()
	s := types.Secret{Name: "api-key", Namespace: "openfaas-fn", Value: "first"}
	if code, err := b.client.UpdateSecret(ctx, s); code != 404 || err == nil {
		t.Errorf("update of a missing one: %d %v", code, err)
	}
	if code, err := b.client.CreateSecret(ctx, s); code != 201 || err != nil {
		t.Errorf("create: %d %v", code, err)
	}
	if code, err := b.client.CreateSecret(ctx, s); code != 409 || err == nil || !strings.Contains(err.Error(), "api-key") {
		t.Errorf("create again: %d %v", code, err)
	}
	list, err := b.client.GetSecrets(ctx, "openfaas-fn")
	if err != nil || !slices.ContainsFunc(list, func(s types.Secret) bool { return s.Name == "api-key" && s.Namespace == "openfaas-fn" }) {
		t.Errorf("list: %+v, %v", list, err)
	}
	for _, s := range list {
		if s.Value != "" || s.RawValue != nil {
			t.Errorf("the list has the value of %s", s.Name)
		}
	}
	file := filepath.Join(b.config.State, "secrets", "api-key")
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	s.Value, s.RawValue = "", []byte("bytes \x00\xff")
	if code, err := b.client.UpdateSecret(ctx, s); code != 202 || err != nil {
		t.Errorf("update: %d %v", code, err)
	}
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "bytes \x00\xff" {
		t.Errorf("kept as %q, %v", raw, err)
	}
	if err := b.client.DeleteSecret(ctx, "api-key", "openfaas-fn"); err != nil {
		t.Error(err)
	}
	if err := b.client.DeleteSecret(ctx, "api-key", "openfaas-fn"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("delete again: %v", err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a deleted secret is still kept: %v", err)
	}
}

// A deployment may name only what there is, and its function finds what it
// names, as files, and nothing else; also after a change.
func TestSecretsReachFunctions(t *testing.T) {
	var said log
	b := start(t, func(c *platformConfig) { c.Log = said.logger() })
	d := function("echo")
	d.Secrets = []string{"mine"}
	a := b.system("POST", "/system/functions", deployment(d))
	if a.status != 400 || !strings.Contains(a.body, `"mine"`) || !strings.Contains(a.body, "faas-cli secret create") {
		t.Errorf("a missing secret: %+v", a)
	}
	for name, value := range map[string]string{"mine": "value-of-mine", "other": "value-of-other"} {
		if a := b.system("POST", "/system/secrets", fmt.Sprintf(`{"name":%q,"value":%q}`, name, value)); a.status != 201 || a.body != "" {
			t.Fatalf("%+v", a)
		}
	}
	b.deploy(d)
	env, secrets := b.world("echo")
	if len(secrets) != 1 || secrets["mine"] != "value-of-mine 600" {
		t.Errorf("found: %v", secrets)
	}
	if a := b.system("PUT", "/system/secrets", `{"name":"mine","value":"value-of-mine, changed"}`); a.status != 202 || a.body != "" {
		t.Errorf("%+v", a)
	}
	if _, secrets := b.world("echo"); len(secrets) != 1 || secrets["mine"] != "value-of-mine, changed 600" {
		t.Errorf("found after the change: %v", secrets)
	}
	if a := b.system("DELETE", "/system/secrets", `{"name":"mine"}`); a.status != 202 {
		t.Errorf("%+v", a)
	}
	told := strings.Join(env, "\n") + said.String()
	for _, path := range []string{"/system/secrets", "/system/functions", "/system/function/echo?usage=1"} {
		told += b.system("GET", path, "").body
	}
	if strings.Contains(told, "value-of-") || !strings.Contains(said.String(), "a secret that is in use is deleted") {
		t.Errorf("what is told of secrets: %s", told)
	}
}

func TestSecretRefusals(t *testing.T) {
	b := start(t)
	long := strings.Repeat("x", 256<<10)
	for _, c := range []struct {
		method, body string
		status       int
		text         string
	}{
		{"POST", `{"name":"sesame"`, 400, "JSON"},
		{"POST", `{"name":"a","value":5555}`, 400, "JSON"},
		{"POST", `{"name":"a","rawValue":"sesame?"}`, 400, "base64"},
		{"POST", `{"value":"sesame"}`, 400, "name"},
		{"POST", `{"name":"Sesame open","value":"a"}`, 400, "lower-case"},
		{"POST", `{"name":"../sesame","value":"a"}`, 400, "name"},
		{"POST", `{"name":".new-1","value":"a"}`, 400, "name"},
		{"POST", `{"name":"` + strings.Repeat("a", 254) + `","value":"a"}`, 400, "253"},
		{"POST", `{"name":"empty"}`, 400, "rawValue"},
		{"POST", `{"name":"a","value":"sesame","namespace":"other"}`, 400, "openfaas-fn"},
		{"POST", `{"name":"large","value":"` + long + `x"}`, 413, "shorten"},
		{"POST", `{"name":"large","value":"` + strings.Repeat(long, 4) + `"}`, 413, ""},
		{"POST", `{"name":"large","value":"` + long + `"}`, 201, ""},
		{"POST", `{"name":"raw","rawValue":"` + base64.StdEncoding.EncodeToString([]byte(long)) + `"}`, 201, ""},
		{"POST", `{"name":"` + strings.Repeat("a", 253) + `","value":"a"}`, 201, ""},
		{"PUT", `{"name":"large"}`, 400, "empty"},
		{"PUT", `{"name":"none","value":"sesame"}`, 404, "none"},
		{"DELETE", `{"name":"none"}`, 404, "none"},
		{"DELETE", `{}`, 400, "name"},
		{"POST", `{"name":"basic-auth-password","value":"sesame"}`, 409, "exists"},
		{"PUT", `{"name":"basic-auth-password","value":"sesame"}`, 400, "platform's own"},
		{"DELETE", `{"name":"farmhand-token"}`, 400, "platform's own"},
		{"PUT", `{"name":"farmhand-nats","value":"sesame"}`, 400, "platform's own"},
		{"DELETE", `{"name":"farmhand-nats"}`, 400, "platform's own"},
		{"PATCH", "", 405, ""},
	} {
		a := b.system(c.method, "/system/secrets", c.body)
		if a.status != c.status || !strings.Contains(a.body, c.text) {
			t.Errorf("%s %.80s: got %d %.300q, want %d and %q", c.method, c.body, a.status, a.body, c.status, c.text)
		}
		if strings.Contains(strings.ToLower(a.body), "sesame") || strings.Contains(a.body, "5555") || a.body != "" && json.Valid([]byte(a.body)) {
			t.Errorf("%s %.80s: told %.300q", c.method, c.body, a.body)
		}
	}
	if a := b.system("GET", "/system/secrets?namespace=other", ""); a.status != 400 {
		t.Errorf("%+v", a)
	}
	_, password := b.Credentials()
	if a := b.system("GET", "/system/secrets", ""); strings.Contains(a.body, password) || !strings.Contains(a.body, `{"name":"farmhand-redis","namespace":"openfaas-fn"}`) {
		t.Errorf("%+v", a)
	}
}

// Half a secret, of a platform that was killed, is not left lying about.
func TestUnfinishedSecret(t *testing.T) {
	state := t.TempDir()
	if err := os.Mkdir(filepath.Join(state, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "secrets", ".new-123"), []byte("sesa"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, func(c *platformConfig) { c.State = state })
	left, err := filepath.Glob(filepath.Join(state, "secrets", ".new-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// Of several that create one secret, one does.
func TestSecretCreatedOnce(t *testing.T) {
	b := start(t)
	codes := make(chan int, 8)
	for i := range cap(codes) {
		go func() {
			code, _ := b.client.CreateSecret(context.Background(), types.Secret{Name: "one", Value: fmt.Sprint(i)})
			codes <- code
		}()
	}
	count := map[int]int{}
	for range cap(codes) {
		count[<-codes]++
	}
	if count[http.StatusCreated] != 1 || count[http.StatusConflict] != 7 {
		t.Errorf("answers: %v", count)
	}
}
