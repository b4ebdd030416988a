package main

import (
	"context"
	"errors"
	"testing"

	"farmhand/skeleton/jobapi"
)

// graveyard redrives at most 10 at once; what it redrives dies again at once,
// and some never leaves.
type graveyard struct {
	dead, stay, calls int
	broken            error
}

func (g *graveyard) Farm(context.Context, string) (jobapi.FarmView, error) {
	return jobapi.FarmView{Queue: &jobapi.Queue{Dead: g.dead}}, nil
}

func (g *graveyard) Redrive(_ context.Context, _ string, refs []string) (int, error) {
	g.calls++
	if g.calls == 3 && g.broken != nil {
		return 0, g.broken
	}
	if refs != nil {
		return len(refs), nil
	}
	return min(10, g.dead-g.stay), nil
}

// All means all, however many the dispatcher takes at once; it comes to an end
// also where the tasks die again, or stay dead.
func TestRedriveAll(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		g        graveyard
		refs     []string
		n, calls int
		err      error
	}{
		"none":      {},
		"a few":     {g: graveyard{dead: 3}, n: 3, calls: 1},
		"many":      {g: graveyard{dead: 40}, n: 40, calls: 4},
		"cancelled": {g: graveyard{dead: 5, stay: 5}, calls: 1},
		"broken":    {g: graveyard{dead: 40, broken: away}, n: 20, calls: 3, err: away},
		"named":     {g: graveyard{dead: 40}, refs: []string{"a", "b"}, n: 2, calls: 1},
	} {
		n, err := redrive(t.Context(), &c.g, "echo", c.refs)
		if n != c.n || c.g.calls != c.calls || !errors.Is(err, c.err) {
			t.Errorf("%s: %d in %d calls, %v", name, n, c.g.calls, err)
		}
	}
}
