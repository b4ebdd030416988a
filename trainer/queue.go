package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Function is the name of the function that serves tickets.
const Function = "trainer"

// Queue posts to the gateway's asynchronous route. It needs no credentials: a ticket
// proves itself. It is safe for concurrent use.
type Queue struct {
	url    string
	client *http.Client
}

// postTimeout bounds a post: the gateway only stores it.
const postTimeout = 10 * time.Second

// NewQueue makes a Queue of the gateway at rawURL.
func NewQueue(rawURL string) (*Queue, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("trainer: %q is no URL of a gateway: want http://HOST:PORT", rawURL)
	}
	return &Queue{url: strings.TrimSuffix(u.String(), "/") + "/async-function/" + Function, client: &http.Client{
		Timeout:       postTimeout,
		Transport:     &http.Transport{MaxIdleConns: 2, IdleConnTimeout: 5 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Post a ticket.
func (q *Queue) Post(ctx context.Context, t Ticket) error {
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := q.client.Do(req)
	if err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // the beginning tells enough
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("trainer: the gateway answers %d to a slice: %s", resp.StatusCode, strings.TrimSpace(string(text)))
	}
	return nil
}

// Close idle connections.
func (q *Queue) Close() { q.client.CloseIdleConnections() }
