package platform_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/logs"

	"farmhand/platform"
)

// print makes a function print text.
func (b *bench) print(name, text string) {
	b.t.Helper()
	if a := b.call(name + "/print?text=" + url.QueryEscape(text)); a.status != 200 {
		b.t.Fatalf("%+v", a)
	}
}

// logs reads a stream to its end.
func (b *bench) logs(query string) (texts []string) {
	b.t.Helper()
	a := b.system("GET", "/system/logs?"+query, "")
	if a.status != 200 || a.err != nil {
		b.t.Fatalf("%s: %+v", query, a)
	}
	d := json.NewDecoder(strings.NewReader(a.body))
	for {
		var m logs.Message
		if err := d.Decode(&m); err == io.EOF {
			return texts
		} else if err != nil {
			b.t.Fatalf("%s: %v", query, err)
		}
		texts = append(texts, m.Text)
	}
}

// follow opens a stream that goes on.
func (b *bench) follow(ctx context.Context, query string) (next func() logs.Message, resp *http.Response) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", b.base+"/system/logs?follow=1&"+query, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.SetBasicAuth(b.user, b.password)
	if resp, err = b.http.Do(req); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	in := bufio.NewReader(resp.Body)
	return func() (m logs.Message) {
		b.t.Helper()
		line, err := in.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &m)
		}
		if err != nil {
			b.t.Fatalf("%q: %v", line, err)
		}
		return m
	}, resp
}

// What a function prints comes while it is printed, and can be asked for later
// by number, time and replica.
func TestLogs(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	next, resp := b.follow(t.Context(), "name=echo")
	if resp.Header.Get("Content-Type") != "application/x-ndjson" || len(resp.TransferEncoding) != 1 {
		t.Errorf("%v, %v", resp.Header, resp.TransferEncoding)
	}
	var m logs.Message
	for i, text := range []string{"one\n", "two <&>\n", "three\n"} {
		b.print("echo", text)
		if m = next(); m.Text != text || m.Name != "echo" || m.Namespace != "openfaas-fn" || m.Instance != b.detail("echo").Instances[0].ID || m.Timestamp.IsZero() {
			t.Errorf("message %d: %+v", i, m)
		}
	}
	all := "one\n|two <&>\n|three\n"
	at := func(t time.Time) string { return url.QueryEscape(t.Format(time.RFC3339Nano)) }
	for query, want := range map[string]string{
		"name=echo":                                   all,
		"name=echo&tail=0":                            all,
		"name=echo&tail=-1":                           all,
		"name=echo&tail=9&follow=0":                   all,
		"name=echo&tail=2&follow=false":               "two <&>\n|three\n",
		"name=echo.openfaas-fn&namespace=":            all,
		"name=echo&namespace=openfaas-fn&tail=1":      "three\n",
		"name=echo&since=" + at(m.Timestamp):          "three\n",
		"name=echo&since=" + at(m.Timestamp.Add(1)):   "",
		"name=echo&since=2006-01-02T15:04:05%2B02:00": all,
		"name=echo&instance=" + m.Instance:            all,
		"name=echo&instance=other":                    "",
		"name=echo&namespace=other":                   "",
		"name=nope":                                   "",
		"name=../echo&follow=1":                       "",
	} {
		if got := strings.Join(b.logs(query), "|"); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	// Tail, then what comes.
	next, _ = b.follow(t.Context(), "name=echo&tail=1")
	if m := next(); m.Text != "three\n" {
		t.Errorf("%q, want %q", m.Text, "three\n")
	}
	b.print("echo", "four\nno newline")
	if m := next(); m.Text != "four\n" {
		t.Errorf("%q, want %q", m.Text, "four\n")
	}
}

func TestLogsThroughSDK(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	next, _ := b.follow(t.Context(), "name=echo")
	b.print("echo", "one\ntwo\n")
	next()
	since := next().Timestamp.Add(-time.Hour)
	for name, want := range map[string]string{"echo": "two\n", "nope": ""} {
		stream, err := b.client.GetLogs(t.Context(), name, "openfaas-fn", false, 1, &since)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for m := range stream {
			got += m.Text
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A stream that follows ends well with the write timeout, with its client and
// with the platform.
func TestLogsEnd(t *testing.T) {
	short := func(c *platform.Config) {
		c.UpstreamTimeout, c.WriteTimeout = 100*time.Millisecond, 300*time.Millisecond
	}
	b := start(t, short)
	b.deploy(function("echo"))
	begun := time.Now()
	if texts := b.logs("name=echo&follow=true"); len(texts) != 0 {
		t.Errorf("%q", texts)
	}
	if d := time.Since(begun); d < b.config.WriteTimeout {
		t.Errorf("ended after %s", d)
	}

	long := start(t)
	long.deploy(function("echo"))
	ctx, cancel := context.WithCancel(t.Context())
	long.follow(ctx, "name=echo")
	cancel() // goleak would find what stays
	_, resp := long.follow(t.Context(), "name=echo")
	long.stop()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// The log of a function goes with it, and one of the same name begins anew.
func TestLogsOfDeletedFunction(t *testing.T) {
	b := start(t)
	b.deploy(function("echo"))
	next, _ := b.follow(t.Context(), "name=echo")
	b.print("echo", "old\n")
	next()
	changed := b.Changed("echo")
	if a := b.system("DELETE", "/system/functions", `{"functionName":"echo"}`); a.status != 202 {
		t.Fatal(a)
	}
	receive(t, "it is closed", changed)
	until(t, "its log is gone", func() bool {
		_, err := os.Stat(filepath.Join(b.config.State, "logs", "echo.ndjson"))
		return os.IsNotExist(err)
	})
	b.deploy(function("echo"))
	b.print("echo", "new\n")
	if m := next(); m.Text != "new\n" { // the same stream goes on
		t.Errorf("%+v", m)
	}
	if got := b.logs("name=echo"); len(got) != 1 || got[0] != "new\n" {
		t.Errorf("%q", got)
	}
}
