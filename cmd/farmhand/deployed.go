package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"farmhand/platform"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

const (
	farmPatience = time.Minute // covers an injected cold start of dispatcher and controller
	farmEvery    = 200 * time.Millisecond
)

// awaitFarms waits until the dispatcher knows every deployed worker, and says
// so: a submit right after up --deploy finds them. Where no dispatcher is
// deployed, there is nothing to wait for.
func awaitFarms(ctx context.Context, out io.Writer, info platform.Info) error {
	functions, err := platform.Functions(ctx, info)
	if err != nil {
		return err
	}
	var workers []string
	dispatcher := false
	for _, f := range functions {
		dispatcher = dispatcher || f.Name == "dispatcher"
		if f.Labels != nil && skeleton.IsWorker(*f.Labels) {
			workers = append(workers, f.Name)
		}
	}
	if !dispatcher || len(workers) == 0 {
		return nil
	}
	token, err := os.ReadFile(filepath.Join(info.State, "secrets", "farmhand-token"))
	if err != nil {
		return err
	}
	client, err := jobclient.New(info.URL+"/function/dispatcher", strings.TrimSpace(string(token)))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, farmPatience)
	defer cancel()
	if err := awaitListed(ctx, client, workers); err != nil {
		return fmt.Errorf("the platform is up, but its farms are not: %w; see farmhand status, and dispatcher and controller in %s", err, filepath.Join(info.State, "logs"))
	}
	fmt.Fprintf(out, "farms       %s\n", strings.Join(workers, ", "))
	return nil
}

// awaitListed asks a dispatcher until it lists all of these workers. It has to
// ask again and again: the API tells of farms only when asked.
func awaitListed(ctx context.Context, client *jobclient.Client, workers []string) error {
	var last error // of a call that was tried again
	client.Notify = func(err error, _ time.Duration) { last = err }
	missing := workers
	tick := time.NewTicker(farmEvery)
	defer tick.Stop()
	for {
		list, err := client.Farms(ctx)
		if err == nil {
			if last, missing = nil, unlisted(workers, list); len(missing) == 0 {
				return nil
			}
		} else if ctx.Err() == nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the dispatcher does not list %s (%w)", strings.Join(missing, ", "), cmp.Or(last, ctx.Err()))
		}
	}
}

// unlisted names the workers that are not in a dispatcher's list, or only as
// ones that were deployed once.
func unlisted(workers []string, list jobapi.FarmList) (missing []string) {
	known := map[string]bool{}
	for _, f := range list.Farms {
		known[f.Name] = f.Missing == ""
	}
	for _, name := range workers {
		if !known[name] {
			missing = append(missing, name)
		}
	}
	return missing
}
