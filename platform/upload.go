package platform

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"farmhand/internal/problem"
)

// lingering is how long the rest of a body that nobody wants may take to come:
// a connection on which it does serves further requests, and one that is closed
// while it comes may lose the answer.
const lingering = time.Second

var longAgo = time.Unix(1, 0)

// promptly lets no answer wait for a body that stopped coming: net/http would
// read on until the server's timeout, and then have no time left to write.
func promptly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		u := &upload{body: r.Body, control: http.NewResponseController(w)}
		defer u.end()
		r = r.WithContext(r.Context()) // a copy: net/http looks at its own body
		r.Body = u
		next.ServeHTTP(w, r)
	})
}

// upload is the body of a request on its way in. It survives failed attempts to
// forward it, and remembers what went wrong with it. A nil upload is a body that
// was never to come.
type upload struct {
	body    io.Reader
	control *http.ResponseController

	whole   atomic.Bool // all of it has come
	stopped atomic.Bool // no more is read
	reading sync.Mutex  // held while reading; guards err
	err     error       // why no more of it comes
}

func (u *upload) Read(b []byte) (int, error) {
	u.reading.Lock()
	defer u.reading.Unlock()
	if u.stopped.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := u.body.Read(b)
	if err == io.EOF {
		u.whole.Store(true)
	} else if err != nil {
		u.err = err
	}
	return n, err
}

// Close does nothing: a failed attempt closes what it forwards.
func (u *upload) Close() error { return nil }

// missing reports whether some of it has not come yet.
func (u *upload) missing() bool { return u != nil && !u.whole.Load() }

// stop ends reading, also one that is under way, and says what reading came to:
// an overdue error when the body was waited for until now.
func (u *upload) stop() error {
	if !u.missing() {
		return nil
	}
	u.stopped.Store(true)
	_ = u.control.SetReadDeadline(longAgo)
	u.reading.Lock()
	defer u.reading.Unlock()
	return u.err
}

// end is for the end of the handler: nothing reads from now on, and there is
// time to send the answer.
func (u *upload) end() {
	if !u.missing() {
		return
	}
	_ = u.stop() // the handler knows
	now := time.Now()
	_ = u.control.SetReadDeadline(now.Add(lingering))
	_ = u.control.SetWriteDeadline(now.Add(headroom))
}

// overdue reports whether reading a body ended because time was up.
func overdue(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// bodyProblem tells a client what went wrong with its own body.
func bodyProblem(err error) *problem.Problem {
	if overdue(err) {
		return problem.New(http.StatusRequestTimeout, "body-timeout", "the rest of the request's body did not come in time").
			At("body", "send all of the body that Content-Length announces, or end it with a chunk of length 0")
	}
	return problem.New(http.StatusBadRequest, "bad-body", "the request's body is broken off or malformed: "+err.Error()).
		At("body", "send as many bytes as Content-Length announces, or well-formed chunks")
}
