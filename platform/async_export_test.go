package platform

// StopBroker takes the broker away, StartBroker brings it back.
func (p *Platform) StopBroker() { p.async.broker.stop() }

// WaitingAtBroker is what the broker says that waits.
func (p *Platform) WaitingAtBroker() (calls, bytes int, err error) { return p.async.broker.waiting() }

// StartBroker is the other half of StopBroker.
func (p *Platform) StartBroker() error { return p.async.broker.start() }
