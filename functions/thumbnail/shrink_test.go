package main

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"testing"
)

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
