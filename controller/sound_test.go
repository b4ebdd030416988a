package controller_test

import (
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"farmhand/controller"
	"farmhand/policy/guard"
)

// sound looks through what was decided: whatever happened in between, every
// decision can be made again from its receipt as it was kept, and leaves what the
// next one begins with; nothing is scaled down in the dark; each farm had one
// owner at a time.
func (w *world) sound() {
	t := w.t
	t.Helper()
	for name := range w.log.by {
		var last controller.Receipt
		owners := map[int64]string{}
		for _, r := range w.log.of(t, name) {
			if err := r.Replay(w.registry.learned()...); err != nil {
				t.Error(err)
			}
			if r.Seq <= last.Seq || r.Fence < last.Fence || r.At.Before(last.At) && !w.jumps {
				t.Errorf("%s: receipt %d under fence %d at %s after %d under %d at %s", name, r.Seq, r.Fence, r.At, last.Seq, last.Fence, last.At)
			}
			if owner, ok := owners[r.Fence]; ok && owner != r.Controller {
				t.Errorf("%s: two owners under fence %d: %s and %s", name, r.Fence, owner, r.Controller)
			}
			owners[r.Fence] = r.Controller
			if before := controller.Decide(last.Inputs, w.registry.learned()...); r.Seq == last.Seq+1 && last.Seq > 0 {
				if !cmp.Equal(before.Next, r.State) {
					t.Errorf("%s: the guard went on from %+v at receipt %d, and left %+v", name, r.State, r.Seq, before.Next)
				}
				promoted := r.Learned != nil && (last.Learned == nil || r.Learned.Term != last.Learned.Term)
				if !cmp.Equal(before.HandNext, r.Hand) && !(promoted && r.Hand == guard.Hand{}) {
					t.Errorf("%s: who may decide went on from %+v at receipt %d, and was left %+v", name, r.Hand, r.Seq, before.HandNext)
				}
				if r.Policy == last.Policy && cmp.Equal(r.Learned, last.Learned) && cmp.Equal(r.Beside, last.Beside) && !cmp.Equal(before.After, r.Memory, cmpopts.EquateEmpty()) {
					t.Errorf("%s: the policies went on from %v at receipt %d, and left %v", name, r.Memory, r.Seq, before.After)
				}
			}
			if r.Observation.Stale() && r.Replicas < r.Before {
				t.Errorf("%s: %d → %d in the dark", name, r.Before, r.Replicas)
			}
			last = r
		}
	}
}
