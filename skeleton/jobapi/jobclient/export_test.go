package jobclient

import (
	"context"
	"time"
)

// Hurry makes a client wait for nothing: its clock jumps.
func (c *Client) Hurry() {
	now := time.Now()
	c.clock.now = func() time.Time { return now }
	c.clock.sleep = func(ctx context.Context, d time.Duration) error {
		now = now.Add(d)
		return ctx.Err()
	}
}

// SetMaxLine sets how large a result may be.
func (c *Client) SetMaxLine(n int) { c.maxLine = n }
