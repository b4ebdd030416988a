package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farmhand/internal/problem"
)

var defaults = Settings{MaxWidth: 256, MaxHeight: 256, Quality: 85, MaxPixels: 50_000_000, MaxBytes: 32 << 20}

func post(s Settings, body []byte) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
	return w
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func samples(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("../../examples/images/*.*")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d sample images, %v", len(names), err)
	}
	return names
}

// Every shipped picture becomes a JPEG of the same shape that fits.
func TestSamples(t *testing.T) {
	total := 0
	for _, name := range samples(t) {
		body := read(t, name)
		total += len(body)
		if len(body) > 60_000 || len(body) < 8_000 {
			t.Errorf("%s: %d bytes", name, len(body))
		}
		w := post(defaults, body)
		if w.Code != 200 || w.Header().Get("Content-Type") != "image/jpeg" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		small, err := jpeg.Decode(w.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		head, _, err := image.DecodeConfig(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(name, "turned") {
			head.Width, head.Height = head.Height, head.Width
		}
		b := small.Bounds()
		if b.Dx() > 256 || b.Dy() > 256 || max(b.Dx(), b.Dy()) != min(256, max(head.Width, head.Height)) {
			t.Errorf("%s: %v of %d×%d", name, b, head.Width, head.Height)
		}
		if off := b.Dx()*head.Height - b.Dy()*head.Width; off > max(head.Width, head.Height) || -off > max(head.Width, head.Height) {
			t.Errorf("%s: %v has not the shape of %d×%d", name, b, head.Width, head.Height)
		}
	}
	if total > 1_000_000 {
		t.Errorf("the samples take %d bytes", total)
	}
}

func TestBadTasks(t *testing.T) {
	small := defaults
	small.MaxBytes, small.MaxPixels = 100, 10
	dot := encode(t, "png", image.NewRGBA(image.Rect(0, 0, 4, 4)))
	for name, c := range map[string]struct {
		s      Settings
		body   []byte
		status int
		reason string
	}{
		"empty":      {defaults, nil, 422, "no JPEG, PNG or GIF"},
		"text":       {defaults, []byte("hello"), 422, "no JPEG, PNG or GIF"},
		"truncated":  {defaults, read(t, "testdata/truncated.jpg"), 422, "short Huffman data"},
		"bomb":       {defaults, read(t, "testdata/bomb.png"), 422, "60000×60000"},
		"long":       {small, make([]byte, 101), 413, "at most 100 bytes"},
		"pixels":     {small, dot, 422, "4×4 pixels, over the limit of 10"},
		"cut header": {defaults, read(t, "testdata/bomb.png")[:20], 422, "ends too early"},
		"gif header": {defaults, []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00"), 422, ""},
	} {
		w := post(c.s, c.body)
		var p problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || !strings.Contains(p.Detail, c.reason) || p.Fix == "" {
			t.Errorf("%s: %d %+v %v", name, w.Code, p, err)
		}
	}
	w := httptest.NewRecorder()
	defaults.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != 405 {
		t.Errorf("GET: %d", w.Code)
	}
}

func encode(t testing.TB, format string, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 95})
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSettings(t *testing.T) {
	if err := defaults.Validate(); err != nil {
		t.Error(err)
	}
	if err := (Settings{MaxWidth: 256, MaxHeight: 5000}).Validate(); err == nil || !strings.Contains(err.Error(), "max_height") {
		t.Errorf("got %v", err)
	}
}

// No bytes make the function panic or answer anything but a JPEG or a problem.
func FuzzTask(f *testing.F) {
	for _, format := range []string{"png", "jpeg", "gif"} {
		f.Add(encode(f, format, quarters(16, 8)))
	}
	f.Add(exif("MM", "\x00\x06"))
	f.Add(read(f, "testdata/truncated.jpg")[:2000])
	f.Add(read(f, "testdata/bomb.png"))
	s := defaults
	s.MaxPixels = 1 << 16
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(s, body)
		switch w.Code {
		case 200:
			if _, err := jpeg.Decode(w.Body); err != nil {
				t.Error(err)
			}
		case 413, 422:
			_, _ = io.Copy(io.Discard, w.Body)
		default:
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}

func BenchmarkTask(b *testing.B) {
	body := read(b, "../../examples/images/julia.jpg")
	b.ReportAllocs()
	for b.Loop() {
		if w := post(defaults, body); w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}
