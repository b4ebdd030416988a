package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a command that must succeed, and returns what it prints.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// Stand-ins for the tools: faas-cli keeps secrets in a folder and, as the real one,
// fails to create without saying so by its exit code; kubectl knows a login.
const (
	fakeCLI = `#!/bin/sh
case "$1 $2" in
"secret list")
  [ -z "$AWAY" ] || { echo "Unauthorized access" >&2; exit 1; }
  echo NAME; ls "$STORE" ;;
"secret create")
  [ -z "$FULL" ] || { echo "no room"; exit 0; }
  [ "$4" = --from-file ] && [ ! -e "$STORE/$3" ] && cp "$5" "$STORE/$3" || echo "unexpected: $*" ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
`
	fakeKubectl = `#!/bin/sh
case "$*" in
"--namespace openfaas get secret basic-auth --output jsonpath={.data.basic-auth-user}") printf YWRtaW4= ;;
"--namespace openfaas get secret basic-auth --output jsonpath={.data.basic-auth-password}") printf aHVudGVyMg== ;;
*) exit 1 ;;
esac
`
)

// cluster is a place where secrets.sh runs: with these tools, and its folders.
type cluster struct {
	t          *testing.T
	dir, store string
}

func newCluster(t *testing.T, tools map[string]string) *cluster {
	c := &cluster{t: t, dir: t.TempDir()}
	c.store = filepath.Join(c.dir, "store")
	for _, sub := range []string{"store", "bin"} {
		if err := os.Mkdir(filepath.Join(c.dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range tools {
		if err := os.WriteFile(filepath.Join(c.dir, "bin", name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *cluster) secrets(env ...string) (string, error) {
	cmd := exec.Command("sh", "secrets.sh")
	cmd.Env = append([]string{"PATH=" + filepath.Join(c.dir, "bin") + ":/usr/bin:/bin", "STORE=" + c.store, "SECRETS=" + filepath.Join(c.dir, "mine")}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *cluster) read(path ...string) string {
	c.t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{c.dir}, path...)...))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(raw)
}

// The secrets are made once; what is there stays, and no value is printed.
func TestSecrets(t *testing.T) {
	c := newCluster(t, map[string]string{"faas-cli": fakeCLI, "kubectl": fakeKubectl})
	out, err := c.secrets()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := map[string]string{}
	for _, name := range []string{"farmhand-token", "farmhand-redis", "basic-auth-user", "basic-auth-password"} {
		first[name] = c.read("store", name)
		st, err := os.Stat(filepath.Join(c.dir, "mine", name))
		if err != nil || st.Mode().Perm() != 0o600 || c.read("mine", name) != first[name] {
			t.Errorf("%s: its file: %v, %v", name, st, err)
		}
		if strings.Contains(out, first[name]) && name != "basic-auth-user" {
			t.Errorf("the value of %s is printed: %s", name, out)
		}
	}
	if len(first["farmhand-token"]) != 64 || first["farmhand-token"] == first["farmhand-redis"] || first["basic-auth-user"] != "admin" || first["basic-auth-password"] != "hunter2" {
		t.Errorf("made: %v", first)
	}
	if out, err := c.secrets(); err != nil || strings.Contains(out, "unexpected") || strings.Count(out, "is there\n") != 4 {
		t.Errorf("again: %v\n%s", err, out)
	}
	for name, value := range first {
		if c.read("store", name) != value {
			t.Errorf("%s was changed", name)
		}
	}
}

// A value that the user has put there is taken; a secret that somebody else has made
// is left alone, and it is said that its value is not known here.
func TestSecretsOfTheUsersOwn(t *testing.T) {
	c := newCluster(t, map[string]string{"faas-cli": fakeCLI})
	if err := os.Mkdir(filepath.Join(c.dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"mine/basic-auth-user": "me", "mine/basic-auth-password": "mine", "store/farmhand-token": "theirs"} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := c.secrets()
	if err != nil || c.read("store", "basic-auth-password") != "mine" || c.read("store", "farmhand-token") != "theirs" {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(out, "farmhand-token: is there, but not its value in "+filepath.Join(c.dir, "mine", "farmhand-token")) {
		t.Errorf("not told: %s", out)
	}
}

// What goes wrong is one line that says what to do.
func TestSecretsFail(t *testing.T) {
	for name, test := range map[string]struct {
		tools map[string]string
		env   []string
		want  string
	}{
		"no faas-cli":    {nil, nil, "faas-cli is missing"},
		"not logged in":  {map[string]string{"faas-cli": fakeCLI, "kubectl": fakeKubectl}, []string{"AWAY=1"}, "log in first"},
		"not made":       {map[string]string{"faas-cli": fakeCLI, "kubectl": fakeKubectl}, []string{"FULL=1"}, "farmhand-token was not made"},
		"no such secret": {map[string]string{"faas-cli": fakeCLI, "kubectl": "#!/bin/sh\nexit 1\n"}, nil, "basic-auth-user cannot be read from the cluster: put its value into"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := newCluster(t, test.tools).secrets(test.env...)
			if err == nil || !strings.Contains(out, test.want) {
				t.Errorf("%v, want %q\n%s", err, test.want, out)
			}
		})
	}
}
