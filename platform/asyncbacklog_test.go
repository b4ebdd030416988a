package platform

import "testing"

// What waits is bounded in calls and in bytes, also over a restart, whose count is
// a guess until nothing waits.
func TestBacklog(t *testing.T) {
	b := &backlog{}
	b.restore(2, maxWaitingBytes-10)
	if b.enter(11) {
		t.Error("beyond the bytes")
	}
	if !b.enter(10) || b.enter(1) {
		t.Error("not up to the bytes")
	}
	b.leave(10) // not published
	b.came(7, 100)
	b.came(7, 100) // once more
	b.came(6, 100)
	if b.calls != 1 || b.bytes != maxWaitingBytes-110 {
		t.Errorf("%d calls, %d bytes", b.calls, b.bytes)
	}
	b.came(8, 1)
	b.came(9, 1) // somebody else's
	if b.calls != 0 || b.bytes != 0 {
		t.Errorf("%d calls, %d bytes", b.calls, b.bytes)
	}
	for range maxWaitingCalls {
		if !b.enter(1) {
			t.Fatal("not up to the calls")
		}
	}
	if b.enter(1) {
		t.Error("beyond the calls")
	}
}
