// Package callback tells a job's client by HTTP that the job has ended.
//
// Where a callback may go is the operator's decision: a list of hosts or URL
// prefixes, empty by default. It is checked when a job is submitted and again
// when the callback is made; the addresses a name resolves to are checked when
// the connection is made, so that no name leads to the machine itself or to the
// metadata service of a cloud.
//
// The ledger remembers which callbacks are owed, so each is made at least once
// although dispatchers crash; a receiver tells repetitions by X-Farm-Delivery.
package callback

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// Headers of a callback.
const (
	HeaderJob       = "X-Farm-Job"
	HeaderDelivery  = "X-Farm-Delivery"  // the same for all tries of one callback
	HeaderTimestamp = "X-Farm-Timestamp" // Unix seconds of this try
	HeaderSignature = "X-Farm-Signature" // sha256=HMAC(secret, timestamp "." body), in hex
)

// DefaultTimeout bounds one try.
const DefaultTimeout = 10 * time.Second

// waits are the pauses between tries: eight tries in about ten minutes.
var waits = []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute}

// MaxTries is how often a callback is tried.
var MaxTries = len(waits) + 1

// Config of a Sender.
type Config struct {
	Allow   []string         // hosts, *.domains or URL prefixes callbacks may go to; none: no callbacks
	Secret  string           // signs callbacks; "" leaves them unsigned
	Timeout time.Duration    // of one try (10 s)
	Now     func() time.Time // nil: time.Now
	Uniform func() float64   // draws from [0, 1); nil: math/rand
}

// Sender checks and makes callbacks. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	allow  []rule
	client *http.Client
}

// New makes a sender. An entry of Allow that makes no sense is an error.
func New(cfg Config) (*Sender, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Uniform == nil {
		cfg.Uniform = rand.Float64
	}
	s := &Sender{cfg: cfg}
	for _, entry := range cfg.Allow {
		r, err := parseRule(entry)
		if err != nil {
			return nil, err
		}
		s.allow = append(s.allow, r)
	}
	s.client = &http.Client{
		Transport:     newTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// Summary is the body of a callback.
type Summary struct {
	ID        string    `json:"id"`
	Farm      string    `json:"farm"`
	Total     int       `json:"total"`
	Done      int       `json:"done"`
	Dead      int       `json:"dead"`
	Cancelled int       `json:"cancelled"`
	Late      int       `json:"late"`
	Created   time.Time `json:"created"`
	Ended     time.Time `json:"ended"`
}

// Notify makes one try. After an error, again is when to try next; 0 gives up.
// It implements dispatch.Notifier.
func (s *Sender) Notify(ctx context.Context, due ledger.CallbackDue) (again time.Duration, err error) {
	to, rule, err := s.check(due.Job.Callback)
	if err != nil {
		return 0, err // the list has changed since
	}
	body, err := json.Marshal(summary(due.Job))
	if err != nil {
		return 0, fmt.Errorf("callback: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(withRule(ctx, rule), http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("callback: %w", err)
	}
	stamp := strconv.FormatInt(s.cfg.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "farmhand")
	req.Header.Set(HeaderJob, due.Job.ID)
	req.Header.Set(HeaderDelivery, delivery(due.Job))
	req.Header.Set(HeaderTimestamp, stamp)
	if s.cfg.Secret != "" {
		req.Header.Set(HeaderSignature, Sign(s.cfg.Secret, stamp, body))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return s.again(due.Try), fmt.Errorf("callback to %s: %w", place(to), cause(err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10)) // its answer does not matter
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return 0, nil
	case code == http.StatusGone:
		return 0, fmt.Errorf("callback: the receiver wants no more (410)")
	case code >= 300 && code < 400:
		return s.again(due.Try), fmt.Errorf("callback: the receiver redirects (%d): name the final URL", code)
	default:
		return s.again(due.Try), fmt.Errorf("callback: the receiver answered %d", code)
	}
}

// place is a URL without what may be secret: the query.
func place(u *url.URL) string { return u.Host + u.EscapedPath() }

// cause is what went wrong without the whole URL, which net/http puts before it.
func cause(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// again is the pause after a try, with a fifth of jitter; 0 after the last.
func (s *Sender) again(try int) time.Duration {
	if try >= MaxTries {
		return 0
	}
	return time.Duration((0.8 + 0.4*s.cfg.Uniform()) * float64(waits[max(0, try-1)]))
}

func summary(j skeleton.Job) Summary {
	return Summary{ID: j.ID, Farm: j.Farm, Total: j.Total, Done: j.Done, Dead: j.Dead, Cancelled: j.Cancelled, Late: j.Late,
		Created: j.Created, Ended: j.Ended}
}

// delivery names one end of a job: a job that is redriven and ends again makes
// another callback.
func delivery(j skeleton.Job) string {
	sum := sha256.Sum256([]byte(j.ID + "|" + strconv.FormatInt(j.Ended.UnixMicro(), 10)))
	return hex.EncodeToString(sum[:12])
}
