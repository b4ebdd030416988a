// Package archtest keeps the shape of the project: which room may use which,
// and what each function's binary links.
package archtest

import (
	"os/exec"
	"strings"
	"testing"
)

// rule says that no package of a room may use, even indirectly, packages below
// the given paths, nor import itself one of those in direct. exempt are rooms below
// it that may.
type rule struct {
	room, why string
	forbidden []string
	direct    []string
	exempt    []string
}

var rules = []rule{
	{room: "skeleton", why: "the farm as a library knows neither what scales it nor where it runs",
		forbidden: []string{"farmhand/controller", "farmhand/platform", "farmhand/gateway", "farmhand/cmd", "farmhand/functions"}},
	{room: "skeleton/ledger/memledger", why: "adapters do not know one another",
		forbidden: []string{"farmhand/skeleton/ledger/redisledger", "github.com/redis/go-redis/v9"}},
	{room: "skeleton/ledger/redisledger", why: "adapters do not know one another",
		forbidden: []string{"farmhand/skeleton/ledger/memledger"}},
	{room: "skeleton/dispatch", why: "the engine reaches Redis and workers through interfaces only",
		forbidden: []string{"farmhand/skeleton/ledger/redisledger", "github.com/redis/go-redis/v9", "net/http"}},
	{room: "skeleton/order", why: "the order of service is pure: the simulator shares it",
		forbidden: []string{"net", "os", "farmhand/skeleton/ledger"}},
	{room: "skeleton/signal", why: "signals are pure: the simulator feeds the same series",
		forbidden: []string{"github.com/redis/go-redis/v9", "net/http"}, exempt: []string{"farmhand/skeleton/signal/redissignal"}},
	{room: "skeleton/stream", why: "the stream reaches the broker through interfaces only",
		forbidden: []string{"github.com/nats-io", "github.com/redis/go-redis/v9"}, exempt: []string{"farmhand/skeleton/stream/natsstream"}},
	{room: "policy", why: "a policy sees an observation and nothing else",
		forbidden: []string{"farmhand/skeleton", "farmhand/controller", "farmhand/gateway", "farmhand/platform", "farmhand/telemetry", "net/http"}},
	{room: "controller", why: "the loop reaches Redis and the platform through interfaces only",
		forbidden: []string{"github.com/redis/go-redis/v9", "github.com/openfaas/faas-provider"},
		exempt:    []string{"farmhand/controller/rediskeeper", "farmhand/controller/redispast", "farmhand/controller/openfaas"}},
	{room: "gateway", why: "the client knows OpenFaaS, not farms",
		forbidden: []string{"farmhand/skeleton", "farmhand/platform", "farmhand/controller"}},
	{room: "controller", why: "simulator and learners are injected by functions/controller",
		forbidden: []string{"farmhand/platform", "farmhand/sim", "farmhand/env", "farmhand/rl", "farmhand/evaluate"}},
	{room: "evaluate", why: "the referee is pure: cmd shows and keeps what it finds",
		forbidden: []string{"farmhand/evaluate/report", "farmhand/evaluate/shelf", "gonum.org/v1/plot", "farmhand/controller", "farmhand/platform", "net/http"},
		exempt:    []string{"farmhand/evaluate/report", "farmhand/evaluate/shelf"}},
	{room: "functions", why: "only cmd and tests start platforms; a function links no server of its own",
		forbidden: []string{"farmhand/platform", "github.com/nats-io/nats-streaming-server", "github.com/alicebob/miniredis/v2", "github.com/spf13/cobra"}},
	{room: "sim", why: "the simulator knows the farm's rules, and neither learners nor the world",
		forbidden: []string{"farmhand/env", "farmhand/rl", "farmhand/evaluate", "farmhand/controller", "farmhand/gateway", "farmhand/platform", "farmhand/telemetry",
			"farmhand/skeleton/ledger/redisledger", "farmhand/skeleton/ledger/memledger", "farmhand/skeleton/signal/redissignal", "farmhand/skeleton/dispatch", "net"}},
	{room: "sim", why: "only the readers of scenarios and traces open files",
		direct: []string{"os", "io/fs", "path/filepath"}, exempt: []string{"farmhand/sim/workload"}},
	{room: "env", why: "an environment knows nothing of who learns in it",
		forbidden: []string{"farmhand/rl", "farmhand/evaluate", "farmhand/controller", "farmhand/gateway", "farmhand/platform", "farmhand/telemetry", "net"}},
	{room: "env", why: "what learners play may be anything, not only a farm",
		forbidden: []string{"farmhand/sim", "farmhand/policy", "farmhand/skeleton"}, exempt: []string{"farmhand/env/farmenv"}},
	{room: "rl", why: "learners run anywhere, and see the interfaces of env, not what environments are made of",
		forbidden: []string{"farmhand/sim", "farmhand/policy", "farmhand/skeleton", "farmhand/env/farmenv", "farmhand/evaluate", "farmhand/controller", "farmhand/gateway", "farmhand/platform", "farmhand/telemetry", "net"}},
	{room: "rl", why: "a learner has no clock and opens no files",
		direct: []string{"os", "io/fs", "path/filepath", "time"}},
	{room: "registry", why: "what a policy's versions are knows neither Redis nor HTTP, and nobody who uses them",
		forbidden: []string{"github.com/redis/go-redis/v9", "net/http", "farmhand/controller", "farmhand/gate", "farmhand/platform", "farmhand/sim"},
		exempt:    []string{"farmhand/registry/redisregistry", "farmhand/registry/policyapi", "farmhand/registry/registrytest"}},
	{room: "gate", why: "a gate judges by numbers: who runs it brings scenarios, telemetry and the registry",
		forbidden: []string{"github.com/redis/go-redis/v9", "net/http", "farmhand/controller", "farmhand/gateway", "farmhand/platform", "farmhand/rl", "farmhand/env"}},
	{room: "trainer", why: "the controller watches trainings, and must not link what trains",
		forbidden: []string{"farmhand/train", "farmhand/rl", "farmhand/env", "farmhand/sim", "farmhand/evaluate", "farmhand/gate", "farmhand/controller", "farmhand/platform"},
		exempt:    []string{"farmhand/trainer/fit", "farmhand/trainer/work"}},
	{room: "internal", why: "internal packages are small ideas, not rooms",
		forbidden: []string{"farmhand/skeleton", "farmhand/gateway", "farmhand/controller", "farmhand/platform"}},
}

// Imports point one way (design: rooms).
func TestImportsPointOneWay(t *testing.T) {
	for _, r := range rules {
		for _, list := range []struct {
			field     string
			forbidden []string
		}{{"Deps", r.forbidden}, {"Imports", r.direct}} {
			if len(list.forbidden) == 0 {
				continue
			}
			for pkg, deps := range dependencies(t, list.field, "farmhand/"+r.room+"/...") {
				if below(pkg, r.exempt) {
					continue
				}
				for _, dep := range deps {
					if below(dep, list.forbidden) {
						t.Errorf("%s uses %s: %s", pkg, dep, r.why)
					}
				}
			}
		}
	}
}

// dependencies lists, per package of a pattern, everything it links (Deps), or
// imports itself (Imports).
func dependencies(t *testing.T, field, pattern string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .`+field+` " "}}`, pattern)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pattern, err)
	}
	deps := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if pkg, rest, ok := strings.Cut(line, " "); ok {
			deps[pkg] = strings.Fields(rest)
		}
	}
	return deps
}

// below reports whether a package is one of the roots or stands below one.
func below(pkg string, roots []string) bool {
	for _, root := range roots {
		if pkg == root || strings.HasPrefix(pkg, root+"/") {
			return true
		}
	}
	return false
}
