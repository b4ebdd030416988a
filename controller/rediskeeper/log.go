package rediskeeper

import (
	"context"
	"fmt"

	"farmhand/controller"
)

// kept is how many receipts of a farm are kept.
const kept = 2000

// Log keeps the last receipts of each farm in a list.
type Log struct{ *Store }

var _ controller.Log = Log{}

func (l Log) key(farm string) string { return "farmhand:{" + farm + "}:receipts" }

// Append implements controller.Log.
func (l Log) Append(ctx context.Context, entries []controller.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	pipe := l.rdb.Pipeline()
	for _, e := range entries {
		pipe.LPush(ctx, l.key(e.Farm), e.Data)
		pipe.LTrim(ctx, l.key(e.Farm), 0, kept-1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("rediskeeper: receipts: %w", err)
	}
	return nil
}

// Tail implements controller.Log.
func (l Log) Tail(ctx context.Context, farm string, n int) ([][]byte, error) {
	list, err := l.rdb.LRange(ctx, l.key(farm), 0, int64(n-1)).Result()
	if err != nil {
		return nil, fmt.Errorf("rediskeeper: receipts: %w", err)
	}
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out, nil
}
