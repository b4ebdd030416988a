package platform_test

import (
	"fmt"
	"strings"
	"testing"
)

// alert posts what AlertManager does; alerts are pairs of status and function.
func (b *bench) alert(alerts ...string) {
	b.t.Helper()
	var list []string
	for i := 0; i < len(alerts); i += 2 {
		list = append(list, fmt.Sprintf(`{"status":%q,"labels":{"alertname":"APIHighInvocationRate","function_name":%q}}`, alerts[i], alerts[i+1]))
	}
	// The status of the whole is that of some alert.
	body := fmt.Sprintf(`{"status":%q,"receiver":"scale-up","alerts":[%s]}`, alerts[0], strings.Join(list, ","))
	if a := b.system("POST", "/system/alert", body); a.status != 200 || a.body != "" {
		b.t.Errorf("%+v", a)
	}
}

// Alerts scale by the labels as plain CE does.
func TestAlerts(t *testing.T) {
	for name, c := range map[string]struct {
		ce     bool
		labels string // min, max, factor; "" = none
		course []int  // at first, and after each firing alert
		least  int    // after it is resolved
	}{
		"defaults of CE":     {true, ",,", []int{1, 2, 3, 4, 5, 5}, 1},
		"CE, 2 to 4 by half": {true, "2,4,50", []int{2, 4, 4}, 2},
		"CE, more than it":   {true, ",9,100", []int{1, 5}, 1},
		"defaults":           {false, ",,", []int{1, 5, 9, 13, 17, 20, 20}, 1},
		"2 to 4 by half":     {false, "2,4,50", []int{2, 4, 4}, 2},
		"more than usual":    {false, ",30,50", []int{1, 16, 30}, 1},
		"somebody else":      {false, "2,9,0", []int{2, 2}, 2},
		"at zero":            {false, "0,9,20", []int{0, 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(p *platformConfig) { p.CE, p.ColdStart = c.ce, "constant:1h" }) // no process needs to start
			d := function("echo")
			for i, value := range strings.Split(c.labels, ",") {
				if value != "" {
					(*d.Labels)["com.openfaas.scale."+[]string{"min", "max", "factor"}[i]] = value
				}
			}
			if a := b.system("POST", "/system/functions", deployment(d)); a.status != 202 {
				t.Fatal(a)
			}
			replicas := func(want int) {
				t.Helper()
				if n := b.detail("echo").Replicas; n != uint64(want) {
					t.Errorf("%d replicas, want %d", n, want)
				}
			}
			replicas(c.course[0])
			for _, want := range c.course[1:] {
				b.alert("firing", "echo.openfaas-fn")
				replicas(want)
			}
			b.alert("resolved", "echo.openfaas-fn")
			replicas(c.least)
		})
	}
}

// Each alert of a message counts for its own function (P67); a firing one never
// takes replicas away, nor does a resolved one add any.
func TestAlertsOfSeveralFunctions(t *testing.T) {
	b := start(t, func(c *platformConfig) { c.ColdStart = "constant:1h" })
	for _, name := range []string{"a", "b", "many"} {
		d := function(name)
		if (*d.Labels)["com.openfaas.scale.factor"] = "10"; name == "many" {
			(*d.Labels)["com.openfaas.scale.max"] = "3"
		}
		if a := b.system("POST", "/system/functions", deployment(d)); a.status != 202 {
			t.Fatal(a)
		}
	}
	b.scale("many", 3)
	b.alert("resolved", "a", "firing", "b.openfaas-fn", "firing", "many", "firing", "nope", "firing", "b.other", "strange", "a")
	for name, want := range map[string]uint64{"a": 1, "b": 3, "many": 3} {
		if n := b.detail(name).Replicas; n != want {
			t.Errorf("%s has %d replicas, want %d", name, n, want)
		}
	}
}
