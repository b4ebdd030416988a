package controller

// Known reports whether the platform lists a farm.
func (c *Controller) Known(farm string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.farms[farm] != nil
}
