package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/redis/go-redis/v9"

	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/jobclient"
)

// FootprintConfig of the footprint benchmark.
type FootprintConfig struct {
	Dispatch DispatchConfig
	Tasks    int           // of the NDJSON job (100,000)
	Images   int           // streamed (2,000)
	Bytes    int           // of an image, about (2 MB)
	Idle     time.Duration // how long idleness is watched (20 s)
}

// Footprint measures what the suite takes: processor at rest, memory under a
// large job and a large stream of images, size and start of a function.
func Footprint(ctx context.Context, c FootprintConfig) (r *Report, err error) {
	g, err := newDispatchRig(ctx, c.Dispatch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	r = NewReport(c.Dispatch.Seed)
	for _, step := range []func(context.Context, FootprintConfig, *Report) error{g.size, g.idle, g.largeJob, g.imageStream} {
		if err := step(ctx, c, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// process finds a process of this rig by the name of its program; "" is this
// program itself.
func (g *dispatchRig) process(name string) (procfs.Proc, error) {
	if name == "" {
		return procfs.Self()
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return procfs.Proc{}, err
	}
	for _, p := range all {
		exe, err := p.Executable()
		if err != nil || filepath.Base(exe) != name {
			continue // it ended, or is not ours
		}
		env, err := p.Environ()
		if err != nil {
			continue
		}
		for _, v := range env {
			if len(v) > 5 && v[:5] == "HOME=" && strings.HasPrefix(v[5:], g.state) {
				return p, nil
			}
		}
	}
	return procfs.Proc{}, fmt.Errorf("bench: no process of %s", name)
}

// size measures a function's program: bytes, resident memory at rest, start.
func (g *dispatchRig) size(ctx context.Context, c FootprintConfig, r *Report) error {
	for _, name := range []string{"dispatcher", benchWorker} {
		p, err := g.process(name)
		if err != nil {
			return err
		}
		exe, err := p.Executable()
		if err != nil {
			return err
		}
		info, err := os.Stat(exe)
		if err != nil {
			return err
		}
		stat, err := p.Stat()
		if err != nil {
			return err
		}
		r.Figures[name+"_binary_bytes"] = float64(info.Size())
		r.Figures[name+"_idle_rss_bytes"] = float64(stat.ResidentMemory())
		if name == benchWorker {
			var starts []float64
			for range c.Dispatch.Runs {
				took, err := startToReady(ctx, exe)
				if err != nil {
					return err
				}
				starts = append(starts, milliseconds(took))
			}
			r.Add("function_start_to_ready_ms", starts)
		}
	}
	return nil
}

// startToReady runs a function's program until it says that it is ready.
func startToReady(ctx context.Context, exe string) (time.Duration, error) {
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = []string{"farmhand_listen=" + address, "farmhand_log_level=ERROR"}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill() // it has done its part
		_ = cmd.Wait()
	}()
	deadline := started.Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if took, ok := probe(ctx, "http://"+address+"/_/ready", started); ok {
			return took, nil
		}
	}
	return 0, fmt.Errorf("bench: %s did not become ready", exe)
}

// probe asks once whether a function is ready.
func probe(ctx context.Context, url string, started time.Time) (time.Duration, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, false
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	return time.Since(started), resp.StatusCode == http.StatusOK
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// idle watches the processor time of platform, dispatcher and Redis at rest.
func (g *dispatchRig) idle(ctx context.Context, c FootprintConfig, r *Report) error {
	names := []string{"", "dispatcher", "controller"}
	used := func() (total float64, err error) {
		for _, name := range names {
			p, err := g.process(name)
			if err != nil {
				return 0, err
			}
			stat, err := p.Stat()
			if err != nil {
				return 0, err
			}
			total += stat.CPUTime()
		}
		return total, nil
	}
	before, err := used()
	if err != nil {
		return err
	}
	select {
	case <-time.After(c.Idle):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := used()
	r.Figures["idle_cpu_cores"] = (after - before) / c.Idle.Seconds()
	return err
}

// largeJob posts one NDJSON job and watches the dispatcher grow.
func (g *dispatchRig) largeJob(ctx context.Context, c FootprintConfig, r *Report) error {
	p, err := g.process("dispatcher")
	if err != nil {
		return err
	}
	peak := func() (float64, error) {
		status, err := p.NewStatus()
		return float64(status.VmHWM), err
	}
	before, err := peak()
	if err != nil {
		return err
	}
	body := bytes.Repeat([]byte(tinyTask+"\n"), c.Tasks)
	started := time.Now()
	s, err := g.client.Submit(ctx, jobclient.Options{"worker": benchWorker, "timeout": "30s"}, jobclient.Piece{Type: "application/x-ndjson", Body: body})
	if err != nil {
		return err
	}
	r.Figures["submit_tasks_per_s"] = float64(c.Tasks) / time.Since(started).Seconds()
	after, err := peak()
	if err != nil {
		return err
	}
	r.Figures["dispatcher_growth_bytes"] = after - before
	_, err = g.client.Cancel(ctx, s.Job.ID)
	return err
}

// imageStream sends many images in pieces while workers take them, and watches
// the memory of Redis.
func (g *dispatchRig) imageStream(ctx context.Context, c FootprintConfig, r *Report) error {
	if c.Images == 0 {
		return nil
	}
	if err := g.gateway.Scale(ctx, "thumbnail", 2); err != nil {
		return err
	}
	rdb, err := g.redis()
	if err != nil {
		return err
	}
	defer rdb.Close()
	picture, err := noise(c.Bytes)
	if err != nil {
		return err
	}
	r.Figures["image_bytes"] = float64(len(picture))
	watch, stop := context.WithCancel(ctx)
	peak := make(chan float64, 1)
	go func() { peak <- watchMemory(watch, rdb) }()
	started := time.Now()
	done, err := g.streamImages(ctx, c.Images, picture)
	stop()
	r.Figures["redis_peak_bytes"] = <-peak
	r.Figures["image_stream_s"] = time.Since(started).Seconds()
	if err == nil && done != c.Images {
		err = fmt.Errorf("bench: %d of %d images came back", done, c.Images)
	}
	return err
}

// streamImages submits the same picture again and again in pieces of 8 MB, and
// takes the results as they come.
func (g *dispatchRig) streamImages(ctx context.Context, n int, picture []byte) (done int, err error) {
	per := max(1, (8<<20)/len(picture))
	job := ""
	type taken struct {
		n   int
		err error
	}
	results := make(chan taken, 1)
	for sent := 0; sent < n; {
		k := min(per, n-sent)
		piece, err := form(k, picture)
		if err != nil {
			return 0, err
		}
		if job == "" {
			s, err := g.client.Submit(ctx, jobclient.Options{"worker": "thumbnail", "open": "true"}, piece)
			if err != nil {
				return 0, err
			}
			job = s.Job.ID
			go func() {
				var t taken
				_, _, t.err = g.client.Results(ctx, job, jobclient.Query{Follow: true, Ack: true}, func(jobapi.Result) error { t.n++; return nil })
				results <- t
			}()
		} else if _, err := g.client.Append(ctx, job, nil, piece); err != nil {
			return 0, err
		}
		sent += k
	}
	if _, err := g.client.CloseJob(ctx, job); err != nil {
		return 0, err
	}
	t := <-results
	return t.n, t.err
}

func form(k int, picture []byte) (jobclient.Piece, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for range k {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {"image/jpeg"}, "Content-Disposition": {`form-data; name="image"`}})
		if err != nil {
			return jobclient.Piece{}, err
		}
		if _, err := part.Write(picture); err != nil {
			return jobclient.Piece{}, err
		}
	}
	err := w.Close()
	return jobclient.Piece{Type: w.FormDataContentType(), Body: body.Bytes()}, err
}

// noise draws a picture that compresses badly: about the wanted size as JPEG.
func noise(bytesWanted int) ([]byte, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	side := 64
	for {
		img := image.NewRGBA(image.Rect(0, 0, side, side))
		for y := range side {
			for x := range side {
				v := rng.Uint32()
				img.SetRGBA(x, y, color.RGBA{uint8(v), uint8(v >> 8), uint8(v >> 16), 255})
			}
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 90}); err != nil {
			return nil, err
		}
		if b.Len() >= bytesWanted {
			return b.Bytes(), nil
		}
		side = side * 5 / 4
	}
}

// redis connects to the platform's Redis.
func (g *dispatchRig) redis() (*redis.Client, error) {
	url, err := g.platform.RedisURL()
	if err != nil {
		return nil, err
	}
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(opts), nil
}

// watchMemory returns the most memory Redis used until ctx ended.
func watchMemory(ctx context.Context, rdb *redis.Client) (peak float64) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := rdb.InfoMap(ctx, "memory").Result()
		if err == nil {
			if used, err := strconv.ParseFloat(info["Memory"]["used_memory"], 64); err == nil {
				peak = max(peak, used)
			}
		}
		select {
		case <-ctx.Done():
			return peak
		case <-tick.C:
		}
	}
}
