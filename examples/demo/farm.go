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
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"farmhand/gateway"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

// farm is the platform of the demo, as a client sees it.
type farm struct {
	bin        string
	state      string
	gateway    *gateway.Client
	client     *jobclient.Client
	durability string
}

// up starts the platform in a folder of its own and deploys the stack file.
func up(ctx context.Context, bin string) (*farm, error) {
	state, err := os.MkdirTemp("", "farmhand-demo-")
	if err != nil {
		return nil, err
	}
	f := &farm{bin: bin, state: state}
	start := exec.CommandContext(ctx, filepath.Join(bin, "farmhand"), "up", "-d", "--deploy", "--state", state, "--stack", "stack.yml",
		"--prebuilt", filepath.Join(bin, "functions"), "--listen", "127.0.0.1:0", "--metrics-listen", "none", "--redis", "auto")
	var hints bytes.Buffer // how to end it: the demo does that itself
	start.Stdout, start.Stderr = os.Stdout, &hints
	if err := start.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("farmhand up: %w: %s", err, hints.String()), os.RemoveAll(state))
	}
	url, err := f.read("gateway.url")
	if err != nil {
		return nil, errors.Join(err, f.down())
	}
	creds := &gateway.Credentials{}
	for name, into := range map[string]*string{"credentials/basic-auth-user": &creds.User, "credentials/basic-auth-password": &creds.Password} {
		if *into, err = f.read(name); err != nil {
			return nil, errors.Join(err, f.down())
		}
	}
	token, err := f.read("secrets/farmhand-token")
	if err != nil {
		return nil, errors.Join(err, f.down())
	}
	if f.gateway, err = gateway.New(url, creds, gateway.Options{}); err != nil {
		return nil, errors.Join(err, f.down())
	}
	if f.client, err = jobclient.New(url+"/function/dispatcher", token); err != nil {
		return nil, errors.Join(err, f.down())
	}
	return f, nil
}

func (f *farm) read(name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(f.state, name))
	return strings.TrimSpace(string(raw)), err
}

// down ends the platform and removes its folder. It uses no context: it runs
// after an interruption too.
func (f *farm) down() error {
	stop := exec.Command(filepath.Join(f.bin, "farmhand"), "down", "--state", f.state)
	out, err := stop.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("farmhand down: %w: %s", err, out)
	}
	return errors.Join(err, os.RemoveAll(f.state))
}

// ready scales the workers and waits until the dispatcher knows them all.
func (f *farm) ready(ctx context.Context, replicas map[string]int) error {
	fmt.Println("scaling the workers; their cold start is injected, as OpenFaaS takes it")
	for name, n := range replicas {
		if err := f.gateway.Scale(ctx, name, n); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := f.client.Farms(ctx)
		if err != nil {
			return fmt.Errorf("the dispatcher does not answer: %w", err)
		}
		ready := 0
		for _, known := range list.Farms {
			if n, ok := replicas[known.Name]; ok && known.Ready == n {
				ready++
			}
		}
		if ready == len(replicas) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the workers did not become ready within a minute")
		case <-tick.C:
		}
	}
}

// submitSweep posts Monte Carlo tasks: one option price a task, strikes and
// seeds vary.
func (f *farm) submitSweep(ctx context.Context, n, paths int) (job string, err error) {
	var body bytes.Buffer
	for i := range n {
		fmt.Fprintf(&body, `{"spot":100,"strike":%d,"rate":0.02,"volatility":0.25,"maturity":1,"kind":"call","paths":%d,"seed":%d}`+"\n", 80+i%41, paths, i)
	}
	s, err := f.client.Submit(ctx, jobclient.Options{"worker": "montecarlo"}, jobclient.Piece{Type: "application/x-ndjson", Body: body.Bytes()})
	f.durability = s.Durability
	return s.Job.ID, err
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

// submitImages posts every image as a task.
func (f *farm) submitImages(ctx context.Context, files []string) (job string, err error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, file := range files {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {mime.TypeByExtension(filepath.Ext(file))}, "Content-Disposition": {`form-data; name="image"`}})
		if err != nil {
			return "", err
		}
		raw, err := os.Open(file)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(part, raw)
		if err = errors.Join(err, raw.Close()); err != nil {
			return "", err
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	s, err := f.client.Submit(ctx, jobclient.Options{"worker": "thumbnail"}, jobclient.Piece{Type: w.FormDataContentType(), Body: body.Bytes()})
	return s.Job.ID, err
}

// watch shows progress until all jobs have ended.
func (f *farm) watch(ctx context.Context, rows []row) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		line, pending := "", 0
		for _, r := range rows {
			j, err := f.client.Job(ctx, r.job)
			if err != nil {
				line, pending = line+fmt.Sprintf("  %s: %v", r.name, err), 1
				continue
			}
			pending += j.Pending
			line += fmt.Sprintf("  %s %d/%d", r.name, j.Done+j.Dead, j.Total)
		}
		fmt.Println(line)
		if pending == 0 || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tally of one job's results.
type tally struct {
	done, dead, twice, distinct, again int
}

// count reads all results of a job.
func (f *farm) count(ctx context.Context, job string) (c tally, err error) {
	seen := map[int]bool{}
	_, end, err := f.client.Results(ctx, job, jobclient.Query{}, func(r jobapi.Result) error {
		if seen[r.Index] {
			c.twice++
		}
		seen[r.Index] = true
		c.again += r.Lost
		if r.State == skeleton.Dead {
			c.dead++
		} else {
			c.done++
		}
		return nil
	})
	c.distinct = len(seen)
	if err == nil && !end {
		err = fmt.Errorf("job %s has not ended", job)
	}
	return c, err
}
