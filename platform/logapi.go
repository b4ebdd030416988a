package platform

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/openfaas/faas-provider/logs"
)

// serveLogs streams what a function has printed, a JSON message a line. Of a
// function that is not deployed there is nothing. The stream ends with what is
// there or, when it follows, with the gateway's write timeout.
func (p *Platform) serveLogs(w http.ResponseWriter, r *http.Request) {
	q, err := readLogQuery(r.URL.Query())
	if err != nil {
		writeError(w, p, err)
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(p.config.WriteTimeout + headroom)) // so that the end can be sent
	ctx, cancel := context.WithTimeout(r.Context(), p.config.WriteTimeout)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	w.Header().Set("Content-Type", "application/x-ndjson")
	_ = control.Flush() // a client that went away is seen below
	f, err := p.find(q.Name, q.Namespace)
	if err != nil {
		return
	}
	emit := func(line []byte) error {
		_, err := w.Write(line)
		return err
	}
	if err := p.logs.file(f.name).send(ctx, q, emit, control.Flush); err != nil && ctx.Err() == nil {
		p.log.Warn("a stream of logs was broken off", "function", f.name, "error", err)
	}
}

// readLogQuery reads what is asked for as faas-provider does, but says what is
// wrong with it.
func readLogQuery(query url.Values) (logs.Request, error) {
	q := logs.Request{Name: query.Get("name"), Namespace: query.Get("namespace"), Instance: query.Get("instance")}
	if q.Name == "" {
		return q, badRequest("name: missing; ask for ?name=FUNCTION")
	}
	q.Follow, _ = strconv.ParseBool(query.Get("follow")) // anything else is no
	if v := query.Get("tail"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			return q, refuse(http.StatusUnprocessableEntity, "tail=%.40q: want a whole number of lines; leave it out, or give 0, for all that are kept", v)
		}
		q.Tail = n
	}
	if v := query.Get("since"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return q, refuse(http.StatusUnprocessableEntity, "since=%.40q: want a time of RFC 3339, such as 2006-01-02T15:04:05Z (a + before an offset is written %%2B in a URL)", v)
		}
		q.Since = &t
	}
	return q, nil
}

// dropLog removes the log of a function, unless there is one of this name again.
func (p *Platform) dropLog(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.functions[name] != nil {
		return
	}
	if err := p.logs.drop(name); err != nil {
		p.log.Warn("cannot remove a log", "function", name, "error", err)
	}
}
