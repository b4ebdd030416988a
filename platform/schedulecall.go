package platform

import (
	"context"
	"io"
	"net/http"
)

// callScheduled calls a function as the cron-connector does: by POST with an
// empty body, through the gateway, which counts, bounds and drains it like any
// other call. A synchronous one is not cut off when the platform ends: it ends
// with its replica. An asynchronous one is over when it is queued: from then on it
// outlives the platform, and the next may come while it still runs.
func (p *Platform) callScheduled(function string, async bool) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.config.WriteTimeout)
	defer cancel()
	route := functionPrefix
	if async {
		route = asyncPrefix
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+route+function+"."+Namespace, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", "farmhand-cron/"+p.config.Version)
	resp, err := p.upstream.RoundTrip(req) // follows no redirect
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
