package jobapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/ledger"
)

const followAll = "follow=1&ordered=1"

// Every way to post work brings every body back, in order.
func TestEveryContentType(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, echo)
	var form bytes.Buffer
	mw := multipart.NewWriter(&form)
	for _, text := range []string{"\xff\xd8one", "two"} {
		part, err := mw.CreatePart(textproto.MIMEHeader{"Content-Type": {"image/jpeg"}, "Content-Disposition": {`form-data; name="f"`}})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(part, text)
	}
	if err := mw.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path, media, body string
		want              []string
	}{
		"document":     {"/jobs", "application/json", `{"worker":"echo","tasks":[1,{"a":[2]},"x"]}`, []string{`1`, `{"a":[2]}`, `"x"`}},
		"items":        {"/jobs", "application/json", `{"worker":"echo","items":[{"body":{"n":1},"class":0},{"body_base64":"AAE=","type":"a/b","deadline":"1h"}]}`, []string{`{"n":1}`, "\x00\x01"}},
		"lines":        {"/jobs?worker=echo", "application/x-ndjson", "{\"n\":1}\n\n[2]\n3", []string{`{"n":1}`, `[2]`, `3`}},
		"item lines":   {"/jobs?worker=echo&items=1", "application/x-ndjson", `{"body":7,"tenant":"a"}` + "\n", []string{`7`}},
		"form":         {"/jobs?worker=echo", mw.FormDataContentType(), form.String(), []string{"\xff\xd8one", "two"}},
		"bytes":        {"/jobs?worker=echo", "image/png", "\x89PNG", []string{"\x89PNG"}},
		"one JSON":     {"/jobs?worker=echo", "application/json", `{"tasks":"not a document"}`, []string{`{"tasks":"not a document"}`}},
		"no sub-path":  {"/?worker=echo", "text/plain", "hello", []string{"hello"}},
		"empty is one": {"/?worker=echo", "text/plain", "", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.submit(c.path, c.media, c.body)
			if s.Tasks != len(c.want) || s.Durability != "process" {
				t.Errorf("%+v", s)
			}
			results, trailer := b.results(s.Job.ID, followAll)
			if !trailer.End || len(results) != len(c.want) {
				t.Fatalf("%d results, %+v", len(results), trailer)
			}
			for i, r := range results {
				body := string(r.Body)
				if r.Body == nil {
					body = string(r.Base64)
				}
				if r.Index != i || body != c.want[i] || r.State != skeleton.Done {
					t.Errorf("result %d: %+v %q", i, r, body)
				}
			}
		})
	}
}

func TestWaitAnswersWithResults(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, echo)
	s := b.submit("/jobs?worker=echo&wait=30s", "application/json", `{"x":1}`)
	if s.Job.State != "ended" || len(s.Results) != 1 || string(s.Results[0].Body) != `{"x":1}` {
		t.Errorf("%+v", s)
	}
}

func TestWaitThatIsTooShort(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	s := b.submit("/jobs?worker=echo&wait=10ms", "text/plain", "x")
	if s.Job.State != "running" || s.Results != nil {
		t.Errorf("%+v", s)
	}
}

// Appended pieces make one job; after close it ends; late pieces are refused.
func TestAppendAndClose(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, echo)
	s := b.submit("/jobs", "application/json", `{"worker":"echo","open":true,"tasks":[]}`)
	for i := range 3 {
		p := b.submit("/jobs/"+s.Job.ID+"/tasks", "application/x-ndjson", fmt.Sprintf("%d\n%d\n", 2*i, 2*i+1))
		if p.First != 2*i || p.Tasks != 2 {
			t.Errorf("piece %d: %+v", i, p)
		}
	}
	if code, _, raw := b.do("POST", "/jobs/"+s.Job.ID+"/close", nil); code != 200 {
		t.Fatalf("close: %d %s", code, raw)
	}
	results, trailer := b.results(s.Job.ID, followAll)
	if !trailer.End || len(results) != 6 {
		t.Errorf("%d results, %+v", len(results), trailer)
	}
	if code, p := b.refused("POST", "/jobs/"+s.Job.ID+"/tasks", strings.NewReader("1\n"), "Content-Type: application/x-ndjson"); code != 409 || p.Type != "job-closed" {
		t.Errorf("%d %+v", code, p)
	}
}

// A submission whose answer was lost is sent again with the same key: nothing
// is accepted twice.
func TestIdempotencyKey(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	first := b.submit("/jobs?worker=echo", "application/x-ndjson", "1\n2\n", "Idempotency-Key: k1")
	again := b.submit("/jobs?worker=echo", "application/x-ndjson", "1\n2\n", "Idempotency-Key: k1")
	if again.Job.ID != first.Job.ID || !again.Repeated || again.Tasks != 2 || again.Job.Total != 2 {
		t.Errorf("%+v, then %+v", first, again)
	}
	if code, p := b.refused("POST", "/jobs/"+first.Job.ID+"/tasks", strings.NewReader("1\n"), "Content-Type: application/x-ndjson", "Idempotency-Key: k1"); code != 409 || p.Type != "key-used" || p.Field != "Idempotency-Key" {
		t.Errorf("the key of another submission: %d %+v", code, p)
	}
	keyed := b.submit("/jobs", "application/json", `{"worker":"echo","items":[{"body":1,"key":"a"},{"body":2,"key":"b"},{"body":3,"key":"a"}]}`)
	if keyed.Tasks != 2 || keyed.Duplicates != 1 {
		t.Errorf("%+v", keyed)
	}
}

// Results are read on from a cursor; acknowledging drops what came before it.
func TestCursorAndAcknowledge(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, echo)
	s := b.submit("/jobs?worker=echo&wait=30s", "application/x-ndjson", strings.Repeat("0\n", 10))
	seen := map[int]bool{}
	cursor := 0
	for {
		results, trailer := b.results(s.Job.ID, fmt.Sprintf("limit=3&ack=1&cursor=%d", cursor))
		for _, r := range results {
			if seen[r.Index] {
				t.Errorf("result %d twice", r.Index)
			}
			seen[r.Index] = true
		}
		cursor = trailer.Cursor
		if trailer.End {
			break
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d results", len(seen))
	}
	b.results(s.Job.ID, fmt.Sprintf("ack=1&cursor=%d", cursor))
	g, err := b.store.Farm("echo").Gauges(context.Background())
	if err != nil || g.KeptBytes != 0 {
		t.Errorf("%d bytes kept, %v", g.KeptBytes, err)
	}
}

// A follower ends before the gateway's timeout and says where to go on.
func TestFollowEndsInTime(t *testing.T) {
	b := setup(t, jobapi.Config{MaxWait: 20 * time.Millisecond}, ledger.Limits{}, nil)
	s := b.submit("/jobs?worker=echo", "text/plain", "x")
	results, trailer := b.results(s.Job.ID, "follow=1")
	if len(results) != 0 || trailer.End || trailer.Cursor != 0 {
		t.Errorf("%v %+v", results, trailer)
	}
}

func TestCancelRunningAndQueued(t *testing.T) {
	started, ended := make(chan bool, 100), make(chan bool, 100)
	b := setup(t, jobapi.Config{}, ledger.Limits{}, func(ctx context.Context, _ skeleton.Task, _ []byte) skeleton.Call {
		started <- true
		<-ctx.Done() // until it is cancelled
		ended <- true
		return skeleton.Call{Failure: skeleton.Reset}
	})
	s := b.submit("/jobs?worker=echo", "application/x-ndjson", strings.Repeat("0\n", 20))
	for range 8 { // the window
		<-started
	}
	code, _, raw := b.do("DELETE", "/jobs/"+s.Job.ID, nil)
	var v jobapi.JobView
	if err := json.Unmarshal(raw, &v); err != nil || code != 200 || v.State != "cancelled" || v.Cancelled != 20 || v.Pending != 0 {
		t.Errorf("%d %s %v", code, raw, err)
	}
	for range 8 {
		<-ended
	}
	if code, _, _ := b.do("DELETE", "/jobs/"+s.Job.ID, nil); code != 200 {
		t.Errorf("again: %d", code)
	}
}

// A bad task becomes a dead letter with the worker's reason; redrive brings it
// back (P54).
func TestDeadLettersAndRedrive(t *testing.T) {
	mended := make(chan struct{})
	b := setup(t, jobapi.Config{}, ledger.Limits{}, func(ctx context.Context, task skeleton.Task, body []byte) skeleton.Call {
		select {
		case <-mended:
			return echo(ctx, task, body)
		default:
			return skeleton.Call{Status: 422, CallID: true, Type: "text/plain", Body: []byte("no such image")}
		}
	})
	s := b.submit("/jobs?worker=echo&wait=30s", "text/plain", "x")
	if len(s.Results) != 1 || s.Results[0].State != skeleton.Dead || !strings.Contains(s.Results[0].Reason, "no such image") {
		t.Fatalf("%+v", s.Results)
	}
	var list jobapi.DeadList
	_, _, raw := b.do("GET", "/farms/echo/dead", nil)
	if err := json.Unmarshal(raw, &list); err != nil || len(list.Dead) != 1 || list.Dead[0].Status != 422 || list.Dead[0].Job != s.Job.ID {
		t.Fatalf("%s %v", raw, err)
	}
	close(mended)
	if code, _, raw := b.do("POST", "/farms/echo/dead/redrive", strings.NewReader(`{"refs":["`+list.Dead[0].Ref+`"]}`)); code != 200 || string(bytes.TrimSpace(raw)) != `{"redriven":1}` {
		t.Fatalf("%d %s", code, raw)
	}
	results, trailer := b.results(s.Job.ID, "follow=1")
	if !trailer.End || len(results) != 1 || results[0].State != skeleton.Done {
		t.Errorf("%+v %+v", results, trailer)
	}
	// It is no dead letter any more; named twice it is still one.
	twice := `{"refs":["` + list.Dead[0].Ref + `","` + list.Dead[0].Ref + `"]}`
	if code, _, raw := b.do("POST", "/farms/echo/dead/redrive", strings.NewReader(twice)); code != 200 || string(bytes.TrimSpace(raw)) != `{"redriven":0,"not_found":1}` {
		t.Errorf("%d %s", code, raw)
	}
}

func TestListings(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	var ids []string
	for range 5 {
		ids = append(ids, b.submit("/?worker=echo", "text/plain", "x").Job.ID)
	}
	var seen []string
	for after := ""; ; {
		_, _, raw := b.do("GET", "/jobs?limit=2&after="+after, nil)
		var list jobapi.JobList
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		for _, j := range list.Jobs {
			seen = append(seen, j.ID)
		}
		if after = list.Next; after == "" {
			break
		}
	}
	for i, id := range ids {
		if len(seen) != 5 || seen[4-i] != id {
			t.Fatalf("submitted %v, listed %v", ids, seen)
		}
	}
	_, _, raw := b.do("GET", "/farms/echo", nil)
	var f jobapi.FarmView
	if err := json.Unmarshal(raw, &f); err != nil || f.Queue.Waiting != 5 || f.Queue.Window != 8 {
		t.Errorf("%s %v", raw, err)
	}
	if code, _, _ := b.do("GET", "/?job="+ids[0], nil); code != 200 {
		t.Errorf("GET /?job=: %d", code)
	}
}

// A farm whose function is gone says since when, as text. It takes no more
// work, first for now and then for good, but shows what it has.
func TestMissingFarm(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	s := b.submit("/jobs?worker=echo&open=true", "text/plain", "x")
	for _, c := range []struct {
		missing time.Duration
		code    int
		what    string
	}{{time.Second, 503, "worker-missing"}, {62 * time.Second, 404, "unknown-worker"}} {
		gone := skeleton.Farm{Name: "echo", Settings: skeleton.DefaultSettings(), Missing: c.missing}
		if err := ledger.Publish(t.Context(), b.store, skeleton.Roster{Farms: []skeleton.Farm{gone}}); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/jobs?worker=echo", "/jobs/" + s.Job.ID + "/tasks"} {
			code, p := b.refused("POST", path, strings.NewReader("x"))
			if code != c.code || p.Type != c.what || p.Field != "worker" || (p.Retry > 0) != (code == 503) || code == 404 && fmt.Sprint(p.Extra) != "map[known:[]]" {
				t.Errorf("%s: %d %+v", path, code, p)
			}
		}
	}
	for _, path := range []string{"/jobs/" + s.Job.ID, "/jobs/" + s.Job.ID + "/results", "/jobs?worker=echo", "/farms/echo/dead"} {
		if code, _, raw := b.do("GET", path, nil); code != 200 {
			t.Errorf("%s: %d %s", path, code, raw)
		}
	}
	for _, path := range []string{"/farms", "/farms/echo"} {
		if _, _, raw := b.do("GET", path, nil); !strings.Contains(string(raw), `"missing":"1m2s"`) {
			t.Errorf("%s: %s", path, raw)
		}
	}
}
