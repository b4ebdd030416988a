package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
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

func TestFit(t *testing.T) {
	for _, c := range [][6]int{ // w, h, maxW, maxH, want w, want h
		{100, 50, 256, 256, 100, 50}, {512, 512, 256, 256, 256, 256}, {1000, 500, 256, 256, 256, 128},
		{500, 1000, 256, 256, 128, 256}, {65535, 1, 256, 256, 256, 1}, {1, 65535, 256, 256, 1, 256}, {300, 200, 400, 100, 150, 100},
	} {
		if w, h := fit(c[0], c[1], c[2], c[3]); w != c[4] || h != c[5] {
			t.Errorf("%v: %d×%d", c, w, h)
		}
	}
}

func TestTransparencyBecomesWhite(t *testing.T) {
	small := Shrink(image.NewNRGBA(image.Rect(0, 0, 600, 600)), Upright, 20, 20)
	if c := small.RGBAAt(10, 10); c != (color.RGBA{255, 255, 255, 255}) {
		t.Errorf("got %v", c)
	}
}

// quarters is a picture with a colour of its own in each corner, clockwise from
// the upper left one.
func quarters(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetRGBA(x, y, corner[[2]bool{x >= w/2, y >= h/2}])
		}
	}
	return img
}

var corner = map[[2]bool]color.RGBA{
	{false, false}: {255, 0, 0, 255}, {true, false}: {0, 255, 0, 255}, {true, true}: {0, 0, 255, 255}, {false, true}: {0, 0, 0, 255},
}

// The Exif page's words, "the 0th row is the visual …, the 0th column the
// visual …", told by where the corners r(ed), g(reen), b(lue) and (blac)k of
// the stored picture come to lie, clockwise from the upper left.
func TestOrientations(t *testing.T) {
	for o, want := range map[Orientation]string{1: "rgbk", 2: "grkb", 3: "bkrg", 4: "kbgr", 5: "rkbg", 6: "krgb", 7: "bgrk", 8: "gbkr"} {
		img := Shrink(quarters(80, 40), o, 40, 40)
		w, h := img.Rect.Dx(), img.Rect.Dy()
		if swapped := w == 20 && h == 40; swapped != o.Swaps() || !swapped && (w != 40 || h != 20) {
			t.Errorf("%d: %d×%d", o, w, h)
		}
		got := ""
		for _, p := range []image.Point{{2, 2}, {w - 3, 2}, {w - 3, h - 3}, {2, h - 3}} {
			c := img.RGBAAt(p.X, p.Y)
			got += map[color.RGBA]string{{255, 0, 0, 255}: "r", {0, 255, 0, 255}: "g", {0, 0, 255, 255}: "b", {0, 0, 0, 255}: "k"}[c]
		}
		if got != want {
			t.Errorf("%d: corners %s, want %s", o, got, want)
		}
	}
}

func exif(order, orientation string) []byte {
	tiff := "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00" + orientation + "\x00\x00\x00\x00\x00\x00"
	if order == "MM" {
		tiff = "MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01" + orientation + "\x00\x00\x00\x00\x00\x00"
	}
	body := "Exif\x00\x00" + tiff
	return []byte("\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xe1\x00" + string(rune(len(body)+2)) + body + "\xff\xda")
}

func TestReadOrientation(t *testing.T) {
	for want, file := range map[Orientation][]byte{
		6: exif("MM", "\x00\x06"), 8: exif("II", "\x08\x00"), 1: exif("II", "\x09\x00"),
	} {
		if got := ReadOrientation(file); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
		for n := range file { // cut anywhere, it must not panic
			ReadOrientation(file[:n])
		}
	}
	if got := ReadOrientation(read(t, "../../examples/images/turned.jpg")); got != 6 {
		t.Errorf("turned.jpg: %d", got)
	}
}

func TestFirstPictureOfAnAnimation(t *testing.T) {
	first, _, err := Decode(read(t, "../../examples/images/moving.gif"), defaults.MaxPixels)
	if err != nil {
		t.Fatal(err)
	}
	all, err := gif.DecodeAll(bytes.NewReader(read(t, "../../examples/images/moving.gif")))
	if err != nil || len(all.Image) < 2 {
		t.Fatal(err)
	}
	if !bytes.Equal(first.(*image.Paletted).Pix, all.Image[0].Pix) {
		t.Error("not the first picture")
	}
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
