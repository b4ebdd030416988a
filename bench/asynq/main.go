// Command asynq drains pre-filled no-op tasks with hibiken/asynq, the peer of
// farmhand bench queue: same bodies, same concurrency, same kind of Redis. It
// is a module of its own, so that the product never depends on its peer.
//
// asynq is given its fastest documented settings: a task check interval of a
// millisecond, no retention, logging off.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) {}

func run() error {
	addr := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	tasks := flag.Int("tasks", 100_000, "tasks to drain")
	concurrency := flag.Int("concurrency", 50, "tasks in progress at once")
	flag.Parse()
	opt := asynq.RedisClientOpt{Addr: *addr}
	if err := fill(opt, *tasks); err != nil {
		return err
	}
	var seen atomic.Int64
	done := make(chan struct{})
	srv := asynq.NewServer(opt, asynq.Config{Concurrency: *concurrency, TaskCheckInterval: time.Millisecond, Logger: silent{}, LogLevel: asynq.FatalLevel})
	started := time.Now()
	err := srv.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if seen.Add(1) == int64(*tasks) {
			close(done)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	<-done
	rate := float64(*tasks) / time.Since(started).Seconds()
	srv.Shutdown()
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{"tasks_per_s": rate})
}

// fill enqueues the tasks from several goroutines; it is not timed.
func fill(opt asynq.RedisClientOpt, n int) error {
	client := asynq.NewClient(opt)
	defer client.Close()
	const writers = 16
	errs := make(chan error, writers)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if _, err := client.Enqueue(asynq.NewTask("noop", binary.BigEndian.AppendUint64(nil, uint64(i)))); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}
