package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"farmhand/controller"
	"farmhand/policy"
	"farmhand/registry"
	"farmhand/registry/redisregistry"
	"farmhand/sim"
)

// contender is the policy of a row: a law, or a policy file, which a farm has as a
// version of the registry.
type contender struct {
	spec string // as it was given
	file []byte // nil: a law
}

const policyFileExt = ".safetensors"

// contend checks the policy of a row.
func contend(spec string) (c contender, err error) {
	c.spec = spec
	if strings.EqualFold(filepath.Ext(spec), policyFileExt) {
		if c.file, err = os.ReadFile(spec); err != nil {
			return c, fmt.Errorf("--policy: %w", err)
		}
	}
	if _, err := c.driver(); err != nil {
		return c, fmt.Errorf("--policy %s: %w", spec, err)
	}
	return c, nil
}

// name in tables and files, where a folder says nothing.
func (c *contender) name() string {
	if c.file != nil {
		return filepath.Base(c.spec)
	}
	return c.spec
}

// driver decides in the simulator as the controller does live: it has the same rule
// beside a law, and, beside a learned policy, the rule of its file.
func (c *contender) driver() (d sim.Driver, err error) {
	if c.file != nil {
		d.Policy, err = controller.Load(c.file)
		return d, err
	}
	if d.Policy, err = policy.New(c.spec); err != nil || c.spec == controller.DefaultPolicy {
		return d, err
	}
	d.Rule, err = policy.New(controller.DefaultPolicy)
	return d, err
}

// annotation is what the live farm says of its policy. The registry gets the file.
func (g *stage) annotation(ctx context.Context, c *contender) (string, error) {
	if c.file == nil {
		return c.spec, nil
	}
	store := redisregistry.New(g.redis, redisregistry.Limits{})
	version, err := store.Import(ctx, c.file, registry.Origin{By: "bench live"})
	if err != nil {
		return "", fmt.Errorf("bench: %s: %w", c.spec, err)
	}
	return "learned:" + version, nil
}
