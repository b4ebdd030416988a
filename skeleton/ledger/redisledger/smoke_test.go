package redisledger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"farmhand/internal/redistest"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
)

func TestSmoke(t *testing.T) {
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	ctx := context.Background()
	store := redisledger.New(c, redisledger.Options{})
	err := store.Check(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l := store.Farm("w")
	d, err := store.Durability(ctx)
	must(err)
	if d != "process" {
		t.Fatal(d)
	}
	must(store.PublishRoster(ctx, skeleton.Roster{Farms: []skeleton.Farm{{Name: "w", Settings: skeleton.Settings{Slots: 50}, Ready: 1, Target: 1}}}))
	st, err := l.Stage(ctx, ledger.Submission{Job: skeleton.Job{ID: "w~" + ulid.Make().String()}, Key: "k"})
	must(err)
	n := 100000
	tasks := make([]skeleton.NewTask, n)
	for i := range tasks {
		tasks[i] = skeleton.NewTask{Body: []byte("12345678"), Class: 5}
	}
	must(st.Add(ctx, tasks))
	r, err := st.Commit(ctx)
	must(err)
	fmt.Printf("%+v\n", r)
	t0 := time.Now()
	done := 0
	var ta, tb time.Duration
	for done < n {
		t1 := time.Now()
		tk, err := l.Take(ctx, "me", 50)
		must(err)
		ta += time.Since(t1)
		if len(tk.Leases) == 0 {
			t.Fatalf("%+v", tk)
		}
		outs := make([]ledger.Outcome, len(tk.Leases))
		for i, l := range tk.Leases {
			outs[i] = ledger.Outcome{Lease: l, Kind: ledger.Success, Status: 200, Body: []byte("ok")}
		}
		t1 = time.Now()
		se, err := l.Settle(ctx, outs, 0)
		must(err)
		tb += time.Since(t1)
		for _, v := range se.Verdicts {
			if v != "done" {
				t.Fatal(v)
			}
		}
		done += len(outs)
	}
	fmt.Println(c.Info(ctx, "commandstats").Val())
	fmt.Println("tasks/s", float64(n)/time.Since(t0).Seconds(), ta, tb)
	g, err := l.Gauges(ctx)
	must(err)
	fmt.Printf("%+v\n", g)
	a, err := l.Audit(ctx)
	must(err)
	fmt.Printf("%+v\n", a)
	j, err := l.Job(ctx, r.Job.ID)
	must(err)
	fmt.Printf("%+v\n", j)
	p, err := l.Results(ctx, r.Job.ID, ledger.Query{Limit: 2})
	must(err)
	fmt.Printf("%+v\n", p)
}
