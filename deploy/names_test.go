// Package deploy_test checks what is deployed beside the functions: dashboard,
// alert rules, Redis and the script that makes secrets.
package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"farmhand/controller"
	controllermetrics "farmhand/controller/metrics"
	"farmhand/internal/promserve"
	"farmhand/policy"
	"farmhand/policy/guard"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/metrics"
	"farmhand/skeleton/signal"
)

// family is what is exposed under a name: the values of each label.
type family map[string]map[string]bool

// exposed gathers what a dispatcher and a controller with one farm expose.
func exposed(t *testing.T) map[string]family {
	t.Helper()
	d := metrics.New(signal.NewRecorder(time.Now), func() ([]string, bool) { return []string{"thumbnail"}, true })
	c := controllermetrics.New(func() controller.Status { return controller.Status{} }, time.Now)
	r := &controller.Receipt{Inputs: controller.Inputs{Policy: "staffing", Guard: guard.Settings{Budget: 10}, Inference: 1e-5}}
	e := policy.Estimate{Seconds: 900, OnTime: 1, WorkerSeconds: 900}
	conditions := map[string]controller.Condition{}
	for _, kind := range []string{controller.Healthy, controller.Scaling, controller.Limited, controller.Fallback, controller.PausedBy} {
		conditions[kind] = controller.Condition{}
	}
	c.Looked(controller.Look{Farm: "thumbnail", Gauges: &ledger.Gauges{}, Conditions: conditions, Receipt: r,
		Review: &controller.Review{Actual: e, Rule: &e, Shadow: &e}})
	registry, err := promserve.NewRegistry(d, c)
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]family{}
	for _, f := range families {
		names := []string{f.GetName()}
		if f.GetMetric()[0].GetHistogram() != nil {
			names = []string{f.GetName() + "_bucket", f.GetName() + "_sum", f.GetName() + "_count"}
		}
		for _, name := range names {
			labels := family{}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if labels[l.GetName()] == nil {
						labels[l.GetName()] = map[string]bool{}
					}
					labels[l.GetName()][l.GetValue()] = true
				}
			}
			all[name] = labels
		}
	}
	return all
}

var (
	nameRule  = regexp.MustCompile(`^farmhand(_[a-z]+)+$`)
	selector  = regexp.MustCompile(`\b((?:farmhand|process|go)_[a-z_]+)\b(?:\{([^}]*)\})?(\[)?`)
	matcher   = regexp.MustCompile(`([a-z_]+)(=~|=)"([^"]*)"`)
	allLabels = []string{"farm", "policy", "state", "reason", "outcome"}
)

// problems compares an expression with what is exposed.
func problems(expr string, all map[string]family) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)+": "+expr) }
	found := selector.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		add("no metric of the suite")
	}
	for _, m := range found {
		name, matchers, ranged := m[1], m[2], m[3] != ""
		labels, ok := all[name]
		if !ok {
			add("nobody exposes %s", name)
			continue
		}
		grows := strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_bucket")
		if ranged != grows && !strings.Contains(expr, "delta("+name) && !strings.Contains(expr, "group by (instance) ("+name) {
			add("%s: want a rate of what only grows, and no rate of what does not", name)
		}
		for _, l := range matcher.FindAllStringSubmatch(matchers, -1) {
			values := []string{l[3]}
			if l[2] == "=~" {
				values = strings.Split(l[3], "|")
			}
			for _, v := range values {
				if labels[l[1]] == nil || v != "$farm" && !labels[l[1]][v] {
					add("%s has no %s=%q, but %v", name, l[1], v, slices.Sorted(maps.Keys(labels[l[1]])))
				}
			}
		}
	}
	return list
}

// What is exposed keeps to the rules for names and labels.
func TestNames(t *testing.T) {
	for name, labels := range exposed(t) {
		if strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "go_") {
			continue
		}
		if !nameRule.MatchString(name) {
			t.Errorf("%s is no name", name)
		}
		for l := range labels {
			if !slices.Contains(allLabels, l) {
				t.Errorf("%s has the label %s", name, l)
			}
		}
	}
}

type alerts struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert       string
			Expr        string
			For         string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

func TestAlerts(t *testing.T) {
	raw, err := os.ReadFile("prometheus-alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file alerts
	if err := yaml.UnmarshalWithOptions(raw, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	all, seen := exposed(t), map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Farmhand") {
				t.Errorf("the alert %q is there twice, or is not named as ours", r.Alert)
			}
			seen[r.Alert] = true
			for _, problem := range problems(r.Expr, all) {
				t.Errorf("%s: %s", r.Alert, problem)
			}
			if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: labels %v, annotations %v", r.Alert, r.Labels, r.Annotations)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d alerts were found", len(seen))
	}
}

type dashboard struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			RefID string
			Expr  string
		}
	}
}

func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	all := exposed(t)
	ids, cells, shown := map[int]bool{}, map[[2]int]string{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s has the id of another panel", p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %s or beyond the edge", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			for _, problem := range problems(target.Expr, all) {
				t.Errorf("%s: %s", p.Title, problem)
			}
			for _, m := range selector.FindAllStringSubmatch(target.Expr, -1) {
				shown[strings.TrimSuffix(m[1], "_bucket")] = true
			}
		}
	}
	// Whatever is exposed is of use to somebody who looks.
	for name := range all {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "farmhand_") && !shown[base] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// A name, a label or a value that does not exist is found.
func TestProblemsAreFound(t *testing.T) {
	all := exposed(t)
	for _, expr := range []string{
		"farmhand_nothing", `farmhand_tasks{state="leasing"}`, `farmhand_tasks{colour="red"}`, "rate(farmhand_tasks[5m])", "farmhand_actions_total", "up == 0",
	} {
		if len(problems(expr, all)) == 0 {
			t.Errorf("%s passes", expr)
		}
	}
}
