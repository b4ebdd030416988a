package platform

import (
	"context"
	"encoding/json"
	"errors"
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
}

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
		list = append(list, record{f.spec.FunctionDeployment, f.desired, f.created})
		f.mu.Unlock()
	}
	return writeJSON(p.state.path("functions.json"), list)
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
	raw, err := os.ReadFile(p.state.path("functions.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list []record
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		p.log.Error("cannot read what was deployed; it is left aside as functions.json.bad", "error", err)
		if err := os.Rename(p.state.path("functions.json"), p.state.path("functions.json.bad")); err != nil {
			p.log.Error("state folder", "error", err)
		}
		return
	}
	for _, r := range list {
		s, err := p.prepareAgain(ctx, r.Deployment)
		if err != nil {
			p.log.Error("a function cannot be restored", "function", r.Deployment.Service, "error", err)
			p.mu.Lock()
			p.parked[r.Deployment.Service] = r
			p.mu.Unlock()
			continue
		}
		p.add(s, p.clamp(r.Replicas), r.Created)
	}
}

// prepareAgain is prepare, but takes the program as it was built last time.
func (p *Platform) prepareAgain(ctx context.Context, d types.FunctionDeployment) (*spec, error) {
	s, err := checkDeployment(d)
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
