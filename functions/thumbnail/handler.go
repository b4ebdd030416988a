package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"strconv"

	"farmhand/internal/problem"
)

// ServeHTTP answers one task.
func (s Settings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, problem.New(http.StatusMethodNotAllowed, "method", "a task comes as the body of a POST"))
		return
	}
	small, source, err := s.thumbnail(w, r)
	if err != nil {
		problem.Write(w, err)
		return
	}
	var out bytes.Buffer // whole before the first byte goes out: an error can still be told
	if err := jpeg.Encode(&out, small, &jpeg.Options{Quality: s.Quality}); err != nil {
		problem.Write(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "image/jpeg")
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	h.Set("X-Image-Width", strconv.Itoa(small.Bounds().Dx()))
	h.Set("X-Image-Height", strconv.Itoa(small.Bounds().Dy()))
	h.Set("X-Image-Source", source)
	_, _ = out.WriteTo(w) // a client that went away needs no answer
}

// thumbnail reads the request's picture and makes it small.
func (s Settings) thumbnail(w http.ResponseWriter, r *http.Request) (small *image.RGBA, source string, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.MaxBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, "", problem.New(http.StatusRequestEntityTooLarge, "too-large",
			fmt.Sprintf("a picture has at most %d bytes", s.MaxBytes)).At("body", "send a smaller file, or raise max_bytes")
	}
	if err != nil {
		return nil, "", problem.New(http.StatusBadRequest, "bad-body", "the body could not be read to its end")
	}
	src, format, err := Decode(body, s.MaxPixels)
	if err != nil {
		return nil, "", problem.New(http.StatusUnprocessableEntity, "bad-image", err.Error()).
			At("body", "send a whole JPEG, PNG or GIF file")
	}
	if r.Context().Err() != nil {
		return nil, "", problem.New(http.StatusServiceUnavailable, "cancelled", "the call ended before the work did")
	}
	turn := Upright
	if format == "jpeg" {
		turn = ReadOrientation(body)
	}
	source = fmt.Sprintf("%s %dx%d", format, src.Bounds().Dx(), src.Bounds().Dy())
	return Shrink(src, turn, s.MaxWidth, s.MaxHeight), source, nil
}
