package controller_test

import (
	"fmt"
	"testing"
	"time"
)

// Reading the past of a farm takes time, so many farms are begun with bit by
// bit. One step decides for all of them all the same, and no farm is left out
// while signals cannot be read.
func TestManyFarmsAreBegunBitByBit(t *testing.T) {
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("signals away %t", away), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				const n = 50
				for i := range n {
					w.add(fmt.Sprintf("farm%02d", i), 1)
				}
				if away {
					w.signals.set(func() { w.signals.err = errAway })
				}
				ticked := map[string]int{}
				cfg := w.config("A")
				cfg.Ticked = func(farm string, _ time.Duration) { ticked[farm]++ }
				c := w.create(cfg)
				step(t, c)
				if len(ticked) != n || !away && w.signals.cold != 20 {
					t.Errorf("%d farms decided for, %d read at once", len(ticked), w.signals.cold)
				}
				w.after(interval)
				step(t, c)
				for farm, k := range ticked {
					if k != 2 {
						t.Errorf("%s: %d decisions", farm, k)
					}
				}
			})
		})
	}
}
