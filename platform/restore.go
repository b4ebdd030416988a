package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// record is what is kept of a deployed function.
type record struct {
	Deployment types.FunctionDeployment `json:"deployment"`
	Replicas   int                      `json:"replicas"`
	Created    time.Time                `json:"created"`
	Unrestored string                   `json:"unrestored,omitempty"` // why the last start could not bring it back
}

// sources is where the programs came from when a platform last ran.
type sources struct {
	Stack    string `json:"stack,omitempty"`
	Prebuilt string `json:"prebuilt,omitempty"`
}

const sourcesFile = "sources.json"

// LastSources returns the stack file and the folder of programs that were last
// given to a platform on this state folder: without them what is deployed
// cannot be restored.
func LastSources(dir string) (stack, prebuilt string) {
	var s sources
	if raw, err := os.ReadFile(filepath.Join(dir, sourcesFile)); err != nil || json.Unmarshal(raw, &s) != nil {
		return "", "" // nothing is remembered
	}
	return s.Stack, s.Prebuilt
}

// rememberSources keeps them for LastSources.
func (p *Platform) rememberSources() {
	s := sources{p.config.Stack, p.config.Prebuilt}
	if s == (sources{}) {
		return
	}
	if err := writeJSON(p.state.path(sourcesFile), s); err != nil {
		p.log.Error("cannot remember where the programs are", "error", err)
	}
}

// Unrestored is a function that is deployed, but could not be brought back by
// the last start. It is tried again by the next.
type Unrestored struct {
	Function string `json:"function"`
	Reason   string `json:"reason"`
}

// ListUnrestored returns those of a state folder.
func ListUnrestored(dir string) ([]Unrestored, error) {
	raw, err := os.ReadFile(filepath.Join(dir, functionsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var records []record
	if err == nil {
		err = json.Unmarshal(raw, &records)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", functionsFile, err)
	}
	var list []Unrestored
	for _, r := range records {
		if r.Unrestored != "" {
			list = append(list, Unrestored{r.Deployment.Service, r.Unrestored})
		}
	}
	return list, nil
}

// notBack looks for a function, by its name with or without the namespace, among
// those that the last start could not bring back.
func (p *Platform) notBack(name string) (record, bool) {
	short, err := bareName(name)
	if err != nil {
		return record{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.parked[short]
	return r, ok
}

// removeNotBack removes one of them. It has neither replicas nor a schedule.
func (p *Platform) removeNotBack(name string) error {
	p.mu.Lock()
	delete(p.parked, name)
	p.mu.Unlock()
	p.dropLog(name)
	p.log.Info("removed", "function", name)
	return p.save()
}

const functionsFile = "functions.json"

// save writes what is deployed.
func (p *Platform) save() error {
	p.saving.Lock() // before looking, so that the last look is the last to be written
	defer p.saving.Unlock()
	list := []record{}
	p.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(p.parked)) {
		list = append(list, p.parked[name])
	}
	p.mu.Unlock()
	for _, f := range p.list() {
		f.mu.Lock()
		list = append(list, record{Deployment: f.spec.FunctionDeployment, Replicas: f.desired, Created: f.created})
		f.mu.Unlock()
	}
	return writeJSON(p.state.path(functionsFile), list)
}

// saveSoon asks the saver to write: replica counts change often, and a call must
// not wait for the disk.
func (p *Platform) saveSoon() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// saver writes when asked, and once more at the end.
func (p *Platform) saver() {
	defer p.work.Done()
	for {
		select {
		case <-p.dirty:
			if err := p.save(); err != nil {
				p.log.Error("cannot save what is deployed", "error", err)
			}
		case <-p.ctx.Done():
			if err := p.save(); err != nil {
				p.log.Error("cannot save what is deployed", "error", err)
			}
			return
		}
	}
}

// restore deploys again what was deployed when the last run ended. What cannot
// be is said, and kept for the next start.
func (p *Platform) restore(ctx context.Context) {
	p.rememberSources()
	raw, err := os.ReadFile(p.state.path(functionsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list []record
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		p.log.Error("cannot read what was deployed; it is left aside as functions.json.bad", "error", err)
		if err := os.Rename(p.state.path(functionsFile), p.state.path(functionsFile+".bad")); err != nil {
			p.log.Error("state folder", "error", err)
		}
		return
	}
	known := map[string]bool{}
	for _, r := range list {
		if known[r.Deployment.Service] {
			p.log.Error("a function is there twice: the first is taken", "file", functionsFile, "function", r.Deployment.Service)
			continue
		}
		known[r.Deployment.Service] = true
		s, err := p.prepareAgain(ctx, r.Deployment)
		if err != nil {
			p.log.Error("a function cannot be restored", "function", r.Deployment.Service, "error", err)
			r.Unrestored = err.Error()
			p.mu.Lock()
			p.parked[r.Deployment.Service] = r
			p.mu.Unlock()
			continue
		}
		p.add(s, p.bound(s, r.Replicas), r.Created)
	}
	if err := p.save(); err != nil {
		p.log.Error("cannot save what is deployed", "error", err)
	}
}

// prepareAgain is prepare, but takes the program as it was built last time.
func (p *Platform) prepareAgain(ctx context.Context, d types.FunctionDeployment) (*spec, error) {
	s, err := checkDeployment(d, p.config.clock.Now())
	if err != nil {
		return nil, err
	}
	if err := p.checkSecrets(s); err != nil {
		return nil, err
	}
	if name, f, err := p.images.fromStack(s.Image); err == nil && f != nil && p.images.prebuilt == "" {
		built := filepath.Join(p.images.bin, name)
		if sum, err := fileSum(built); err == nil && deref(s.Annotations)[annCommand] == "" {
			s.command, s.sum = []string{built}, sum
			return s, nil
		}
	}
	return s, p.images.resolve(ctx, s)
}
