package platform

// Changed returns a channel that is closed with the next change of a function's
// replicas.
func (p *Platform) Changed(name string) <-chan struct{} {
	f, err := p.find(name, "")
	if err != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Lose makes the platform forget a function without ending its replicas.
func (p *Platform) Lose(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.functions, name)
}

// AsyncDraining reports whether no more asynchronous calls are begun.
func (p *Platform) AsyncDraining() bool { return p.async.worker.draining.Load() }
