package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

// burst is a stream of Monte Carlo tasks.
type burst struct {
	tasks, rate int           // in all, and a second
	service     time.Duration // of a task, about
	kills       []kill
}

// job that was posted.
type job struct {
	id, worker string
	tasks      int
	durability string // of the queue
}

// burstEvery is the time between posts of a burst.
const burstEvery = 250 * time.Millisecond

// run posts a burst as one job, kills what it says on the way, and waits until all is
// done. The tasks' seeds begin at seed.
func (f *farm) run(ctx context.Context, s *show, b burst, seed int) (j job, killed []string, err error) {
	if j, err = f.open(ctx, montecarlo, b.tasks); err != nil {
		return j, nil, err
	}
	at := make([]time.Duration, b.tasks)
	for i := range at {
		at[i] = time.Duration(i) * time.Second / time.Duration(b.rate)
	}
	paths := int(f.speed * b.service.Seconds())
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return f.offer(gctx, j, at, burstEvery, func(body *bytes.Buffer, i int) { price(body, seed+i, paths) })
	})
	group.Go(func() (err error) {
		killed, err = f.killOnTheWay(gctx, s, j, b.kills)
		return err
	})
	if err := group.Wait(); err != nil {
		return j, killed, err
	}
	return j, killed, f.finish(ctx, j)
}

// open begins a job of so many tasks, which come bit by bit.
func (f *farm) open(ctx context.Context, worker string, tasks int) (job, error) {
	s, err := f.client.Submit(ctx, jobclient.Options{"worker": worker, "open": "true"}, jobclient.Piece{Type: ndjson})
	return job{id: s.Job.ID, worker: worker, tasks: tasks, durability: s.Durability}, err
}

// offer adds the tasks of a job as they come, all that are due since the last look in
// one piece, and closes it. What an outage has delayed is posted at once after it.
func (f *farm) offer(ctx context.Context, j job, at []time.Duration, every time.Duration, task func(*bytes.Buffer, int)) error {
	begun := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for next := 0; next < len(at); {
		var body bytes.Buffer
		for ; next < len(at) && at[next] <= time.Since(begun); next++ {
			task(&body, next)
		}
		if body.Len() > 0 {
			if _, err := f.client.Append(ctx, j.id, nil, jobclient.Piece{Type: ndjson, Body: body.Bytes()}); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err := f.client.CloseJob(ctx, j.id)
	return err
}

const ndjson = "application/x-ndjson"

// price writes a Monte Carlo task: an option price; strikes and seeds vary.
func price(body *bytes.Buffer, seed, paths int) {
	fmt.Fprintf(body, `{"spot":100,"strike":%d,"rate":0.02,"volatility":0.25,"maturity":1,"kind":"call","paths":%d,"seed":%d}`+"\n", 80+seed%41, paths, seed)
}

// call is a call of the worker by itself, not by the farm.
func (f *farm) call(ctx context.Context, route string, paths int) (*http.Request, error) {
	var body bytes.Buffer
	price(&body, 0, paths)
	return http.NewRequestWithContext(ctx, http.MethodPost, f.url+route+montecarlo, &body)
}

// measure calls the worker and returns how many paths it simulates in a second:
// the best of five, since the machine may do other things too. So the bursts are
// what they should be on any machine.
func (f *farm) measure(ctx context.Context) (speed float64, err error) {
	const paths = 1_000_000
	for range 5 {
		req, err := f.call(ctx, "/function/", paths)
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		if err := resp.Body.Close(); err != nil {
			return 0, err
		}
		if resp.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("%s answers %s", montecarlo, resp.Status)
		}
		speed = max(speed, paths/time.Since(begun).Seconds())
	}
	return speed, nil
}

// submitImages posts every image below a folder as a task.
func (f *farm) submitImages(ctx context.Context, dir string) (job, error) {
	files, err := folder(dir)
	if err != nil {
		return job{}, err
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, file := range files {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {mime.TypeByExtension(filepath.Ext(file))}, "Content-Disposition": {`form-data; name="image"`}})
		if err != nil {
			return job{}, err
		}
		raw, err := os.Open(file)
		if err != nil {
			return job{}, err
		}
		_, err = io.Copy(part, raw)
		if err = errors.Join(err, raw.Close()); err != nil {
			return job{}, err
		}
	}
	if err := w.Close(); err != nil {
		return job{}, err
	}
	s, err := f.client.Submit(ctx, jobclient.Options{"worker": thumbnail}, jobclient.Piece{Type: w.FormDataContentType(), Body: body.Bytes()})
	return job{id: s.Job.ID, worker: thumbnail, tasks: len(files), durability: s.Durability}, err
}

// folder lists the image files below a folder.
func folder(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasPrefix(mime.TypeByExtension(filepath.Ext(path)), "image/") {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no images in %s", dir)
	}
	return files, err
}

// reached waits until so many tasks of a job are done or dead, or the job has
// ended without them.
func (f *farm) reached(ctx context.Context, j job, n int) error {
	for {
		v, err := f.client.Job(ctx, j.id)
		if err != nil {
			return err
		}
		if v.Done+v.Dead >= n || v.Ended != nil {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// finish waits until a job is done.
func (f *farm) finish(ctx context.Context, j job) error { return f.reached(ctx, j, j.tasks) }

// tally of results.
type tally struct {
	tasks, done, dead, lost, twice, late, again int
}

// count adds all results of a job.
func (c *tally) count(ctx context.Context, f *farm, j job) error {
	seen := map[int]bool{}
	_, end, err := f.client.Results(ctx, j.id, jobclient.Query{}, func(r jobapi.Result) error {
		if seen[r.Index] {
			c.twice++
		}
		seen[r.Index] = true
		c.again += r.Lost
		if r.Late {
			c.late++
		}
		if r.State == skeleton.Dead {
			c.dead++
		} else {
			c.done++
		}
		return nil
	})
	c.tasks += j.tasks
	c.lost += j.tasks - len(seen)
	if err == nil && !end {
		err = fmt.Errorf("job %s has not ended", j.id)
	}
	return err
}
