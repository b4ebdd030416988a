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
