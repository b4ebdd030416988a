package policy

import (
	"math"
	"testing"
)

// Knative's autoscaler v0.42.2 decided all of this.
func TestGoldenKPA(t *testing.T) {
	replay(t, "kpa", 15, func(r *recording) {
		k := knative{
			target: r.number("target_value"), total: r.number("total_value"),
			window: r.number("stable_window_s"), threshold: r.number("panic_threshold"),
			up: r.number("max_scale_up_rate"), down: r.number("max_scale_down_rate"),
			burst: r.number("target_burst_capacity"), delay: r.number("scale_down_delay_s"), tick: r.number("tick_s"),
			activation: int(r.number("activation_scale")), reachable: r.header["reachable"] == "true",
		}
		lo, hi := int(r.number("min_scale")), int(r.number("max_scale"))
		if hi == 0 {
			hi = math.MaxInt
		}
		stable, panics := bucketsOf("stable", int(k.window)), bucketsOf("panic", int(r.number("panic_window_s")))
		weighted := r.header["aggregation"] == "weighted-exponential"
		average := func(b *buckets, m Memory, at float64) Maybe {
			switch {
			case stable.empty(m, at):
				return Unknown
			case weighted:
				return Maybe(b.weighted(m, at))
			}
			return Maybe(b.average(m, at))
		}

		m := Memory{}
		k.begin(m, 0, int(r.number("initial_ready")))
		for i := range r.rows {
			r.row = r.rows[i]
			at := float64(r.field("t_s"))
			for j, column := range []string{"sample_prev", "sample_now"} {
				if v := r.field(column); v.Known() {
					stable.add(m, at-1+float64(j), float64(v))
					panics.add(m, at-1+float64(j), float64(v))
				}
			}
			in := knativeReading{now: at, stable: average(&stable, m, at), panic: average(&panics, m, at), ready: r.whole("ready")}
			same(r, "stable", in.stable, weighted)
			same(r, "panic", in.panic, weighted)
			a := k.scale(m, in)
			panicking, bounded := Unknown, Unknown
			if a.valid {
				panicking, bounded = Maybe(known(a.panicking)), Maybe(min(max(a.desired, lo), hi))
			}
			same(r, "valid", Maybe(known(a.valid)), false)
			same(r, "desired", Maybe(a.desired), false)
			same(r, "excess_burst", Maybe(a.excess), false)
			same(r, "in_panic", panicking, false)
			same(r, "bounded", bounded, false)
			if r.t.Failed() {
				r.t.Fatalf("row %d: %v", i+1, r.row)
			}
		}
	})
}

// same checks a value against the row's; to within 1e-9 where it is no exact one.
func same(r *recording, column string, got Maybe, roughly bool) {
	want := r.field(column)
	if got.Known() != want.Known() || got.Known() && got != want && !(roughly && math.Abs(float64(got-want)) < 1e-9) {
		r.t.Errorf("%s %v, want %v", column, got, want)
	}
}
