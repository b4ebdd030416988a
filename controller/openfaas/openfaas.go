// Package openfaas shows the workers of an OpenFaaS gateway to the controller.
package openfaas

import (
	"context"
	"fmt"

	"github.com/openfaas/faas-provider/types"

	"farmhand/controller"
	"farmhand/gateway"
	"farmhand/skeleton"
)

// Gateway is what is needed of a gateway.Client.
type Gateway interface {
	Functions(ctx context.Context, namespace string) ([]types.FunctionStatus, error)
	Function(ctx context.Context, name string, usage bool) (types.FunctionStatus, error)
	Scale(ctx context.Context, name string, n int) error
}

// Platform is a controller.Platform over a gateway.
type Platform struct {
	gateway   Gateway
	namespace string
}

var _ controller.Platform = (*Platform)(nil)

// New shows the functions of one namespace; "" is the gateway's default.
func New(g Gateway, namespace string) *Platform { return &Platform{gateway: g, namespace: namespace} }

// Workers implements controller.Platform.
func (p *Platform) Workers(ctx context.Context) ([]controller.Worker, error) {
	functions, err := p.gateway.Functions(ctx, p.namespace)
	if err != nil {
		return nil, fmt.Errorf("openfaas: cannot list functions: %w", err)
	}
	var workers []controller.Worker
	for _, f := range functions {
		w := controller.Worker{
			Name:    gateway.Join(f.Name, f.Namespace, gateway.DefaultNamespace),
			Desired: int(f.Replicas), Ready: int(f.AvailableReplicas), Env: f.EnvVars,
		}
		if f.Labels != nil {
			w.Labels = *f.Labels
		}
		if f.Annotations != nil {
			w.Annotations = *f.Annotations
		}
		if skeleton.IsWorker(w.Labels) {
			workers = append(workers, w)
		}
	}
	return workers, nil
}

// Replicas implements controller.Platform.
func (p *Platform) Replicas(ctx context.Context, name string) (desired, ready int, err error) {
	f, err := p.gateway.Function(ctx, name, false)
	if err != nil {
		return 0, 0, fmt.Errorf("openfaas: cannot read back %s: %w", name, err)
	}
	return int(f.Replicas), int(f.AvailableReplicas), nil
}

// Scale implements controller.Platform.
func (p *Platform) Scale(ctx context.Context, name string, n int) error {
	if err := p.gateway.Scale(ctx, name, n); err != nil {
		return fmt.Errorf("openfaas: cannot scale %s to %d: %w", name, n, err)
	}
	return nil
}

// Usage implements controller.Platform. A gateway that does not measure leaves
// usage out.
func (p *Platform) Usage(ctx context.Context, name string) (u controller.Usage, ok bool, err error) {
	f, err := p.gateway.Function(ctx, name, true)
	if err != nil || f.Usage == nil {
		return u, false, err
	}
	return controller.Usage{CPU: f.Usage.CPU / 1000, Memory: f.Usage.TotalMemoryBytes}, true, nil
}
