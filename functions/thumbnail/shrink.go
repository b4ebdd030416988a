package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"

	"golang.org/x/image/draw"
)

// maxSide bounds a picture's sides one by one; it is what JPEG and GIF can say.
const maxSide = 65535

// Decode reads a picture. It looks at the header first, so that a small file
// cannot claim more memory than maxPixels take.
func Decode(file []byte, maxPixels int) (image.Image, string, error) {
	head, format, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return nil, "", reason(err)
	}
	w, h := head.Width, head.Height
	if w < 1 || h < 1 {
		return nil, "", fmt.Errorf("the %s is empty (%d×%d)", format, w, h)
	}
	if w > maxSide || h > maxSide || w*h > maxPixels {
		return nil, "", fmt.Errorf("the %s claims %d×%d pixels, over the limit of %d (at most %d a side)", format, w, h, maxPixels, maxSide)
	}
	img, format, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, "", reason(err)
	}
	if b := img.Bounds(); b.Empty() {
		return nil, "", fmt.Errorf("the %s is empty", format)
	}
	return img, format, nil
}

func reason(err error) error {
	switch {
	case errors.Is(err, image.ErrFormat):
		return errors.New("the bytes are no JPEG, PNG or GIF")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file ends too early")
	}
	return fmt.Errorf("the picture cannot be decoded: %w", err)
}

// Shrink returns src turned upright, on white, and scaled down to fit w × h by
// Catmull–Rom; a picture that fits keeps its size.
func Shrink(src image.Image, turn Orientation, w, h int) *image.RGBA {
	b := src.Bounds()
	if turn.Swaps() {
		w, h = h, w
	}
	w, h = fit(b.Dx(), b.Dy(), w, h)
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(dst, dst.Bounds(), image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(dst, dst.Bounds(), src, b, draw.Over, nil)
	return turn.apply(dst)
}

// fit returns the largest size of a picture's shape within maxW × maxH and its
// own size, at least one pixel each way.
func fit(w, h, maxW, maxH int) (int, int) {
	switch {
	case w <= maxW && h <= maxH:
		return w, h
	case w*maxH > h*maxW: // the width binds
		return maxW, max(1, (h*maxW+w/2)/w)
	default:
		return max(1, (w*maxH+h/2)/h), maxH
	}
}
