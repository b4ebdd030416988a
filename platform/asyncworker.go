package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/stan.go"
	"github.com/openfaas/faas-provider/types"

	"farmhand/internal/stanlink"
)

const (
	asyncAgent  = "openfaas-ce/nats-queue-worker" // what functions of CE see
	asyncAnswer = 16 << 20                        // bytes of an answer that a callback carries
	// callbackTime bounds a callback.
	callbackTime = 10 * time.Second
)

// hopHeaders are of one connection, and not passed on.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Content-Length"}

// asyncWorker makes the queued calls. Whatever comes of one, it is told to the
// callback once, and the call is done: there is no second try for a function
// that fails. A call that is not done within ack_wait, or whose platform is
// killed, is made again with the same X-Call-Id.
type asyncWorker struct {
	p    *Platform
	a    *async
	link *stanlink.Link

	client    *http.Client // of the gateway
	callbacks *http.Client

	draining atomic.Bool
	ctx      context.Context
	cancel   context.CancelFunc
	mu       sync.Mutex // held to begin a call, and to end that
	runs     sync.WaitGroup
}

func (p *Platform) newAsyncWorker(a *async) *asyncWorker {
	n := p.config.AsyncInflight
	w := &asyncWorker{p: p, a: a}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(p.ctx)) // calls under way outlast the order to stop
	// Connections are not kept: none may be closing just when a call begins.
	w.client = &http.Client{
		Timeout:       p.config.WriteTimeout + headroom,
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.callbacks = &http.Client{
		Timeout:       callbackTime,
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: w.client.CheckRedirect, // it would lose the body
	}
	w.link = stanlink.Open(stanlink.Config{URL: a.broker.url(), Cluster: asyncCluster, Client: p.clientID(asyncWorkerID), Log: p.log,
		Up: func(c stan.Conn) error {
			_, err := c.QueueSubscribe(asyncSubject, asyncGroup, w.deliver, stan.DurableName(asyncSubject), stan.DeliverAllAvailable(),
				stan.SetManualAckMode(), stan.MaxInflight(n), stan.AckWait(p.config.AckWait))
			return err
		}})
	return w
}

// deliver takes a message when there is a slot for it: with one slot, calls are
// made strictly one after the other.
func (w *asyncWorker) deliver(m *stan.Msg) {
	select {
	case w.a.slots <- struct{}{}:
	case <-w.ctx.Done():
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining.Load() {
		<-w.a.slots
		return // not acknowledged: it comes again
	}
	w.a.backlog.came(m.Sequence, len(m.Data))
	w.runs.Go(func() {
		defer func() { <-w.a.slots }()
		w.run(m)
	})
}

// drain begins no more calls.
func (w *asyncWorker) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draining.Store(true)
}

// stop waits for the calls under way, which end with the gateway.
func (w *asyncWorker) stop() {
	w.drain()
	ended := make(chan struct{})
	go func() {
		select {
		case <-w.p.hurry:
			w.cancel()
		case <-ended:
		}
	}()
	w.runs.Wait()
	close(ended)
	w.cancel()
	w.link.Close()
}

// outcome is what came of a call.
type outcome struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
	ours   bool // not by the function: it may not have seen the call to its end
}

func (w *asyncWorker) run(m *stan.Msg) {
	var q types.QueueRequest
	if err := json.Unmarshal(m.Data, &q); err != nil || q.Function == "" {
		w.p.log.Error("a message on "+asyncSubject+" is no queued call: dropped", "sequence", m.Sequence, "error", errors.Join(err))
		w.ack(m)
		return
	}
	id := q.Header.Get(headerCallID)
	if m.Redelivered {
		w.p.log.Warn("an asynchronous call is made again: it took longer than ack_wait, or was cut off", "function", q.Function, "call", id, "ack_wait", w.p.config.AckWait)
	}
	o := w.invoke(&q)
	if o.ours && o.status >= 500 && w.draining.Load() {
		return // cut off by the platform's own end: it is made again
	}
	w.p.log.Debug("an asynchronous call ended", "function", q.Function, "call", id, "status", o.status, "took", o.took)
	if q.CallbackURL != nil {
		if err := w.callback(&q, o); err != nil {
			if w.ctx.Err() != nil {
				return
			}
			w.p.log.Warn("a callback was not delivered, and will not be", "function", q.Function, "call", id, "error", err)
		}
	}
	w.ack(m)
}

func (w *asyncWorker) ack(m *stan.Msg) {
	if err := m.Ack(); err != nil {
		w.p.log.Warn("a finished asynchronous call could not be acknowledged: it will be made again", "sequence", m.Sequence, "error", err)
	}
}

// invoke makes the call through the gateway, like anybody else.
func (w *asyncWorker) invoke(q *types.QueueRequest) outcome {
	begun := time.Now()
	o, err := w.post(q)
	if err != nil {
		w.p.log.Debug("an asynchronous call got no answer", "function", q.Function, "error", err)
		o = outcome{status: http.StatusServiceUnavailable, header: http.Header{}, ours: true}
	}
	o.took = time.Since(begun)
	return o
}

func (w *asyncWorker) post(q *types.QueueRequest) (outcome, error) {
	target := w.p.url + functionPrefix + q.Function + q.Path
	if q.QueryString != "" {
		target += "?" + strings.TrimPrefix(q.QueryString, "?")
	}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, target, bytes.NewReader(q.Body))
	if err != nil {
		return outcome{}, err
	}
	for name, values := range q.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	dropHeaders(req.Header)
	req.Header.Set("User-Agent", asyncAgent)
	resp, err := w.client.Do(req)
	if err != nil {
		return outcome{}, err
	}
	defer resp.Body.Close()
	o := outcome{status: resp.StatusCode, header: resp.Header}
	if q.CallbackURL == nil {
		n, err := io.Copy(io.Discard, resp.Body) // the function may take its time
		o.ours = madeHere(o, int(min(n, 1)))
		return o, err
	}
	o.body, err = io.ReadAll(io.LimitReader(resp.Body, asyncAnswer+1))
	if err != nil {
		return outcome{}, err
	}
	o.ours = madeHere(o, len(o.body))
	if len(o.body) > asyncAnswer {
		o.status, o.body = http.StatusBadGateway, fmt.Appendf(nil, "the answer is larger than %d bytes\n", asyncAnswer)
		o.header = http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	}
	return o, nil
}

// madeHere reports whether an answer is the platform's own.
func madeHere(o outcome, size int) bool {
	return o.header.Get(headerInternal) != "" || o.status == http.StatusBadGateway && size == 0
}

// callback tells the answer to the URL that the caller named, once.
func (w *asyncWorker) callback(q *types.QueueRequest, o outcome) error {
	to := q.CallbackURL.String()
	if err := w.a.allowed.Check(to); err != nil {
		return fmt.Errorf("%s: %w; it takes an absolute URL of the gateway or of a host that --callback-allow names", headerCallback, err)
	}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, to, bytes.NewReader(o.body))
	if err != nil {
		return err
	}
	req.Header = o.header.Clone()
	dropHeaders(req.Header)
	req.Header.Del("User-Agent") // the function's answer is not who calls
	// One that answers with the headers it got must not have its callback called
	// back, for ever when that is an asynchronous call.
	req.Header.Del(headerCallback)
	for name, value := range map[string]string{headerCallID: q.Header.Get(headerCallID), headerDuration: seconds(o.took),
		"X-Function-Status": strconv.Itoa(o.status), "X-Function-Name": q.Function} {
		req.Header.Set(name, value)
	}
	resp, err := w.callbacks.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // what it says does not matter
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the receiver answered %s", resp.Status)
	}
	return nil
}

func dropHeaders(h http.Header) {
	for _, v := range h.Values("Connection") {
		for name := range strings.SplitSeq(v, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}
