package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"farmhand/internal/secret"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/stream"
	"farmhand/skeleton/stream/natsstream"
)

// streamConfig says where NATS Streaming is; without an address there is no
// stream.
type streamConfig struct {
	URL     string `env:"farmhand_nats_url"`
	Cluster string `env:"farmhand_nats_cluster" envDefault:"faas-cluster"`
	Monitor string `env:"farmhand_nats_monitor_url"` // tells the limits of channels
	Lossy   bool   `env:"farmhand_nats_lossy"`       // takes channels with limits
}

// streams are the dispatcher's connections to NATS Streaming; nil without any.
type streams struct {
	stream *stream.Stream
	broker *natsstream.Broker
	sink   *natsstream.Sink
}

// startStream connects in the background: the dispatcher serves without the
// broker too.
func startStream(c streamConfig, owner string, maxBody int, store ledger.Store, log *slog.Logger) (*streams, error) {
	if c.URL == "" {
		return nil, nil
	}
	token, err := secret.Read(secret.NATSToken)
	if err != nil && !errors.Is(err, secret.ErrMissing) {
		return nil, err
	}
	conf := natsstream.Config{URL: c.URL, Token: token, Cluster: c.Cluster, Client: "farmhand-" + owner, Monitor: c.Monitor, Lossy: c.Lossy, Log: log}
	s := &streams{}
	if s.broker, err = natsstream.Open(conf); err != nil {
		return nil, fmt.Errorf("farmhand_nats_url: %w", err)
	}
	if s.sink, err = natsstream.OpenSink(conf); err != nil {
		s.broker.Close()
		return nil, fmt.Errorf("farmhand_nats_url: %w", err)
	}
	s.stream = stream.Start(stream.Config{Store: store, Source: s.broker, Letters: s.broker, Sink: s.sink, MaxBody: maxBody, Log: log})
	return s, nil
}

// stop leaves what is not acknowledged to other dispatchers.
func (s *streams) stop(ctx context.Context) error {
	if s == nil {
		return nil
	}
	err := s.stream.Stop(ctx)
	s.sink.Close()
	s.broker.Close()
	return err
}
