// Package stantest runs NATS Streaming for tests.
package stantest

import (
	"net"
	"strconv"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	stand "github.com/nats-io/nats-streaming-server/server"
	"github.com/nats-io/nats-streaming-server/stores"
	"github.com/nats-io/stan.go"
)

// Cluster is the broker's cluster id.
const Cluster = "faas-cluster"

// Server is a broker with its data in a folder of the test.
type Server struct {
	URL     string // with the token
	Monitor string // of its monitoring

	t    testing.TB
	opts *stand.Options
	nats *natsd.Options
	stan *stand.StanServer
}

// Start runs a broker until the test ends. change may set its limits and its
// store; it keeps its messages over a restart unless the store is in memory.
func Start(t testing.TB, change ...func(*stand.Options)) *Server {
	t.Helper()
	o := stand.GetDefaultOptions()
	o.ID, o.StoreType, o.FilestoreDir = Cluster, stores.TypeFile, t.TempDir()
	o.FileStoreOpts = stores.DefaultFileStoreOptions
	o.ClientHBInterval, o.ClientHBTimeout, o.ClientHBFailCount = time.Second, time.Second, 2
	for _, f := range change {
		f(o)
	}
	s := &Server{t: t, opts: o, nats: &natsd.Options{Host: "127.0.0.1", Port: free(t), HTTPHost: "127.0.0.1", HTTPPort: free(t),
		NoSigs: true, NoLog: true, Authorization: "s3cret", MaxPayload: 1 << 20}}
	s.opts.Token = s.nats.Authorization
	s.URL = "nats://s3cret@127.0.0.1:" + strconv.Itoa(s.nats.Port)
	s.Monitor = "http://127.0.0.1:" + strconv.Itoa(s.nats.HTTPPort)
	t.Cleanup(s.Stop)
	s.Again()
	return s
}

func free(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Stop ends the broker; clients see it go away.
func (s *Server) Stop() {
	if s.stan != nil {
		s.stan.Shutdown()
		s.stan = nil
	}
}

// Again starts it once more, at the same address.
func (s *Server) Again() {
	s.t.Helper()
	var err error
	if s.stan, err = stand.RunServerWithOpts(s.opts, s.nats); err != nil {
		s.t.Fatal(err)
	}
}

// Connect makes a client of the test's own.
func (s *Server) Connect(client string) stan.Conn {
	s.t.Helper()
	c, err := stan.Connect(Cluster, client, stan.NatsURL(s.URL))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() }) // twice is fine
	return c
}
