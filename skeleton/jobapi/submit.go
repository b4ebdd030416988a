package jobapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"farmhand/internal/problem"
	"farmhand/skeleton"
	"farmhand/skeleton/ledger"
)

// How many tasks and bytes are staged in one go.
const (
	chunkTasks = ledger.MaxBatch
	chunkBytes = 1 << 20
)

// submit serves POST /jobs: a new job.
func (a *API) submit(w http.ResponseWriter, r *http.Request, q url.Values) error {
	return a.receive(w, r, q, "")
}

// append serves POST /jobs/{id}/tasks.
func (a *API) append(w http.ResponseWriter, r *http.Request, q url.Values) error {
	return a.receive(w, r, q, r.PathValue("id"))
}

// submission is one POST on its way into the ledger.
type submission struct {
	api   *API
	r     *http.Request
	job   string // of an append; "" = a new job
	media string
	o     options
	// single: a JSON body is the body of one task, since the query names the worker.
	single bool
	body   *meter
	stage  ledger.Stage
	chunk  []skeleton.NewTask
	bytes  int
	tasks  int
}

func (a *API) receive(w http.ResponseWriter, r *http.Request, query url.Values, job string) error {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return problem.New(http.StatusUnsupportedMediaType, "encoded", "encoded bodies are not taken").At("Content-Encoding", "send the body as it is")
	}
	if key := r.Header.Get("Idempotency-Key"); len(key) > skeleton.MaxKey || !plain(key) {
		return bad("Idempotency-Key", "the key is not valid", fmt.Sprintf("at most %d bytes of text", skeleton.MaxKey))
	}
	o, err := fromQuery(query)
	if err != nil {
		return err
	}
	items := false
	if v := query.Get(paramItems); v != "" {
		if err := setBool(paramItems, &items, v); err != nil {
			return err
		}
	}
	// The body may take longer to come than the server's timeouts: what counts is
	// that it keeps coming.
	body := &progressReader{r: r.Body, conn: http.NewResponseController(w)}
	s := &submission{api: a, r: r, job: job, o: o, single: o.worker != ""}
	s.body = &meter{r: body, ctx: r.Context(), share: &share{budget: a.memory}}
	r.Body = io.NopCloser(s.body) // the server closes its own
	defer s.body.share.shrink(0)
	if err := s.run(items); err != nil {
		s.abort()
		return err
	}
	return s.commit(w)
}

// run decodes the body into the stage.
func (s *submission) run(items bool) error {
	media, _, err := mime.ParseMediaType(s.r.Header.Get("Content-Type"))
	if err != nil {
		media = "application/octet-stream"
	}
	s.media = media
	limit := s.api.cfg.MaxBody
	lines := media == "application/x-ndjson" || media == "application/ndjson" || media == "application/jsonl"
	if items && !lines {
		return bad(paramItems, "only the lines of an NDJSON body can be items by this parameter", `send them as application/x-ndjson, or as a JSON document: {"worker": "thumbnail", "items": […]}`)
	}
	if media == "application/json" && !s.single {
		err = decodeJSON(s.r.Body, &s.o, limit, s.begin, s.take)
	} else if err = s.begin(); err == nil {
		switch {
		case lines:
			err = decodeLines(s.r.Body, s.o, items, limit, s.take)
		case media == "multipart/form-data":
			err = decodeParts(s.r, s.o, limit, s.take)
		default:
			err = decodeOne(s.r, s.o, limit, s.take)
		}
	}
	if err != nil {
		return err
	}
	if s.tasks == 0 && !s.o.open {
		return problem.New(http.StatusUnprocessableEntity, "empty", "the submission holds no task").At("tasks", `send at least one task, or "open": true to append them later`)
	}
	return s.flush()
}

// begin checks the options, all of which are known now, and opens the stage.
func (s *submission) begin() error {
	ctx := s.r.Context()
	sub := ledger.Submission{Key: s.r.Header.Get("Idempotency-Key")}
	farm := s.o.worker
	if s.job != "" {
		name, ok := splitJob(s.job)
		if !ok {
			_, err := s.api.job(s.job)
			return err
		}
		if farm != "" && farm != name {
			return bad("worker", "the job belongs to "+quote(name), "leave worker out when appending")
		}
		if err := s.o.ofJob(); err != nil {
			return err
		}
		farm = name
		sub.Append = true
		s.o.open = true
	}
	if s.o.callback != "" {
		if err := s.api.cfg.Callback(s.o.callback); err != nil {
			return bad("callback", err.Error(), "use an allowed host (farmhand_callback_allow of the dispatcher)")
		}
	}
	if s.o.wait > s.api.cfg.MaxWait {
		return bad("wait", "it is longer than an answer may be held", "at most "+s.api.cfg.MaxWait.String())
	}
	if farm == "" {
		return s.nobody()
	}
	f, l, err := s.api.takingFarm(ctx, farm)
	if err != nil {
		return err
	}
	if s.job == "" {
		if s.job, err = s.api.ids.next(f.Name); err != nil {
			return err
		}
	} else if _, err := l.Job(ctx, s.job); err != nil {
		return err
	}
	if s.o.defaults.Deadline == 0 && s.o.defaults.Due.IsZero() {
		s.o.defaults.Deadline = f.Settings.EffectiveDeadline()
	}
	sub.Job = skeleton.Job{ID: s.job, Ordered: s.o.ordered, Callback: s.o.callback, Open: s.o.open}
	s.stage, err = l.Stage(ctx, sub)
	return err
}

// nobody says that no worker is named, and what is likely the cause.
func (s *submission) nobody() error {
	fix := `name it in the query, ?worker=thumbnail; a JSON document that names it is sent with Content-Type: application/json`
	if s.media == "application/json" {
		fix = `name it in the document, options before tasks: {"worker": "thumbnail", "tasks": […]}`
	}
	return problem.New(http.StatusUnprocessableEntity, "bad-worker", "no worker is named").At("worker", fix)
}

// take stages a task, in chunks.
func (s *submission) take(t skeleton.NewTask) error {
	s.chunk = append(s.chunk, t)
	s.bytes += len(t.Body)
	s.tasks++
	if len(s.chunk) >= chunkTasks || s.bytes >= chunkBytes {
		return s.flush()
	}
	return nil
}

func (s *submission) flush() error {
	if len(s.chunk) == 0 {
		return nil
	}
	err := s.stage.Add(s.r.Context(), s.chunk)
	clear(s.chunk) // the bodies may go
	s.chunk, s.bytes = s.chunk[:0], 0
	s.body.passed()
	return err
}

// abort gives up the stage, also when the client is gone.
func (s *submission) abort() {
	if s.stage == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.r.Context()), 5*time.Second)
	defer cancel()
	if err := s.stage.Abort(ctx); err != nil {
		s.api.cfg.Log.Warn("a stage is left to the sweeper", "job", s.job, "error", err)
	}
}

// silence is how long a body may pause: less than the gateway waits for an
// answer (60 s), so that the client is told.
const silence = 30 * time.Second

// progressReader moves the connection's deadlines on as long as bytes come: the
// one to read, and the one to write the answer when the body is here. Both are
// of the real clock.
type progressReader struct {
	r     io.Reader
	conn  *http.ResponseController
	begun bool
}

// Read implements io.Reader.
func (p *progressReader) Read(b []byte) (int, error) {
	if !p.begun {
		p.begun = true
		if err := p.extend(); err != nil {
			return 0, err
		}
	}
	n, err := p.r.Read(b)
	if n > 0 && err == nil {
		err = p.extend()
	}
	return n, err
}

func (p *progressReader) extend() error {
	now := time.Now()
	err := errors.Join(p.conn.SetReadDeadline(now.Add(silence)), p.conn.SetWriteDeadline(now.Add(silence+writeTime)))
	if errors.Is(err, http.ErrNotSupported) {
		return nil // a test without a connection
	}
	return err
}
