// Command montecarlo is an example worker: it prices a European option by
// simulation, so that a task costs as much processor time as the client wants.
//
// The task is a JSON object, every field named once:
//
//	curl http://127.0.0.1:8080/function/montecarlo -d '{"spot":100,"strike":105,
//	  "rate":0.02,"volatility":0.25,"maturity":1,"kind":"call","paths":100000,"seed":7}'
//
// and so is the result; the true price is within four standard errors:
//
//	{"price":8.672916992480936,"stderr":0.0423509324834707,"paths":100000,"seed":7}
//
// Rate and volatility are per year and maturity is in years. paths (100,000)
// and seed (0) may be left out; paths are rounded up to pairs, of which a
// standard error needs two. The same task always gives the same result.
package main

import (
	"context"
	"log/slog"
	"net/http"

	"farmhand/internal/fn"
)

func main() {
	fn.Main("montecarlo", func(context.Context, *slog.Logger) (*fn.Service, error) {
		return &fn.Service{Handler: http.HandlerFunc(handle)}, nil
	})
}
