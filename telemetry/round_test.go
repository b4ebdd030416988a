package telemetry_test

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"

	"farmhand/policy"
	"farmhand/telemetry"
	"farmhand/telemetry/internal/farmday"
)

func TestRound(t *testing.T) {
	f := farmday.New(farmday.Web, 1, began)
	long := regexp.MustCompile(`[1-9]\d*\.\d+|0\.0*[1-9]\d*`)
	for range 1000 {
		o := f.Next()
		o.CPU, o.Memory, o.Waiting = policy.Maybe(math.Inf(1)), 1234567.5, 1234567
		past := o.Past
		before := *o
		telemetry.Round(o)
		if o.Waiting != 1234567 || o.Memory != 1235000 || o.CPU.Known() || o.Draining.Known() {
			t.Fatalf("waiting %v, memory %v, cpu %v", o.Waiting, o.Memory, o.CPU)
		}
		if past[0].Rate == o.Past[0].Rate {
			t.Fatal("the past belongs to somebody else")
		}
		if a, b := before.Long.Service.Mean, o.Long.Service.Mean; math.Abs(a-b) > 5e-4*a {
			t.Fatalf("%v became %v", a, b)
		}
		o.At = began
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range long.FindAllString(string(raw), -1) {
			if len(regexp.MustCompile(`^0\.0*|\.`).ReplaceAllString(number, "")) > telemetry.Digits {
				t.Fatalf("%s in %s", number, raw)
			}
		}
		again := *o
		telemetry.Round(&again)
		if twice, _ := json.Marshal(again); string(twice) != string(raw) {
			t.Fatalf("%s\nbecame\n%s", raw, twice)
		}
	}
}
