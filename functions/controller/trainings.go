package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/trainer"
	"farmhand/trainer/redisruns"
)

// watchTrainings posts slices of trainings again that were lost. stop ends that.
func watchTrainings(rdb redis.UniversalClient, gatewayURL, token string, log *slog.Logger) (stop func(), err error) {
	queue, err := trainer.NewQueue(gatewayURL)
	if err != nil {
		return nil, fmt.Errorf("farmhand_gateway_url: %w", err)
	}
	tick := time.NewTicker(trainer.WatchEvery)
	w := trainer.StartWatch(redisruns.New(rdb, nil), queue, trainer.Key(token), tick.C, log)
	return func() {
		w.Stop()
		tick.Stop()
		queue.Close()
	}, nil
}
