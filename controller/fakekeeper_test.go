package controller_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"farmhand/controller"
)

// kept is what the keeper keeps of a farm.
type kept struct {
	owner     string
	fence     int64
	until     time.Time
	state     []byte
	overrides []byte
}

// keeper does what scripts/*.lua of rediskeeper do. It looks at no context: what
// keeps a controller from saving is its fence alone.
type keeper struct {
	now func() time.Time

	mu      sync.Mutex
	by      map[string]*kept
	err     error
	saveErr error
	refused int    // saves
	between func() // runs before the next Override
}

func (k *keeper) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// peek is what is kept of a farm.
func (k *keeper) peek(farm string) kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *k.of(farm)
}

// refusals are the saves that were refused.
func (k *keeper) refusals() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused
}

func (k *keeper) of(farm string) *kept {
	if k.by[farm] == nil {
		k.by[farm] = &kept{}
	}
	return k.by[farm]
}

func (k *keeper) Claim(_ context.Context, owner string, length time.Duration, claims []controller.Claim) ([]controller.Held, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	held := make([]controller.Held, len(claims))
	for i, c := range claims {
		f, now := k.of(c.Farm), k.now()
		held[i] = controller.Held{Now: now, Owner: f.owner, Overrides: f.overrides}
		if f.owner != owner {
			if f.owner != "" && f.until.After(now) {
				continue
			}
			f.owner = owner
			f.fence++
		}
		f.until = now.Add(length)
		held[i].Owner, held[i].Fence = owner, f.fence
		if f.fence != c.Fence {
			held[i].State = f.state
		}
	}
	return held, nil
}

func (k *keeper) Release(_ context.Context, owner string, claims []controller.Claim) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range claims {
		if f := k.of(c.Farm); k.err == nil && f.owner == owner && f.fence == c.Fence {
			f.until = time.Time{}
		}
	}
	return k.err
}

func (k *keeper) Save(_ context.Context, saves []controller.Save) ([]bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := cmp.Or(k.err, k.saveErr); err != nil {
		return nil, err
	}
	ok := make([]bool, len(saves))
	for i, s := range saves {
		f := k.of(s.Farm)
		if ok[i] = f.fence == s.Fence; ok[i] {
			f.state = s.State
		} else {
			k.refused++
		}
	}
	return ok, nil
}

func (k *keeper) Override(_ context.Context, farm string, old, new []byte) (bool, error) {
	k.mu.Lock()
	between := k.between
	k.between = nil
	k.mu.Unlock()
	if between != nil {
		between()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.of(farm)
	if k.err != nil || !bytes.Equal(f.overrides, old) {
		return false, k.err
	}
	f.overrides = new
	return true, nil
}

func (k *keeper) Kept(_ context.Context, farm string) (controller.Held, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.of(farm)
	return controller.Held{Now: k.now(), Fence: f.fence, Owner: f.owner, State: f.state, Overrides: f.overrides}, k.err
}

// receipts are a Log.
type receipts struct {
	mu  sync.Mutex
	by  map[string][][]byte // oldest first
	err error

	served int // service times
}

func (l *receipts) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *receipts) Append(ctx context.Context, entries []controller.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := cmp.Or(l.err, ctx.Err()); err != nil {
		return err
	}
	for _, e := range entries {
		l.by[e.Farm] = append(l.by[e.Farm], e.Data)
		l.served += e.Service.N
	}
	return nil
}

func (l *receipts) Tail(_ context.Context, farm string, n int) (list [][]byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, raw := range slices.Backward(l.by[farm]) {
		if len(list) < n {
			list = append(list, raw)
		}
	}
	return list, l.err
}

// of returns all receipts of a farm, oldest first, as they come out of the log.
func (l *receipts) of(t *testing.T, farm string) (list []controller.Receipt) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, raw := range l.by[farm] {
		var r controller.Receipt
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}
