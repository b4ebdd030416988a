package jobapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"farmhand/internal/redistest"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/ledger"
	"farmhand/skeleton/ledger/redisledger"
)

// Every bad request gets a problem that names field and fix, and nothing of it
// is accepted.
func TestBadRequests(t *testing.T) {
	const (
		doc   = "application/json"
		lines = "application/x-ndjson"
	)
	b := setup(t, jobapi.Config{MaxBody: 1000}, ledger.Limits{QueueTasks: 50}, nil)
	for name, c := range map[string]struct {
		path, media, body string
		status            int
		field             string
		line, index       int // 0 = none, else + 1 for index
	}{
		"unknown worker":           {"/jobs", doc, `{"worker":"nobody","tasks":[1]}`, 404, "worker", 0, 0},
		"no worker":                {"/jobs", doc, `{"tasks":[1]}`, 422, "worker", 0, 0},
		"empty job":                {"/jobs", doc, `{"worker":"echo","tasks":[]}`, 422, "tasks", 0, 0},
		"no tasks at all":          {"/jobs", doc, `{"worker":"echo"}`, 422, "tasks", 0, 0},
		"empty lines":              {"/jobs?worker=echo", lines, "\n\n", 422, "tasks", 0, 0},
		"malformed line 3":         {"/jobs?worker=echo", lines, "1\n2\n{\"a\":\n4\n", 400, "line", 3, 0},
		"line too long":            {"/jobs?worker=echo", lines, "1\n\"" + strings.Repeat("x", 2000) + "\"\n", 413, "line", 2, 0},
		"truncated document":       {"/jobs", doc, `{"worker":"echo","tasks":[1,2`, 400, "body", 0, 0},
		"more after the document":  {"/jobs", doc, `{"worker":"echo","tasks":[1]} {}`, 400, "body", 0, 0},
		"array instead":            {"/jobs", doc, `[1,2]`, 400, "body", 0, 0},
		"duplicate option":         {"/jobs", doc, `{"worker":"echo","class":1,"class":2,"tasks":[1]}`, 422, "class", 0, 0},
		"duplicate tasks":          {"/jobs", doc, `{"worker":"echo","tasks":[1],"tasks":[2]}`, 422, "tasks", 0, 0},
		"duplicate key in an item": {"/jobs", doc, `{"worker":"echo","items":[{"body":1},{"body":1,"body":2}]}`, 422, "body", 0, 2},
		"tasks and items":          {"/jobs", doc, `{"worker":"echo","tasks":[1],"items":[{"body":1}]}`, 422, "items", 0, 0},
		"option after the tasks":   {"/jobs", doc, `{"worker":"echo","tasks":[1],"class":1}`, 422, "class", 0, 0},
		"unknown field":            {"/jobs", doc, `{"worker":"echo","prio":1,"tasks":[1]}`, 422, "prio", 0, 0},
		"unknown item field":       {"/jobs", doc, `{"worker":"echo","items":[{"boddy":1}]}`, 422, "boddy", 0, 1},
		"unknown parameter":        {"/jobs?worker=echo&prio=1", lines, "1\n", 422, "prio", 0, 0},
		"option is an object":      {"/jobs", doc, `{"worker":{},"tasks":[1]}`, 422, "worker", 0, 0},
		"negative deadline":        {"/jobs", doc, `{"worker":"echo","deadline":"-5s","tasks":[1]}`, 422, "deadline", 0, 0},
		"deadline without a unit":  {"/jobs?worker=echo&deadline=5", lines, "1\n", 422, "deadline", 0, 0},
		"class out of range":       {"/jobs?worker=echo&class=10", lines, "1\n", 422, "class", 0, 0},
		"attempts out of range":    {"/jobs?worker=echo&attempts=0", lines, "1\n", 422, "attempts", 0, 0},
		"retry unknown":            {"/jobs?worker=echo&retry=often", lines, "1\n", 422, "retry", 0, 0},
		"tenant with a newline":    {"/jobs?worker=echo&tenant=a%0Ab", lines, "1\n", 422, "tenant", 0, 0},
		"bad callback":             {"/jobs?worker=echo&callback=http://evil.example/", lines, "1\n", 422, "callback", 0, 0},
		"wait too long":            {"/jobs?worker=echo&wait=1h", lines, "1\n", 422, "wait", 0, 0},
		"oversize body":            {"/jobs?worker=echo", "image/png", strings.Repeat("x", 1001), 413, "body", 0, 0},
		"oversize task":            {"/jobs", doc, `{"worker":"echo","tasks":[1,"` + strings.Repeat("x", 1001) + `"]}`, 413, "tasks", 0, 2},
		"no body in an item":       {"/jobs", doc, `{"worker":"echo","items":[{"key":"a"}]}`, 422, "body", 0, 1},
		"two bodies in an item":    {"/jobs", doc, `{"worker":"echo","items":[{"body":1,"body_base64":"AA=="}]}`, 422, "body", 0, 1},
		"item is no object":        {"/jobs", doc, `{"worker":"echo","items":[{"body":1},7]}`, 400, "items", 0, 2},
		"type is no media type":    {"/jobs", doc, `{"worker":"echo","items":[{"body_base64":"AA==","type":"a\r\nb"}]}`, 422, "type", 0, 1},
		"bad item on line 2":       {"/jobs?worker=echo&items=1", lines, "{\"body\":1}\n{\"body\":1,\"class\":99}\n", 422, "class", 2, 0},
		"negative item deadline":   {"/jobs", doc, `{"worker":"echo","items":[{"body":1,"deadline":"-1s"}]}`, 422, "deadline", 0, 1},
		"deadline and due":         {"/jobs?worker=echo&deadline=1s&due=2030-01-01T00:00:00Z", lines, "1\n", 422, "due|deadline", 0, 0},
		"deadline and due of one":  {"/jobs", doc, `{"worker":"echo","items":[{"body":1,"deadline":"1s","due":"2030-01-01T00:00:00Z"}]}`, 422, "due", 0, 1},
		"due and deadline of one":  {"/jobs", doc, `{"worker":"echo","items":[{"body":1,"due":"2030-01-01T00:00:00Z","deadline":"1s"}]}`, 422, "deadline", 0, 1},
		"due that is zero":         {"/jobs?worker=echo&due=0001-01-01T00:00:00Z", lines, "1\n", 422, "due", 0, 0},
		"due before 2000":          {"/jobs?worker=echo&due=1999-12-31T23:59:59Z", lines, "1\n", 422, "due", 0, 0},
		"due after 2200":           {"/jobs", doc, `{"worker":"echo","items":[{"body":1,"due":"9999-01-01T00:00:00Z"}]}`, 422, "due", 0, 1},
		"an endless element":       {"/jobs", doc, `{"worker":"echo","tasks":["` + strings.Repeat("x", 1<<20), 413, "tasks", 0, 1},
		"an endless option":        {"/jobs", doc, `{"worker":"` + strings.Repeat("x", 1<<20), 413, "worker", 0, 0},
		"bad base64":               {"/jobs", doc, `{"worker":"echo","items":[{"body_base64":"%%%"}]}`, 422, "body_base64", 0, 1},
		"more than the queue":      {"/jobs?worker=echo", lines, strings.Repeat("1\n", 51), 413, "tasks", 0, 0},
		"form without a boundary":  {"/jobs?worker=echo", "multipart/form-data", "x", 400, "Content-Type", 0, 0},
		"truncated form":           {"/jobs?worker=echo", "multipart/form-data; boundary=b", "--b\r\nContent-Type: a/b\r\n\r\nx", 400, "part", 0, 1},
		"append to a bad id":       {"/jobs/nonsense/tasks", lines, "1\n", 404, "job", 0, 0},
		"items as JSON":            {"/jobs?items=1", doc, `{"worker":"echo","tasks":[{"body":1}]}`, 422, "items", 0, 0},
		"items as one JSON":        {"/jobs?worker=echo&items=1", doc, `{"body":1}`, 422, "items", 0, 0},
		"items as a form":          {"/jobs?worker=echo&items=1", "multipart/form-data; boundary=b", "--b\r\n\r\n1\r\n--b--", 422, "items", 0, 0},
		"append and order":         {"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/tasks?ordered=true", lines, "1\n", 422, "ordered", 0, 0},
		"append and call back":     {"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/tasks", doc, `{"callback":"http://x/","tasks":[1]}`, 422, "callback", 0, 0},
		"append and close":         {"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/tasks", doc, `{"open":false,"tasks":[1]}`, 422, "open", 0, 0},
		"append to no job":         {"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/tasks", lines, "1\n", 404, "job", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			code, p := b.refused("POST", c.path, strings.NewReader(c.body), "Content-Type: "+c.media)
			if code != c.status || !strings.Contains("|"+c.field+"|", "|"+p.Field+"|") || p.Fix == "" || p.Detail == "" {
				t.Errorf("%d %+v", code, p)
			}
			if p.Line != c.line || (p.Index == nil) != (c.index == 0) || (p.Index != nil && *p.Index != c.index-1) {
				t.Errorf("line %d, index %v", p.Line, p.Index)
			}
		})
	}
	for _, enc := range []string{"gzip", "br"} {
		if code, p := b.refused("POST", "/jobs?worker=echo", strings.NewReader("x"), "Content-Encoding: "+enc); code != 415 || p.Field != "Content-Encoding" {
			t.Errorf("%s: %d %+v", enc, code, p)
		}
	}
	if code, p := b.refused("PUT", "/jobs", nil); code != 405 || p.Field != "method" {
		t.Errorf("%d %+v", code, p)
	}
	if code, p := b.refused("GET", "/nowhere", nil); code != 404 || p.Field != "path" {
		t.Errorf("%d %+v", code, p)
	}
	if code, p := b.refused("GET", "/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/results?cursor=-1", nil); code != 422 || p.Field != "cursor" {
		t.Errorf("%d %+v", code, p)
	}
	if code, p := b.refused("POST", "/jobs?worker=echo", strings.NewReader("x"), "Idempotency-Key: "+strings.Repeat("k", 201)); code != 422 || p.Field != "Idempotency-Key" {
		t.Errorf("%d %+v", code, p)
	}
	for _, c := range []struct {
		path, field string
		status      int
	}{
		{"/jobs/nonsense", "job", 404},
		{"/jobs/echo~01arz3ndektsv4rrffq69g5fav", "job", 404},
		{"/jobs/ec%7Bho~01ARZ3NDEKTSV4RRFFQ69G5FAV", "job", 404},
		{"/?job=echo~1", "job", 404},
		{"/jobs?after=x", "after", 422},
		{"/jobs?limit=0", "limit", 422},
		{"/jobs?curser=1", "curser", 422},
		{"/jobs?worker=nobody", "worker", 404},
		{"/farms/nobody", "worker", 404},
		{"/farms/echo/dead?limit=x", "limit", 422},
		{"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV", "job", 404},
		{"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/results?follow=maybe", "follow", 422},
		{"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/results?order=1", "order", 422},
		{"/farms/echo/dead?after=x", "after", 422},
		{"//jobs", "path", 404},
		{"/jobs/../farms", "path", 404},
		{"/jobs/%2e%2e/farms", "path", 404},
		{"/jobs//", "path", 404},
		{"/?jb=1", "jb", 422},
		{"/?job=%zz", "job", 422},
		{"/?job=echo~1&job=echo~2", "job", 422},
		{"/farms?worker=echo", "worker", 422},
		{"/farms/echo?x", "x", 422},
		{"/farms/echo?limit=1;after=2", "limit", 422},
		{"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV?follow=1", "follow", 422},
		{"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/results?cursor=1&cursor=2", "cursor", 422},
		{"/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/results?a%ck=1", "a%ck", 422},
		{"/jobs?limit=1&limit=1", "limit", 422},
	} {
		if code, p := b.refused("GET", c.path, nil); code != c.status || p.Field != c.field || p.Fix == "" {
			t.Errorf("GET %s: %d %+v", c.path, code, p)
		}
	}
	for _, body := range []string{`{}`, `{"all":true,"all":true}`, `{"refs":"x"}`, `{"all":true} 1`, `{"all":true,"refs":["x"]}`, `{"all":true,"limit":-1}`, `{"everything":true}`, `{`} {
		if code, p := b.refused("POST", "/farms/echo/dead/redrive", strings.NewReader(body)); code < 400 || code >= 500 || p.Fix == "" {
			t.Errorf("redrive %s: %d %+v", body, code, p)
		}
	}
	if code, p := b.refused("POST", "/farms/echo/dead/redrive", strings.NewReader(`{"refs":["x"]}`)); code != 422 || p.Field != "refs" || p.Fix != "see GET /farms/echo/dead" {
		t.Errorf("redrive x: %d %+v", code, p)
	}
	for _, c := range []struct{ method, path, field string }{
		{"POST", "/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV/close?now=1", "now"},
		{"DELETE", "/jobs/echo~01ARZ3NDEKTSV4RRFFQ69G5FAV?now=1", "now"},
		{"POST", "/farms/echo/dead/redrive?limit=1", "limit"},
		{"POST", "/jobs?worker=echo&class=%", "class"},
		{"POST", "/jobs?worker=echo&worker=echo", "worker"},
		{"POST", "/jobs?worker=echo&items=1&items=0", "items"},
	} {
		if code, p := b.refused(c.method, c.path, strings.NewReader("x")); code != 422 || p.Field != c.field || p.Fix == "" {
			t.Errorf("%s %s: %d %+v", c.method, c.path, code, p)
		}
	}
	// A client's own words are not sent back at length.
	long := strings.Repeat("x", 10_000)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/jobs", `{"` + long + `":1,"tasks":[1]}`},
		{"POST", "/jobs", `{"worker":"echo","items":[{"` + long + `":1}]}`},
		{"POST", "/jobs?" + long + "=1", ""},
		{"GET", "/" + long, ""},
	} {
		if code, _, raw := b.do(c.method, c.path, strings.NewReader(c.body), "Content-Type: application/json"); code < 400 || len(raw) > 1000 {
			t.Errorf("%s %.20s: %d, %d bytes", c.method, c.path, code, len(raw))
		}
	}
	b.untouched()
}

// What is easily got wrong is answered with what to change.
func TestRefusalsName(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	for _, c := range []struct{ path, media, body, want string }{
		{"/jobs", "application/x-www-form-urlencoded", `{"worker":"echo","tasks":[1]}`, "Content-Type: application/json"},
		{"/jobs", "", `{"worker":"echo","tasks":[1]}`, "Content-Type: application/json"},
		{"/jobs", "application/json", `{"tasks":[1],"worker":"echo"}`, "options before tasks"},
		{"/jobs", "application/json", `{"worker":"echo","tasks":{}}`, "want an array"},
		{"/jobs", "application/json", `[]`, "want an object"},
		{"/farms/echo/dead/redrive", "application/json", `{"all":"x"}`, "want true or false"},
		{"/farms/echo/dead/redrive", "application/json", `{"refs":"x"}`, "want an array"},
		{"/farms/echo/dead/redrive", "application/json", `{"all":true,"limit":"x"}`, "want a whole number"},
	} {
		if _, p := b.refused("POST", c.path, strings.NewReader(c.body), "Content-Type: "+c.media); !strings.Contains(p.Detail+p.Fix, c.want) {
			t.Errorf("%s as %q: %+v", c.body, c.media, p)
		}
	}
	b.untouched()
}

// A client that goes away in the middle of its body leaves nothing behind.
func TestClientGoesAway(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("{\"n\":1}\n", 2000)
	fmt.Fprintf(conn, "POST /jobs?worker=echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", 2*len(body), body)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // until the server has given up
	if err != nil || !bytes.Contains(answer, []byte("400")) {
		t.Errorf("%q %v", answer, err)
	}
	_ = conn.Close()
	b.untouched()
}

// A full queue is "later", not an error of the client's (429 with Retry-After).
func TestFullQueue(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{QueueTasks: 10}, nil)
	b.submit("/jobs?worker=echo", "application/x-ndjson", strings.Repeat("1\n", 8))
	code, p := b.refused("POST", "/jobs?worker=echo", strings.NewReader("1\n2\n3\n"), "Content-Type: application/x-ndjson")
	if code != 429 || p.Retry == 0 || p.Fix == "" {
		t.Errorf("%d %+v", code, p)
	}
}

// Redis away is "later" too, and nothing is half accepted.
func TestStoreAway(t *testing.T) {
	server := redistest.Start(t, "appendfsync always") // everysec may lose what was written during an fsync
	b := setupOn(t, redistest.Client(t, server), jobapi.Config{}, ledger.Limits{}, nil)
	server.Kill()
	code, p := b.refused("POST", "/jobs?worker=echo", strings.NewReader("x"))
	if code != 503 || p.Retry == 0 {
		t.Errorf("%d %+v", code, p)
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	if code, _, raw := b.do("POST", "/jobs?worker=echo", strings.NewReader("x")); code != 201 {
		t.Errorf("after its return: %d %s", code, raw)
	}
}

// A function without the label is not in the roster: the problem names the
// label and the farms there are.
func TestNotAWorker(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	code, p := b.refused("POST", "/jobs?worker=figlet", strings.NewReader("x"))
	if code != 404 || p.Field != "worker" || !strings.Contains(p.Fix, `farmhand.worker: "true"`) || fmt.Sprint(p.Extra) != "map[known:[echo]]" {
		t.Errorf("%d %+v", code, p)
	}
}

// A controller that never published is said to be the cause.
func TestNoRoster(t *testing.T) {
	store := redisledger.New(redistest.Client(t, redistest.Start(t)), redisledger.Options{})
	t.Cleanup(store.Close)
	w := httptest.NewRecorder()
	jobapi.New(jobapi.Config{Store: store}).ServeHTTP(w, httptest.NewRequest("POST", "/jobs?worker=echo", strings.NewReader("x")))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "controller") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A submission of 100,000 tasks is streamed: the process grows by less than
// 64 MB.
func TestLargeSubmissionIsStreamed(t *testing.T) {
	b := setup(t, jobapi.Config{}, ledger.Limits{}, nil)
	runtime.GC()
	before := memory()
	r, w := io.Pipe()
	go func() {
		line := []byte(`{"spot":100,"strike":105,"rate":0.02,"volatility":0.25,"maturity":1,"kind":"call","paths":1000,"seed":7}` + "\n")
		for range 100_000 {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		_ = w.Close()
	}()
	req, err := http.NewRequest("POST", b.url+"/jobs?worker=echo", r)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 201 {
		t.Fatalf("%d", resp.StatusCode)
	}
	if grown := memory() - before; grown > 64<<20 {
		t.Errorf("the process grew by %d MB", grown>>20)
	}
	j, err := b.store.Farm("echo").Jobs(context.Background(), "", 1)
	if err != nil || len(j) != 1 || j[0].Total != 100_000 {
		t.Errorf("%+v %v", j, err)
	}
}

// memory is what the process has from the operating system and did not return.
func memory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64()) - int64(samples[1].Value.Uint64())
}
