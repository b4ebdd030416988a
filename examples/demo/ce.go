package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"
)

// mostOfCE is the most replicas of a function that plain CE has.
const mostOfCE = 5

// showCE shows that the platform behaves as plain CE: it has 1 to 5 replicas
// whatever is asked for, and makes one asynchronous call at a time.
func (f *farm) showCE(ctx context.Context) error {
	for _, c := range []struct{ asked, want int }{{0, 1}, {7, mostOfCE}, {1, 1}} {
		if err := f.gateway.Scale(ctx, thumbnail, c.asked); err != nil {
			return err
		}
		fn, err := f.gateway.Function(ctx, thumbnail, false)
		if err != nil {
			return err
		}
		fmt.Printf("CE: asked for %d replicas, there are %d\n", c.asked, fn.Replicas)
		if int(fn.Replicas) != c.want {
			return fmt.Errorf("%d replicas, want %d", fn.Replicas, c.want)
		}
	}
	return f.showSerial(ctx)
}

// showSerial posts asynchronous calls at once to the one replica that there is,
// which takes one at a time: it would refuse the others if they were made at once.
func (f *farm) showSerial(ctx context.Context) error {
	const calls = 5
	statuses := make(chan string, calls)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		statuses <- r.Header.Get("X-Function-Status")
	}))
	defer receiver.Close()
	begun := time.Now()
	for range calls {
		req, err := f.call(ctx, "/async-function/", int(f.speed/10)) // 100 ms
		if err != nil {
			return err
		}
		req.Header.Set("X-Callback-Url", receiver.URL)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusAccepted {
			return fmt.Errorf("an asynchronous call is answered with %s", resp.Status)
		}
	}
	accepted := time.Since(begun)
	for range calls {
		select {
		case status := <-statuses:
			if status != "200" {
				return fmt.Errorf("an asynchronous call came to %s: they are not made one after the other", status)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fmt.Printf("CE: %d asynchronous calls accepted in %s, made one after the other in %s\n", calls, accepted.Round(time.Millisecond), time.Since(begun).Round(10*time.Millisecond))
	return nil
}
