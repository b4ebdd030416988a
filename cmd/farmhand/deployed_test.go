package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

func TestAwaitListed(t *testing.T) {
	farm := func(name, missing string) jobapi.FarmView {
		return jobapi.FarmView{Farm: skeleton.Farm{Name: name}, Missing: missing}
	}
	for name, c := range map[string]struct {
		lists [][]jobapi.FarmView // answers in turn; after the last, up is interrupted
		fails []string            // what the error names
	}{
		"listed":         {lists: [][]jobapi.FarmView{{farm("a", ""), farm("b", ""), farm("c", "")}}},
		"one after one":  {lists: [][]jobapi.FarmView{{}, {farm("a", "")}, {farm("a", ""), farm("b", "")}}},
		"gone and back":  {lists: [][]jobapi.FarmView{{farm("a", ""), farm("b", "1m0s")}, {farm("a", ""), farm("b", "")}}},
		"one for ever":   {lists: [][]jobapi.FarmView{{}, {farm("a", "")}}, fails: []string{"not list b"}},
		"nobody answers": {fails: []string{"not list a, b", "it starts"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked > len(c.lists) {
					if asked > len(c.lists)+1 {
						cancel()
					}
					http.Error(w, "it starts", http.StatusServiceUnavailable)
					return
				}
				_ = json.NewEncoder(w).Encode(jobapi.FarmList{Farms: c.lists[asked-1]})
			}))
			defer s.Close()
			client, err := jobclient.New(s.URL, "")
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			err = awaitListed(ctx, client, []string{"a", "b"})
			if (err != nil) != (c.fails != nil) {
				t.Fatal(err)
			}
			for _, want := range c.fails {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q named", err, want)
				}
			}
		})
	}
}
