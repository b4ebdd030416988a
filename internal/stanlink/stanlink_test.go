package stanlink_test

import (
	"context"
	"errors"
	"testing"
	"time"

	stand "github.com/nats-io/nats-streaming-server/server"
	"github.com/nats-io/nats-streaming-server/stores"
	"github.com/nats-io/stan.go"
	"go.uber.org/goleak"

	"farmhand/internal/stanlink"
	"farmhand/internal/stantest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func receive[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(20 * time.Second):
		t.Fatalf("in vain waited until %s", what)
	}
	return v
}

func ready(t *testing.T, l *stanlink.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := l.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// A broker that keeps its data takes the client back; one that has forgotten it
// is connected to afresh. Either way what is subscribed goes on.
func TestBrokerRestarts(t *testing.T) {
	for name, change := range map[string]func(*stand.Options){
		"kept": func(*stand.Options) {}, "forgotten": func(o *stand.Options) { o.StoreType = stores.TypeMemory }} {
		t.Run(name, func(t *testing.T) {
			s := stantest.Start(t, change)
			got := make(chan string, 16)
			l := stanlink.Open(stanlink.Config{URL: s.URL, Cluster: stantest.Cluster, Client: "a", PingSeconds: 1, Up: func(c stan.Conn) error {
				_, err := c.QueueSubscribe("x", "g", func(m *stan.Msg) { got <- string(m.Data) }, stan.DurableName("d"), stan.DeliverAllAvailable())
				return err
			}})
			defer l.Close()
			ready(t, l)
			if err := l.Publish("x", []byte("1")); err != nil || receive(t, "1 comes", got) != "1" {
				t.Fatal(err)
			}
			s.Stop()
			if err := l.Publish("x", []byte("lost")); err == nil {
				t.Error("published to nobody")
			}
			s.Again()
			deadline := time.After(20 * time.Second)
			for l.Publish("x", []byte("2")) != nil {
				select {
				case <-deadline:
					t.Fatal("it does not come back")
				case <-time.After(10 * time.Millisecond): // the broker tells nobody that it is back
				}
			}
			for receive(t, "2 comes", got) != "2" {
			}
		})
	}
}

func TestPublishing(t *testing.T) {
	s := stantest.Start(t)
	l := stanlink.Open(stanlink.Config{URL: s.URL, Cluster: stantest.Cluster, Client: stanlink.ClientID("a.b/c")})
	ready(t, l)
	if err := l.PublishAll("x", [][]byte{[]byte("1"), []byte("2"), []byte("3")}); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 3)
	if _, err := s.Connect("other").Subscribe("x", func(m *stan.Msg) { got <- string(m.Data) }, stan.DeliverAllAvailable()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1", "2", "3"} {
		if v := receive(t, want+" comes", got); v != want {
			t.Errorf("%s, want %s", v, want)
		}
	}
	if l.MaxPayload() != 1<<20 {
		t.Error(l.MaxPayload())
	}
	if err := l.Publish("x", make([]byte, 2<<20)); err == nil {
		t.Error("more than the broker takes")
	}
	l.Close()
	l.Close()
	if err := l.Publish("x", nil); !errors.Is(err, stanlink.ErrDown) || l.Up() || l.Ready(t.Context()) == nil || l.MaxPayload() != 0 {
		t.Errorf("after its end: %v", err)
	}
}

// Of two clients of one name the second gets in when the first has gone.
func TestNameIsALock(t *testing.T) {
	s := stantest.Start(t)
	open := func() *stanlink.Link {
		return stanlink.Open(stanlink.Config{URL: s.URL, Cluster: stantest.Cluster, Client: "one", Quiet: true})
	}
	first := open()
	defer first.Close()
	ready(t, first)
	second := open()
	defer second.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	if err := second.Ready(ctx); !errors.Is(err, stanlink.ErrDown) {
		t.Errorf("two have the name: %v", err)
	}
	first.Close()
	ready(t, second)
}
