// Command thumbnail is an example worker: it makes a small JPEG of a picture.
//
// The task is the bytes of a JPEG, PNG or GIF file, the result those of a JPEG
// that fits into max_width × max_height:
//
//	curl http://127.0.0.1:8080/function/thumbnail --data-binary @examples/images/julia.jpg >small.jpg
//
// The picture keeps its shape and is never enlarged. Transparent parts become
// white, the orientation a camera noted is applied, of an animation the first
// picture is taken. X-Image-Width and X-Image-Height tell the size of the
// result, X-Image-Source (such as "jpeg 640x480") what came in.
package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/caarlos0/env/v11"

	"farmhand/internal/fn"
)

// Settings of the function, read from its environment when it starts.
type Settings struct {
	MaxWidth  int   `env:"max_width" envDefault:"256"`
	MaxHeight int   `env:"max_height" envDefault:"256"`
	Quality   int   `env:"quality" envDefault:"85"`          // of the JPEG, 1–100
	MaxPixels int   `env:"max_pixels" envDefault:"50000000"` // of a task; decoding takes 4 bytes each, up to 16 for a progressive JPEG
	MaxBytes  int64 `env:"max_bytes" envDefault:"33554432"`  // of a task
}

// Validate names the first setting out of its range.
func (s Settings) Validate() error {
	for _, v := range []struct {
		name        string
		v, min, max int64
	}{
		{"max_width", int64(s.MaxWidth), 1, 2048},
		{"max_height", int64(s.MaxHeight), 1, 2048},
		{"quality", int64(s.Quality), 1, 100},
		{"max_pixels", int64(s.MaxPixels), 1, 1 << 30},
		{"max_bytes", s.MaxBytes, 1, 1 << 30},
	} {
		if v.v < v.min || v.v > v.max {
			return fmt.Errorf("environment %s=%d: want %d to %d", v.name, v.v, v.min, v.max)
		}
	}
	return nil
}

func main() {
	fn.Main("thumbnail", func(context.Context, *slog.Logger) (*fn.Service, error) {
		s, err := env.ParseAs[Settings]()
		if err != nil {
			return nil, err
		}
		return &fn.Service{Handler: s}, s.Validate()
	})
}
