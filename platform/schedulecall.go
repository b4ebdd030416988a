package platform

import (
	"context"
	"io"
	"net/http"
)

// callScheduled calls a function as the cron-connector does: by POST with an
// empty body, through the gateway's synchronous route, which counts, bounds and
// drains it like any other call. It is not cut off when the platform ends: it
// ends with its replica.
func (p *Platform) callScheduled(function string) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.config.WriteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/function/"+function+"."+Namespace, nil)
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
