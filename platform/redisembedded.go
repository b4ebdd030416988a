package platform

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embeddedRedis runs a Redis inside the platform. It keeps nothing, and its
// clock for expiring keys has to be moved by hand.
func (p *Platform) embeddedRedis(password string) (*redisStore, error) {
	address, err := p.redisAddress()
	if err != nil {
		return nil, err
	}
	m := miniredis.NewMiniRedis()
	m.RequireAuth(password)
	if err := m.StartAddr(address); err != nil {
		return nil, fmt.Errorf("embedded Redis: %w", err)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-quit:
				m.Close()
				return
			case now := <-tick.C:
				m.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	var once sync.Once
	stop := func(context.Context) {
		once.Do(func() { close(quit) })
		<-done
	}
	return &redisStore{kind: "memory", url: localURL(address), password: password, durability: InMemory, stop: stop}, nil
}
