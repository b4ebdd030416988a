package platform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/openfaas/faas-provider/types"
	"github.com/openfaas/go-sdk/stack"
)

var errStopping = refuse(http.StatusServiceUnavailable, "the platform stops")

// list returns the functions by name.
func (p *Platform) list() []*function {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*function, 0, len(p.functions))
	for _, name := range slices.Sorted(maps.Keys(p.functions)) {
		list = append(list, p.functions[name])
	}
	return list
}

// find returns a function by its name, with or without the namespace.
func (p *Platform) find(name, namespace string) (*function, error) {
	if err := checkNamespace(namespace, http.StatusNotFound); err != nil {
		return nil, err
	}
	short, err := bareName(name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.functions[short]; f != nil {
		return f, nil
	}
	if r, ok := p.parked[short]; ok {
		return nil, refuse(http.StatusNotFound, "function %s is deployed, but the last start could not bring it back: %s; mend that and start the platform again, or deploy the function anew, or remove it", short, r.Unrestored)
	}
	return nil, refuse(http.StatusNotFound, "function %s is not deployed; faas-cli list names those that are", short)
}

// apply deploys or updates a function.
func (p *Platform) apply(ctx context.Context, d types.FunctionDeployment, mustExist bool) error {
	p.deploys.Lock()
	defer p.deploys.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	f, err := p.find(d.Service, "")
	if mustExist && err != nil {
		if _, parked := p.notBack(d.Service); !parked {
			return err
		}
	}
	s, err := p.prepare(ctx, d)
	if p.ctx.Err() != nil {
		return errStopping
	}
	if err != nil {
		return err
	}
	if f != nil {
		f.update(s)
		p.schedules.set(f.name, s.plan)
	} else {
		f = p.add(s, p.clamp(s.min), time.Now())
	}
	p.log.Info("deployed", "function", f.name, "image", s.Image)
	for _, w := range p.warnings(s) {
		p.log.Warn(w, "function", f.name)
	}
	return p.save()
}

// prepare checks a deployment as a whole.
func (p *Platform) prepare(ctx context.Context, d types.FunctionDeployment) (*spec, error) {
	s, err := checkDeployment(d, p.config.clock.Now())
	if err != nil {
		return nil, err
	}
	if err := p.checkSecrets(s); err != nil {
		return nil, err
	}
	if s.plan != nil && s.plan.async && p.async == nil {
		return nil, badRequest("annotation %s of %s: this platform takes no asynchronous calls; leave the annotation out, or start the platform without --nats-listen none", annAsync, s.Service)
	}
	return s, p.images.resolve(ctx, s)
}

func (p *Platform) add(s *spec, desired int, created time.Time) *function {
	f := newFunction(p, s, desired, created)
	p.mu.Lock()
	p.functions[f.name] = f
	delete(p.parked, f.name)
	p.mu.Unlock()
	p.schedules.set(f.name, s.plan)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reconcile()
	return f
}

func (p *Platform) remove(name string) error {
	p.deploys.Lock()
	defer p.deploys.Unlock()
	if r, parked := p.notBack(name); parked {
		return p.removeNotBack(r.Deployment.Service)
	}
	f, err := p.find(name, "")
	if err != nil {
		return err
	}
	p.mu.Lock()
	delete(p.functions, f.name)
	p.mu.Unlock()
	p.schedules.set(f.name, nil)
	f.close()
	p.metrics.forget(f.name + "." + Namespace)
	p.log.Info("removed", "function", f.name)
	return p.save()
}

func (p *Platform) scale(name string, replicas uint64) error {
	f, err := p.find(name, "")
	if err != nil {
		return err
	}
	if replicas > math.MaxInt32 { // Kubernetes has no larger number
		return badRequest("replicas: %d is no number of replicas; want 0 or more", replicas)
	}
	n := int(replicas)
	if now := f.scale(n); now != n {
		p.log.Warn("a scale call was clamped", "function", f.name, "asked", n, "replicas", now)
	}
	p.saveSoon()
	return nil
}

// deployStack deploys every function of the stack file, those without secrets
// first: what manages workers finds them all there.
func (p *Platform) deployStack(ctx context.Context) error {
	services, err := p.images.services()
	if err != nil {
		return err
	}
	var errs []error
	names := slices.Sorted(maps.Keys(services.Functions))
	slices.SortStableFunc(names, func(a, b string) int {
		return len(services.Functions[a].Secrets) - len(services.Functions[b].Secrets)
	})
	for _, name := range names {
		d, err := deployment(name, services.Functions[name], filepath.Dir(p.config.Stack))
		if err == nil {
			err = p.apply(ctx, d, false)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("deploy %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// deployment turns an entry of a stack file into what faas-cli would post.
func deployment(name string, f stack.Function, dir string) (types.FunctionDeployment, error) {
	d := types.FunctionDeployment{
		Service: name, Image: f.Image, Namespace: Namespace, EnvProcess: f.FProcess, Secrets: f.Secrets,
		Labels: f.Labels, Annotations: f.Annotations, ReadOnlyRootFilesystem: f.ReadOnlyRootFilesystem,
		EnvVars: map[string]string{}, Limits: resources(f.Limits), Requests: resources(f.Requests),
	}
	if f.Constraints != nil {
		d.Constraints = *f.Constraints
	}
	maps.Copy(d.EnvVars, f.Environment)
	for _, file := range f.EnvironmentFile { // a later one wins
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return d, err
		}
		var more stack.EnvironmentFile
		if err := yaml.Unmarshal(raw, &more); err != nil {
			return d, fmt.Errorf("%s: %w", file, err)
		}
		maps.Copy(d.EnvVars, more.Environment)
	}
	return d, nil
}

func resources(r *stack.FunctionResources) *types.FunctionResources {
	if r == nil {
		return nil
	}
	return &types.FunctionResources{Memory: r.Memory, CPU: r.CPU}
}
