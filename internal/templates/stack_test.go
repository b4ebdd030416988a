package templates_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/go-sdk/stack"
)

// upstreamTimeout is the gateway's, as OpenFaaS and the local platform have it.
const upstreamTimeout = time.Minute

// What stack.yml says of its functions agrees with itself and with OpenFaaS.
func TestStackFileAgrees(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "stack.yml"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := stack.ParseYAMLData(text, "", "", false)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range plain.Functions {
		labels, annotations := *f.Labels, *f.Annotations
		durations := func(m map[string]string, key string) time.Duration {
			d, err := time.ParseDuration(m[key])
			if err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
			}
			return d
		}
		exec, read, write := durations(f.Environment, "exec_timeout"), durations(f.Environment, "read_timeout"), durations(f.Environment, "write_timeout")
		if exec > upstreamTimeout || exec >= read || exec >= write {
			t.Errorf("%s: want exec_timeout ≤ upstream_timeout %s and < read_timeout, write_timeout; have %s, %s, %s", name, upstreamTimeout, exec, read, write)
		}
		if !strings.HasPrefix(f.Image, "${REGISTRY:-") || !strings.HasSuffix(f.Image, "/farmhand-"+name+":${TAG:-latest}") {
			t.Errorf("%s: image %s", name, f.Image)
		}
		if f.Language != "farm-function" || f.Handler != "./functions/"+name {
			t.Errorf("%s: lang %s, handler %s", name, f.Language, f.Handler)
		}
		if f.Limits == nil || f.Requests == nil || f.Limits.Memory == "" || f.Requests.CPU == "" || !f.ReadOnlyRootFilesystem {
			t.Errorf("%s: want limits, requests and readonly_root_filesystem", name)
		}
		if labels["com.openfaas.scale.factor"] != "0" {
			t.Errorf("%s: a second scaler interferes", name)
		}
		if annotations["com.openfaas.health.http.path"] != "/_/health" {
			t.Errorf("%s: no health path", name)
		}
		ready := annotations["com.openfaas.ready.http.path"]
		if labels["farmhand.worker"] != "true" {
			if ready != "/_/ready" || len(f.Secrets) == 0 || labels["com.openfaas.scale.zero"] != "false" {
				t.Errorf("%s: ready path %q, secrets %v; want it always there", name, ready, f.Secrets)
			}
			continue
		}
		if f.Environment["max_inflight"] != annotations["farmhand.slots"] || f.Environment["max_inflight"] != "" && ready != "/_/health" {
			t.Errorf("%s: max_inflight %s, farmhand.slots %s, ready path %q", name, f.Environment["max_inflight"], annotations["farmhand.slots"], ready)
		}
		if d := durations(annotations, "farmhand.timeout"); d > exec || d > write {
			t.Errorf("%s: farmhand.timeout %s is longer than exec_timeout or write_timeout", name, d)
		}
	}
}
