package signal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// What is written is read again, to the bit.
func TestBinaryForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 1<<40)
		want := Tally{Starts: count.Draw(t, "starts"), Busy: count.Draw(t, "busy"), Failed: count.Draw(t, "failed"), Lost: count.Draw(t, "lost"),
			Wait: *histOf(durations(t)), Sojourn: *histOf(durations(t))}
		raw, err := want.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got Tally
		if err := got.UnmarshalBinary(raw); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
		cut := rapid.IntRange(0, len(raw)-1).Draw(t, "cut")
		if err := got.UnmarshalBinary(raw[:cut]); err == nil {
			t.Errorf("%d of %d bytes are taken", cut, len(raw))
		}
	})
}

// A histogram is small: some two bytes for each bin.
func TestBinaryFormIsSmall(t *testing.T) {
	var h Hist
	for i := range 1000 {
		h.Add(0.02 + float64(i)/10_000)
	}
	raw, _ := h.AppendBinary(nil)
	if limit := 32 + 2*len(h.Bins); len(raw) > limit {
		t.Errorf("%d bytes for %d bins", len(raw), len(h.Bins))
	}
	var back Hist
	if err := back.UnmarshalBinary(raw); err != nil || !back.same(&h) {
		t.Errorf("%+v %v", back, err)
	}
}

// Bytes of any kind are refused or make a sound tally, which reads back the same.
func FuzzTally(f *testing.F) {
	t := Tally{Starts: 3, Wait: *histOf([]float64{0, 1, 2, 2}), Service: *histOf([]float64{1e9})}
	raw, _ := t.AppendBinary(nil)
	f.Add(raw)
	f.Add([]byte{version})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a, b Tally
		if a.UnmarshalBinary(raw) != nil {
			return
		}
		again, _ := a.AppendBinary(nil)
		if err := b.UnmarshalBinary(again); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Error(d)
		}
		a.Merge(&b)
	})
}
