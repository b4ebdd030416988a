package platform

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	stand "github.com/nats-io/nats-streaming-server/server"
	"github.com/nats-io/nats-streaming-server/stores"

	"farmhand/internal/secret"
	"farmhand/internal/stanlink"
)

// broker is NATS Streaming inside the platform. It keeps its messages in the
// state folder, and has stored what it acknowledges.
type broker struct {
	p     *Platform
	token string
	nats  *natsd.Options
	stan  *stand.Options

	mu     sync.Mutex // guards server
	server *stand.StanServer
}

// openBroker runs the broker on loopback, behind a token.
func (p *Platform) openBroker(token string) (*broker, error) {
	address, err := p.natsAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	dir := p.state.path("nats")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	monitor, err := reservePort()
	if err != nil {
		return nil, err
	}
	defer monitor.release()
	_, monitorPort, err := net.SplitHostPort(monitor.address)
	if err != nil {
		return nil, err
	}
	b := &broker{p: p, token: token}
	b.nats = &natsd.Options{Host: host, Port: number, HTTPHost: "127.0.0.1", NoSigs: true, NoLog: true,
		Authorization: token, MaxPayload: asyncPayload}
	if b.nats.HTTPPort, err = strconv.Atoi(monitorPort); err != nil {
		return nil, err
	}
	b.stan = stand.GetDefaultOptions()
	b.stan.ID, b.stan.StoreType, b.stan.FilestoreDir, b.stan.Token = asyncCluster, stores.TypeFile, dir, token
	b.stan.FileStoreOpts = stores.DefaultFileStoreOptions // synced before it is acknowledged
	b.stan.StoreLimits = limits()
	b.stan.CustomLogger = brokerLog{p.log}
	// Clients are on this machine: one that does not answer is gone.
	b.stan.ClientHBInterval, b.stan.ClientHBTimeout, b.stan.ClientHBFailCount = 5*time.Second, 5*time.Second, 2
	if err := b.start(); err != nil {
		return nil, err
	}
	full := (&url.URL{Scheme: "nats", User: url.User(token), Host: address}).String()
	if err := writeFile(p.state.path("nats.url"), []byte(full+"\n")); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// limits are what the broker keeps of its channels, of what was consumed too: it
// knows no other way to forget. Only tasks are kept without limit, since nobody
// counts how many wait; the dispatcher refuses a channel that would drop some.
func limits() stores.StoreLimits {
	l := stores.DefaultStoreLimits // 1,000,000 messages, 1 GB
	l.MaxChannels = 1000
	calls := stores.ChannelLimits{}
	calls.MaxMsgs, calls.MaxBytes = maxWaitingCalls*11/10, maxWaitingBytes*5/4
	tasks := stores.ChannelLimits{}
	tasks.MaxMsgs, tasks.MaxBytes, tasks.MaxAge = -1, -1, -1
	l.PerChannel = map[string]*stores.ChannelLimits{asyncSubject: &calls, "farmhand.tasks.>": &tasks}
	return l
}

// start runs the server; stop and start again are for tests.
func (b *broker) start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stan.FileStoreOpts.TruncateUnexpectedEOF = false
	server, err := stand.RunServerWithOpts(b.stan, b.nats)
	if err != nil && strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error()) {
		b.p.log.Warn("the broker's last write was cut off, by a kill or a power failure: what it had not acknowledged is dropped", "error", err)
		b.stan.FileStoreOpts.TruncateUnexpectedEOF = true
		server, err = stand.RunServerWithOpts(b.stan, b.nats)
	}
	if err != nil {
		return fmt.Errorf("the broker of asynchronous calls: %w (its data is in %s; --nats-listen sets another port)", err, b.stan.FilestoreDir)
	}
	b.server = server
	return nil
}

func (b *broker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		b.server.Shutdown()
		b.server = nil
	}
}

func (b *broker) address() string { return net.JoinHostPort(b.nats.Host, strconv.Itoa(b.nats.Port)) }

// url is the address with the token; functions get it without, and the token as
// the secret farmhand-nats.
func (b *broker) url() string         { return "nats://" + b.token + "@" + b.address() }
func (b *broker) functionURL() string { return "nats://" + b.address() }
func (b *broker) monitorURL() string {
	return "http://" + net.JoinHostPort(b.nats.HTTPHost, strconv.Itoa(b.nats.HTTPPort))
}

// waiting says how many calls the worker has not got, and at most how many bytes
// they are.
func (b *broker) waiting() (calls, bytes int, err error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(b.monitorURL() + stand.ChannelsPath + "?subs=1&channel=" + asyncSubject)
	if err != nil {
		return 0, 0, fmt.Errorf("the broker's monitoring: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return 0, 0, nil // nothing was ever published
	}
	var c stand.Channelz
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil || resp.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("the broker's monitoring: %s: %w", resp.Status, errors.Join(err))
	}
	waiting := 0
	sent := max(c.FirstSeq, 1) - 1
	for _, s := range c.Subscriptions {
		if s.QueueName == asyncSubject+":"+asyncGroup {
			sent = max(sent, s.LastSent)
			waiting += s.PendingCount
		}
	}
	if c.LastSeq > sent {
		waiting += int(c.LastSeq - sent)
	}
	if waiting > 0 {
		bytes = int(min(c.Bytes, maxWaitingBytes))
	}
	return waiting, bytes, nil
}

// natsToken is the token of the broker, made once.
func (p *Platform) natsToken() (string, error) {
	file := p.state.path("secrets", secret.NATSToken)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := writeFile(file, []byte(rand.Text())); err != nil {
			return "", err
		}
	}
	return p.state.readSecret("secrets", secret.NATSToken)
}

// natsAddress is where the broker listens: as configured, else where it did last
// time, else on any free port.
func (p *Platform) natsAddress() (string, error) {
	address := p.config.NATSListen
	if host, port, _ := net.SplitHostPort(address); port == "0" {
		if raw, err := os.ReadFile(p.state.path("nats.url")); err == nil {
			if u, err := url.Parse(strings.TrimSpace(string(raw))); err == nil && u.Port() != "" {
				last := net.JoinHostPort(host, u.Port())
				if l, err := net.Listen("tcp", last); err == nil {
					return last, l.Close()
				}
			}
		}
	}
	l, err := listen(address, "--nats-listen")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// clientID names a client of the broker after the host, as CE does, and the
// state folder. One platform at a time has that folder's lock, so nobody else
// has the name; and the next platform there takes over at once what its
// predecessor was given when it was killed.
func (p *Platform) clientID(prefix string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	sum := sha256.Sum256([]byte(p.state.dir))
	return stanlink.ClientID(prefix + host + "-" + hex.EncodeToString(sum[:4]))
}

// brokerLog is the broker's log. What it notes of itself is nothing for users.
type brokerLog struct{ log *slog.Logger }

func (l brokerLog) Noticef(format string, v ...any) { l.debug(format, v...) }
func (l brokerLog) Debugf(format string, v ...any)  { l.debug(format, v...) }
func (l brokerLog) Tracef(format string, v ...any)  { l.debug(format, v...) }
func (l brokerLog) Warnf(format string, v ...any) {
	l.log.Warn("broker", "text", fmt.Sprintf(format, v...))
}
func (l brokerLog) Errorf(format string, v ...any) {
	l.log.Error("broker", "text", fmt.Sprintf(format, v...))
}
func (l brokerLog) Fatalf(format string, v ...any) {
	l.log.Error("broker", "text", fmt.Sprintf(format, v...))
}
func (l brokerLog) debug(format string, v ...any) {
	l.log.Debug("broker", "text", fmt.Sprintf(format, v...))
}
