// Command samples draws the pictures in examples/images, and the broken ones
// that the tests of thumbnail need. It draws the same ones every time.
//
//	go run ./internal/samples
package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A sample is drawn at its width, or smaller where its file would be too large.
type sample struct {
	name  string // the extension is the format
	width int
	shape float64 // height over width
	draw  func(w, h int, rng *rand.Rand) *image.RGBA
}

var samples = []sample{
	{"julia.jpg", 560, 0.75, julia(-0.8, 0.156)},
	{"julia-tall.jpg", 360, 1.5, julia(-0.7269, 0.1889)},
	{"rabbit.png", 320, 0.75, julia(-0.123, 0.745)},
	{"mandelbrot.jpg", 600, 0.66, mandelbrot(-0.5, 0, 3.2)},
	{"seahorse.jpg", 600, 0.66, mandelbrot(-0.7453, 0.1127, 0.012)},
	{"newton.png", 400, 1, newton(3)},
	{"newton-five.jpg", 480, 1, newton(5)},
	{"voronoi.png", 640, 0.75, voronoi(60)},
	{"voronoi-fine.jpg", 520, 0.75, voronoi(400)},
	{"clouds.jpg", 640, 0.6, clouds},
	{"marble.jpg", 480, 1, marble},
	{"plasma.gif", 220, 0.75, plasma(9)},
	{"plasma.jpg", 640, 0.5, plasma(14)},
	{"waves.jpg", 560, 0.75, waves(3)},
	{"waves.gif", 240, 1, waves(2)},
	{"hills.jpg", 640, 0.56, hills},
	{"hills.gif", 360, 0.56, hills},
	{"plot.png", 640, 0.6, plot},
	{"plot.jpg", 480, 0.6, plot},
	{"truchet.png", 600, 0.75, truchet(24)},
	{"truchet.jpg", 400, 1.25, truchet(12)},
	{"sunflower.png", 420, 1, sunflower}, // transparent
	{"turned.jpg", 480, 0.66, clouds},    // lies on its side; the file says so
	{"moving.gif", 100, 0.75, waves(3)},  // eight pictures
}

const maxFile = 55_000

func main() {
	images := flag.String("images", "examples/images", "folder of the pictures")
	broken := flag.String("broken", "functions/thumbnail/testdata", "folder of the broken ones")
	flag.Parse()
	var total int
	for _, s := range samples {
		file, err := s.file()
		if err != nil {
			log.Fatal(err)
		}
		write(filepath.Join(*images, s.name), file)
		total += len(file)
	}
	fmt.Printf("%d pictures, %d bytes\n", len(samples), total)

	whole, err := samples[0].file()
	if err != nil {
		log.Fatal(err)
	}
	write(filepath.Join(*broken, "truncated.jpg"), whole[:len(whole)/8])
	write(filepath.Join(*broken, "bomb.png"), bomb(60_000))
}

func write(name string, file []byte) {
	if err := os.WriteFile(name, file, 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%6d %s\n", len(file), name)
}

// file draws and encodes a sample, first worse and then smaller until it is
// short enough.
func (s sample) file() ([]byte, error) {
	for width := s.width; ; width = width * 9 / 10 {
		for quality := 92; quality >= 60; quality -= 8 {
			rng := rand.New(rand.NewPCG(uint64(crc32.ChecksumIEEE([]byte(s.name))), 1))
			img := s.draw(width, int(float64(width)*s.shape), rng)
			file, err := s.encode(img, quality, rng)
			if err != nil || len(file) <= maxFile {
				return file, err
			}
			if !strings.HasSuffix(s.name, ".jpg") {
				break
			}
		}
	}
}

func (s sample) encode(img *image.RGBA, quality int, rng *rand.Rand) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch {
	case s.name == "moving.gif":
		err = gif.EncodeAll(&b, s.animation(img, 8, rng))
	case s.name == "turned.jpg":
		if err = jpeg.Encode(&b, quarterLeft(img), &jpeg.Options{Quality: quality}); err == nil {
			return turned(b.Bytes()), nil
		}
	case strings.HasSuffix(s.name, ".jpg"):
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: quality})
	case strings.HasSuffix(s.name, ".gif"):
		err = gif.Encode(&b, paletted(img, palette.Plan9), nil)
	default:
		err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img)
	}
	return b.Bytes(), err
}

// animation is the first picture and more of the same kind.
func (s sample) animation(first *image.RGBA, n int, rng *rand.Rand) *gif.GIF {
	g := &gif.GIF{}
	for i, img := 0, first; i < n; i, img = i+1, s.draw(first.Rect.Dx(), first.Rect.Dy(), rng) {
		g.Image, g.Delay = append(g.Image, paletted(img, palette.WebSafe)), append(g.Delay, 20)
	}
	return g
}

func paletted(img *image.RGBA, colours color.Palette) *image.Paletted {
	p := image.NewPaletted(img.Rect, colours)
	draw.FloydSteinberg.Draw(p, p.Rect, img, image.Point{})
	return p
}

// quarterLeft turns a picture to its left side, as a camera held upright
// stores it.
func quarterLeft(src *image.RGBA) *image.RGBA {
	w, h := src.Rect.Dx(), src.Rect.Dy()
	dst := image.NewRGBA(image.Rect(0, 0, h, w))
	for y := range h {
		for x := range w {
			dst.SetRGBA(y, w-1-x, src.RGBAAt(x, y))
		}
	}
	return dst
}

// turned puts an Exif segment into a JPEG file that says orientation 6: to be
// turned right.
func turned(file []byte) []byte {
	exif := []byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")
	return append(append(append([]byte{}, file[:2]...), exif...), file[2:]...)
}

// bomb is a PNG file that is a header and no more: it claims side × side pixels.
func bomb(side uint32) []byte {
	chunk := func(kind string, data []byte) []byte {
		b := append([]byte(kind), data...)
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), b...)
	}
	header := binary.BigEndian.AppendUint32(nil, side)
	header = binary.BigEndian.AppendUint32(header, side)
	header = append(header, 8, 6, 0, 0, 0) // 8 bits of red, green, blue and alpha
	file := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", header)...)
	return append(file, chunk("IEND", nil)...)
}
