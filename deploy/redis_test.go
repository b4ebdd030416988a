package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"farmhand/internal/redistest"
	"farmhand/internal/secret"
	"farmhand/skeleton/ledger/redisledger"
)

// object is what the test looks at of a Kubernetes object.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Data     map[string]string
	Spec     struct {
		Replicas int
		Template struct {
			Spec struct {
				AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
				SecurityContext              struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
				} `yaml:"securityContext"`
				Containers []struct {
					Command, Args   []string
					SecurityContext struct {
						AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
						ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
					} `yaml:"securityContext"`
					Resources struct{ Requests, Limits map[string]string }
				}
				Volumes []struct {
					Name   string
					Secret struct {
						SecretName string `yaml:"secretName"`
					}
				}
			}
		}
		VolumeClaimTemplates []struct {
			Metadata struct{ Name string }
		} `yaml:"volumeClaimTemplates"`
	}
}

func objects(t *testing.T) map[string]object {
	t.Helper()
	raw, err := os.ReadFile("redis.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]object{}
	for d := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.Metadata.Namespace != "openfaas-fn" || o.Metadata.Name == "" {
			t.Errorf("%s %+v", o.Kind, o.Metadata)
		}
		all[o.Kind] = o
	}
}

// The Redis of the cluster is not root, keeps its data, and its password is the
// functions' secret; stack.yml finds it.
func TestRedisOfTheCluster(t *testing.T) {
	all := objects(t)
	set := all["StatefulSet"].Spec
	pod := set.Template.Spec
	if set.Replicas != 1 || len(pod.Containers) != 1 || len(set.VolumeClaimTemplates) != 1 {
		t.Fatalf("%+v", set)
	}
	c := pod.Containers[0]
	if !pod.SecurityContext.RunAsNonRoot || !c.SecurityContext.ReadOnlyRootFilesystem || pod.AutomountServiceAccountToken == nil ||
		*pod.AutomountServiceAccountToken || c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("it may do too much: %+v", pod)
	}
	if c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] != "2Gi" || !strings.Contains(all["ConfigMap"].Data["redis.conf"], "maxmemory 1gb\n") {
		t.Errorf("resources %+v", c.Resources)
	}
	secrets := 0
	for _, v := range pod.Volumes {
		if v.Secret.SecretName == secret.RedisPassword {
			secrets++
		}
	}
	if secrets != 1 {
		t.Errorf("the secret %s is mounted %d times", secret.RedisPassword, secrets)
	}
	stack, err := os.ReadFile("../stack.yml")
	if err != nil {
		t.Fatal(err)
	}
	service := all["Service"].Metadata
	if !bytes.Contains(stack, []byte("redis://"+service.Name+"."+service.Namespace+":6379/0")) {
		t.Errorf("stack.yml knows nothing of the service %+v", service)
	}
	if all["NetworkPolicy"].Kind == "" {
		t.Error("everybody may call")
	}
}

// lines of a configuration, but for the folder, which is the test's own.
func lines(conf string) []string {
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(conf, "dir /data\n", "")), "\n")
}

// A server runs with that configuration; it drops nothing, and what it has
// acknowledged survives its end.
func TestRedisConfiguration(t *testing.T) {
	server := redistest.Start(t, lines(objects(t)["ConfigMap"].Data["redis.conf"])...)
	rdb := redistest.Client(t, server)
	store := redisledger.New(rdb, redisledger.Options{})
	t.Cleanup(store.Close)
	if d, err := store.Durability(context.Background()); d != "process" || err != nil {
		t.Errorf("durability %q, %v", d, err)
	}
	got, err := rdb.ConfigGet(t.Context(), "maxmemory*").Result()
	if err != nil || got["maxmemory-policy"] != "noeviction" || got["maxmemory"] != "1073741824" {
		t.Errorf("%v, %v", got, err)
	}
}

// What the container runs puts the password into the configuration, and the
// server asks for it. (Its folders are put elsewhere.)
func TestRedisAsksForItsPassword(t *testing.T) {
	all := objects(t)
	script := all["StatefulSet"].Spec.Template.Spec.Containers[0].Args[0]
	dir := t.TempDir()
	before, _, ok := strings.Cut(script, "exec redis-server")
	if !ok {
		t.Fatalf("it runs %s", script)
	}
	for path, to := range map[string]string{"/etc/redis": "etc", "/run/secrets/redis": "secrets", "/run/redis": "run"} {
		before = strings.ReplaceAll(before, path+"/", filepath.Join(dir, to)+"/")
		if err := os.Mkdir(filepath.Join(dir, to), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"etc/redis.conf": all["ConfigMap"].Data["redis.conf"], "secrets/farmhand-redis": "s3cret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, nil, "sh", "-ec", before)
	conf, err := os.ReadFile(filepath.Join(dir, "run", "redis.conf"))
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t, lines(string(conf))...)
	rdb := redistest.Client(t, server)
	if err := rdb.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without the password: %v", err)
	}
	if err := rdb.Conn().Auth(t.Context(), "s3cret").Err(); err != nil {
		t.Error(err)
	}
}
