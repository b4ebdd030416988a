package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/openfaas/faas-provider/types"

	"farmhand/internal/problem"
	"farmhand/internal/stanlink"
	"farmhand/skeleton/callback"
)

// What gateway and worker of asynchronous calls agree on, as OpenFaaS CE has it:
// either side can be put in another's place.
const (
	asyncPrefix   = "/async-function/"
	asyncCluster  = "faas-cluster"
	asyncSubject  = "faas-request" // also the durable's name
	asyncGroup    = "faas"
	asyncGateway  = "faas-publisher-" // and the host's name
	asyncWorkerID = "faas-worker-"

	headerCallback = "X-Callback-Url"
)

// Bounds of asynchronous calls.
const (
	asyncBodyCE = 256_000 // bytes of a body, of plain CE
	asyncBody   = 4 << 20 // else
	// asyncPayload is what the broker takes: a body of 4 MiB in base64, and its
	// headers.
	asyncPayload = 8 << 20
)

// async is the queue of asynchronous calls: the broker, the gateway's connection
// to it, and the worker.
type async struct {
	broker  *broker
	link    *stanlink.Link // the gateway's
	backlog *backlog
	slots   chan struct{}    // a call under way has one
	allowed *callback.Sender // where callbacks may go
	worker  *asyncWorker
}

// openAsync starts the broker and connects the gateway. The worker comes later,
// when there is something to call.
func (p *Platform) openAsync(ctx context.Context) (*async, error) {
	token, err := p.natsToken()
	if err != nil || p.config.NATSListen == "none" {
		return nil, err
	}
	own := []string{p.url}
	if u, err := url.Parse(p.url); err == nil {
		own = append(own, "http://localhost:"+u.Port())
	}
	allowed, err := callback.New(callback.Config{Allow: append(own, p.config.CallbackAllow...)})
	if err != nil {
		return nil, fmt.Errorf("--callback-allow: %w", err)
	}
	b, err := p.openBroker(token)
	if err != nil {
		return nil, err
	}
	if longest := p.config.UpstreamTimeout + callbackTime; p.config.AckWait < longest {
		p.log.Warn("--ack-wait is shorter than a call and its callback may take: such calls are made again while they run", "ack_wait", p.config.AckWait, "longest", longest)
	}
	a := &async{broker: b, allowed: allowed, backlog: &backlog{}, slots: make(chan struct{}, p.config.AsyncInflight)}
	a.link = stanlink.Open(stanlink.Config{URL: b.url(), Cluster: asyncCluster, Client: p.clientID(asyncGateway), Log: p.log})
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := a.link.Ready(ctx); err != nil { // it goes on trying
		p.log.Warn("asynchronous calls are refused until the broker answers", "error", err)
	}
	return a, nil
}

// environment is what functions that speak to the broker need; empty without one.
func (a *async) environment() map[string]string {
	env := map[string]string{"farmhand_nats_url": "", "farmhand_nats_cluster": asyncCluster, "farmhand_nats_monitor_url": ""}
	if a != nil {
		env["farmhand_nats_url"], env["farmhand_nats_monitor_url"] = a.broker.functionURL(), a.broker.monitorURL()
	}
	return env
}

// address is where the broker listens, or "".
func (a *async) address() string {
	if a == nil {
		return ""
	}
	return a.broker.address()
}

// AsyncCalls are the asynchronous calls that are accepted and not over.
type AsyncCalls struct {
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	AtOnce  int `json:"at_once"` // the most that run at once: more replicas do not change that
}

// calls counts them; nil without a broker.
func (a *async) calls() *AsyncCalls {
	if a == nil {
		return nil
	}
	return &AsyncCalls{Waiting: a.backlog.waiting(), Running: len(a.slots), AtOnce: cap(a.slots)}
}

// start lets the worker take calls.
func (a *async) start(p *Platform) error {
	if a == nil {
		return nil
	}
	waiting, bytes, err := a.broker.waiting()
	if err != nil {
		return err
	}
	a.backlog.restore(waiting, bytes)
	if waiting > 0 {
		p.log.Info("asynchronous calls of before are waiting", "calls", waiting)
	}
	a.worker = p.newAsyncWorker(a)
	return nil
}

// drain takes no more calls; those under way go on.
func (a *async) drain() {
	if a != nil && a.worker != nil {
		a.worker.drain()
	}
}

// stop ends it all when the calls under way have ended. Those that were not
// finished stay with the broker until the next start.
func (a *async) stop() {
	if a == nil {
		return
	}
	if a.worker != nil {
		a.worker.stop()
	}
	a.link.Close()
	a.broker.stop()
}

// queueCall serves POST /async-function/NAME[/path]: the call is stored, and
// made later. As with CE the function need not exist.
func (p *Platform) queueCall(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(headerServedBy, p.servedBy)
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	name, path, deep := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), asyncPrefix), "/")
	if deep {
		path = "/" + path
	}
	if name == "" {
		http.NotFound(w, r)
		return
	}
	if p.async == nil {
		queueError(w, "the platform runs without a broker (--nats-listen none)")
		return
	}
	back, err := p.async.callbackURL(r.Header.Get(headerCallback))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, ok := p.asyncBody(w, r)
	if !ok {
		return
	}
	header := r.Header.Clone()
	begun := strconv.FormatInt(time.Now().UnixNano(), 10)
	header.Set(headerStart, begun)
	id, known := header.Get(headerCallID), true
	if id == "" {
		id, known = uuid.NewString(), false
		header.Set(headerCallID, id)
	}
	raw, err := json.Marshal(types.QueueRequest{Header: header, Host: r.Host, Body: body, Method: r.Method, Path: path,
		QueryString: r.URL.RawQuery, Function: name, CallbackURL: back})
	if err != nil {
		queueError(w, err.Error())
		return
	}
	if !p.async.backlog.enter(len(raw)) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("Error queuing request: %d calls or %d bytes wait already", maxWaitingCalls, maxWaitingBytes), http.StatusTooManyRequests)
		return
	}
	if err := p.async.link.Publish(asyncSubject, raw); err != nil {
		p.async.backlog.leave(len(raw))
		p.log.Warn("an asynchronous call was not queued", "function", name, "error", err)
		queueError(w, err.Error())
		return
	}
	if !known {
		w.Header().Set(headerCallID, id)
	}
	w.Header().Set(headerStart, begun)
	w.WriteHeader(http.StatusAccepted)
}

func queueError(w http.ResponseWriter, text string) {
	http.Error(w, "Error queuing request: "+text, http.StatusInternalServerError)
}

// callbackURL reads where the answer shall go; nil means nowhere. A relative URL
// is taken, as CE does, and fails later.
func (a *async) callbackURL(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	if u.IsAbs() {
		if err := a.allowed.Check(raw); err != nil {
			return nil, fmt.Errorf("%s: %w; start the platform with --callback-allow HOST", headerCallback, err)
		}
	}
	return u, nil
}

// asyncBody reads a body that is no larger than it may be.
func (p *Platform) asyncBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	limit, status, whose := asyncBody, http.StatusRequestEntityTooLarge, "asynchronous calls"
	if p.config.CE {
		limit, status, whose = asyncBodyCE, http.StatusInternalServerError, "OpenFaaS CE"
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		problem.Write(w, bodyProblem(err))
		return nil, false
	}
	if len(body) > limit {
		size := max(r.ContentLength, int64(len(body)))
		http.Error(w, fmt.Sprintf("Error queuing request: request body too large for %s (%d bytes), maximum: %d bytes", whose, size, limit), status)
		return nil, false
	}
	return body, true
}
