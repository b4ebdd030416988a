package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/openfaas/faas-provider/types"

	"farmhand/internal/secret"
)

// Functions asks a running platform, of this or another process, for its
// functions and their replicas. It reads the credentials from the state folder.
func Functions(ctx context.Context, info Info) ([]Detail, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	var list []types.FunctionStatus
	if err := inspect(ctx, info, "/system/functions", &list); err != nil {
		return nil, err
	}
	details := make([]Detail, len(list))
	for i, f := range list {
		if err := inspect(ctx, info, "/system/function/"+url.PathEscape(f.Name)+"?usage=1", &details[i]); err != nil {
			return nil, err
		}
	}
	return details, nil
}

// Async asks a running platform for its asynchronous calls; nil where it takes
// none.
func Async(ctx context.Context, info Info) (*AsyncCalls, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	var answer struct {
		Async *AsyncCalls `json:"async"`
	}
	err := inspect(ctx, info, "/system/info", &answer)
	return answer.Async, err
}

const inspectTime = 10 * time.Second

// inspect reads what a platform answers to a GET.
func inspect(ctx context.Context, info Info, path string, v any) error {
	s := state{dir: info.State}
	user, err := s.readSecret("credentials", secret.GatewayUser)
	if err != nil {
		return err
	}
	password, err := s.readSecret("credentials", secret.GatewayPass)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, info.URL+path, nil)
	if err != nil {
		return err
	}
	req.SetBasicAuth(user, password)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(v)
}
