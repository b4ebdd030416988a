// Package function is a worker: Handle does one task.
package function

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	handler "github.com/openfaas/templates-sdk/go-http"
)

const maxRounds = 100_000_000

// task is what a client submits, result what it gets; any bytes would do.
type task struct {
	Text   string `json:"text"`
	Rounds int    `json:"rounds"`
}

type result struct {
	SHA256 string `json:"sha256"`
}

// Handle does the task in the body of a request. A 4xx says that the task is
// bad, and is final; an error is tried again. The context ends when the attempt
// has used up its time, or nobody waits for its answer any more.
func Handle(req handler.Request) (handler.Response, error) {
	var t task
	if err := json.Unmarshal(req.Body, &t); err != nil || t.Rounds < 1 || t.Rounds > maxRounds {
		return handler.Response{
			StatusCode: http.StatusUnprocessableEntity,
			Body:       fmt.Appendf(nil, `want {"text": "...", "rounds": N}, N from 1 to %d`, maxRounds),
		}, nil
	}
	sum, err := hash(req.Context(), t)
	if err != nil {
		return handler.Response{}, err
	}
	body, err := json.Marshal(result{SHA256: hex.EncodeToString(sum[:])})
	return handler.Response{Body: body, Header: http.Header{"Content-Type": {"application/json"}}}, err
}

// hash hashes the text, and the hash again, rounds times in all.
func hash(ctx context.Context, t task) ([sha256.Size]byte, error) {
	sum := sha256.Sum256([]byte(t.Text))
	for i := 1; i < t.Rounds; i++ {
		if i%10_000 == 1 && ctx.Err() != nil {
			return sum, ctx.Err()
		}
		sum = sha256.Sum256(sum[:])
	}
	return sum, nil
}
