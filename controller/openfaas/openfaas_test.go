package openfaas_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openfaas/faas-provider/types"

	"farmhand/controller"
	"farmhand/controller/openfaas"
	"farmhand/gateway"
)

// The client of a gateway is what the platform needs.
var _ openfaas.Gateway = (*gateway.Client)(nil)

// faas is a gateway with functions, or one that fails.
type faas struct {
	functions []types.FunctionStatus
	err       error
	asked     []any
}

func (g *faas) Functions(_ context.Context, namespace string) ([]types.FunctionStatus, error) {
	g.asked = append(g.asked, namespace)
	return g.functions, g.err
}

func (g *faas) Function(_ context.Context, name string, usage bool) (types.FunctionStatus, error) {
	g.asked = append(g.asked, name, usage)
	if g.err != nil {
		return types.FunctionStatus{}, g.err
	}
	return g.functions[0], nil
}

func (g *faas) Scale(_ context.Context, name string, n int) error {
	g.asked = append(g.asked, name, n)
	return g.err
}

func TestWorkers(t *testing.T) {
	worker := map[string]string{"farmhand.worker": "true"}
	g := &faas{functions: []types.FunctionStatus{
		{Name: "f", Namespace: "openfaas-fn", Replicas: 4, AvailableReplicas: 3, Labels: &worker, Annotations: &map[string]string{"farmhand.slots": "2"}, EnvVars: map[string]string{"exec_timeout": "60s"}},
		{Name: "g", Namespace: "dev", Labels: &worker},
		{Name: "dispatcher", Namespace: "openfaas-fn", Labels: &map[string]string{"farmhand.worker": "false"}},
		{Name: "other", Replicas: 1},
	}}
	got, err := openfaas.New(g, "dev").Workers(t.Context())
	want := []controller.Worker{
		{Name: "f", Desired: 4, Ready: 3, Labels: worker, Annotations: map[string]string{"farmhand.slots": "2"}, Env: map[string]string{"exec_timeout": "60s"}},
		{Name: "g.dev", Labels: worker},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	if d := cmp.Diff([]any{"dev"}, g.asked); d != "" {
		t.Error(d)
	}
}

// None is an answer; no answer is an error.
func TestNoWorkers(t *testing.T) {
	if got, err := openfaas.New(&faas{}, "").Workers(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := openfaas.New(&faas{err: errors.New("502")}, "").Workers(t.Context()); got != nil || err == nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReplicasAndScale(t *testing.T) {
	g := &faas{functions: []types.FunctionStatus{{Replicas: 5, AvailableReplicas: 2}}}
	p := openfaas.New(g, "")
	desired, ready, err := p.Replicas(t.Context(), "f.dev")
	if desired != 5 || ready != 2 || err != nil {
		t.Errorf("%d, %d, %v", desired, ready, err)
	}
	if err := p.Scale(t.Context(), "f.dev", 0); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]any{"f.dev", false, "f.dev", 0}, g.asked); d != "" {
		t.Error(d)
	}
	g.err = errors.New("429 Too Many Requests")
	if err := p.Scale(t.Context(), "f", 3); !errors.Is(err, g.err) || !strings.Contains(err.Error(), "f to 3") {
		t.Error(err)
	}
	if _, _, err := p.Replicas(t.Context(), "f"); !errors.Is(err, g.err) {
		t.Error(err)
	}
}

// What is not measured is unknown.
func TestUsage(t *testing.T) {
	g := &faas{functions: []types.FunctionStatus{{}}}
	p := openfaas.New(g, "")
	if _, ok, err := p.Usage(t.Context(), "f"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	g.functions[0].Usage = &types.FunctionUsage{CPU: 1500, TotalMemoryBytes: 64 << 20}
	u, ok, err := p.Usage(t.Context(), "f")
	if !ok || err != nil || u != (controller.Usage{CPU: 1.5, Memory: 64 << 20}) {
		t.Errorf("%+v, %v, %v", u, ok, err)
	}
	g.err = errors.New("away")
	if _, ok, err := p.Usage(t.Context(), "f"); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
}
