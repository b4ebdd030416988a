package redisledger_test

import (
	"context"
	"farmhand/internal/redistest"
	"farmhand/skeleton/ledger/redisledger"
	"fmt"
	"testing"
)

func TestZ(t *testing.T) {
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	ctx := context.Background()
	st, _ := redisledger.Open(ctx, c, redisledger.Options{})
	l := st.Farm("w")
	l.Take(ctx, "", 1)
	c.ConfigResetStat(ctx)
	for i := 0; i < 5000; i++ {
		l.Take(ctx, "", 10)
	}
	fmt.Println(c.Info(ctx, "commandstats").Val())
	c.ConfigResetStat(ctx)
	for i := 0; i < 5000; i++ {
		l.Beat(ctx, "x")
	}
	fmt.Println(c.Info(ctx, "commandstats").Val())
}
