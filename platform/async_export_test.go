package platform

// StopBroker takes the broker away, StartBroker brings it back.
func (p *Platform) StopBroker() { p.async.broker.stop() }

// StartBroker is the other half of StopBroker.
func (p *Platform) StartBroker() error { return p.async.broker.start() }
