package platform

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"farmhand/internal/secret"
)

// functionPath is the PATH of a function.
const functionPath = "/usr/local/bin:/usr/bin:/bin"

// environment is all that a function's process inherits: what its deployment
// says, and where it stands. Addresses of the farm's services are the
// platform's own, whatever the deployment has for a cluster.
func (p *Platform) environment(s *spec, address, tmp, secrets string) []string {
	env := map[string]string{"PATH": functionPath}
	maps.Copy(env, s.EnvVars)
	own := map[string]string{"farmhand_redis_url": p.redis.functionURL(), "farmhand_gateway_url": p.url,
		"farmhand_metrics_listen": "127.0.0.1:0"} // replicas share this machine's ports; the log has what became of it
	maps.Copy(own, p.async.environment())
	for name, value := range own {
		if _, ok := env[name]; ok {
			env[name] = value
		}
	}
	maps.Copy(env, map[string]string{
		"HOME": tmp, "TMPDIR": tmp,
		"farmhand_listen":    address,
		"secret_mount_path":  secrets,
		"OPENFAAS_NAME":      s.Service,
		"OPENFAAS_NAMESPACE": Namespace,
	})
	if s.EnvProcess != "" {
		env["fprocess"] = s.EnvProcess
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// checkSecrets refuses a deployment that asks for a secret there is not.
func (p *Platform) checkSecrets(s *spec) error {
	for _, name := range s.Secrets {
		if _, ok := p.state.secretFile(name); !ok {
			return badRequest("secret %q of %s: unknown; create it first, with faas-cli secret create or by putting its value into a file of this name in %s", name, s.Service, p.state.path("secrets"))
		}
	}
	return nil
}

// mountSecrets copies the named secrets, and no others, into dir.
func (p *Platform) mountSecrets(names []string, dir string) error {
	p.secrets.RLock()
	defer p.secrets.RUnlock()
	for _, name := range names {
		file, ok := p.state.secretFile(name)
		if !ok {
			return fmt.Errorf("secret %q is gone", name)
		}
		value, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("secret %q: %w", name, err)
		}
		if name == secret.RedisPassword {
			if value = []byte(p.redis.password); len(value) == 0 {
				continue // a Redis of the user's own, without password
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), value, 0o600); err != nil {
			return fmt.Errorf("secret %q: %w", name, err)
		}
	}
	return nil
}
