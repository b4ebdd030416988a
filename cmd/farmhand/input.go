package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"farmhand/skeleton/jobapi/jobclient"
)

// A piece is sent when it has this many bytes, or at this age.
const (
	pieceBytes = 8 << 20
	pieceAge   = time.Second
)

// pieceOf is a stretch of the input.
type pieceOf struct {
	piece jobclient.Piece
	tasks int
	names []string // of files, one a task
	last  bool     // certainly the last one
}

// input reads tasks from files or from a stream of lines, in pieces.
type input struct {
	files []string
	media string
	lines <-chan line // of standard input
	stop  chan struct{}
	whole io.Reader // standard input as one task
}

// line is a line of input, or why there are no more.
type line struct {
	text []byte
	err  error
}

func openInput(stdin io.Reader, paths []string, lines bool, media string) (*input, error) {
	in := &input{media: media, stop: make(chan struct{})}
	if len(paths) == 0 || (len(paths) == 1 && paths[0] == "-") {
		if lines {
			in.lines = readLines(stdin, in.stop)
		} else {
			in.whole = stdin
		}
		return in, nil
	}
	if lines {
		readers := make([]io.Reader, 0, len(paths))
		for _, path := range paths {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			readers = append(readers, f, strings.NewReader("\n"))
		}
		in.lines = readLines(io.MultiReader(readers...), in.stop)
		return in, nil
	}
	for _, path := range paths {
		if err := in.walk(path); err != nil {
			return nil, err
		}
	}
	if len(in.files) == 0 {
		return nil, fmt.Errorf("%w: no files in %s", errNothing, strings.Join(paths, ", "))
	}
	return in, nil
}

func (in *input) close() { close(in.stop) }

// walk adds a file, or the files below a folder in the order of their names;
// hidden ones are left out.
func (in *input) walk(path string) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := p != path && strings.HasPrefix(d.Name(), ".")
		switch {
		case d.IsDir() && hidden:
			return filepath.SkipDir
		case !hidden && (d.Type().IsRegular() || p == path && !d.IsDir()):
			in.files = append(in.files, p)
		}
		return nil
	})
}

// skip leaves out the first n tasks and returns the names of their files.
func (in *input) skip(ctx context.Context, n int) (names []string, err error) {
	switch {
	case in.whole != nil:
		if n > 0 {
			in.whole = nil
		}
	case in.lines != nil:
		for ; n > 0; n-- {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case l, ok := <-in.lines:
				if !ok {
					return nil, nil
				}
				if l.err != nil {
					return nil, l.err
				}
			}
		}
	default:
		n = min(n, len(in.files))
		names, in.files = slices.Clone(in.files[:n]), in.files[n:]
	}
	return names, nil
}

func readLines(r io.Reader, stop <-chan struct{}) <-chan line {
	out := make(chan line, 1024)
	go func() {
		defer close(out)
		b := bufio.NewReaderSize(r, 1<<20)
		for {
			text, err := b.ReadBytes('\n')
			if text = bytes.TrimSpace(text); len(text) > 0 {
				select {
				case out <- line{text: text}:
				case <-stop:
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					out <- line{err: err}
				}
				return
			}
		}
	}()
	return out
}

// next returns the next piece, or io.EOF.
func (in *input) next(ctx context.Context) (pieceOf, error) {
	switch {
	case in.whole != nil:
		body, err := io.ReadAll(in.whole)
		in.whole, in.files = nil, nil
		media := in.media
		if media == "" {
			media = "application/octet-stream"
		}
		return pieceOf{piece: jobclient.Piece{Type: media, Body: body}, tasks: 1, names: []string{"stdin"}, last: true}, err
	case in.lines != nil:
		return in.nextLines(ctx)
	default:
		return in.nextFiles()
	}
}

func (in *input) nextLines(ctx context.Context) (pieceOf, error) {
	p := pieceOf{piece: jobclient.Piece{Type: "application/x-ndjson"}}
	var old <-chan time.Time
	for len(p.piece.Body) < pieceBytes {
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-old:
			return p, nil
		case l, ok := <-in.lines:
			if !ok {
				if p.tasks == 0 {
					return p, io.EOF
				}
				p.last = true
				return p, nil
			}
			if l.err != nil {
				return p, l.err
			}
			if old == nil {
				t := time.NewTimer(pieceAge)
				defer t.Stop()
				old = t.C
			}
			p.piece.Body = append(append(p.piece.Body, l.text...), '\n')
			p.tasks++
		}
	}
	return p, nil
}

// nextFiles packs files into a form, one part a task.
func (in *input) nextFiles() (pieceOf, error) {
	if len(in.files) == 0 {
		return pieceOf{}, io.EOF
	}
	var p pieceOf
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for len(in.files) > 0 && p.tasks < 500 {
		info, err := os.Stat(in.files[0])
		if err != nil {
			return p, err
		}
		if p.tasks > 0 && int64(body.Len())+info.Size() > pieceBytes {
			break
		}
		if err := in.addFile(w, in.files[0]); err != nil {
			return p, err
		}
		p.names = append(p.names, in.files[0])
		in.files = in.files[1:]
		p.tasks++
	}
	if err := w.Close(); err != nil {
		return p, err
	}
	p.piece = jobclient.Piece{Type: w.FormDataContentType(), Body: body.Bytes()}
	p.last = len(in.files) == 0
	return p, nil
}

func (in *input) addFile(w *multipart.Writer, path string) error {
	media := in.media
	if media == "" {
		media = mime.TypeByExtension(filepath.Ext(path))
	}
	if media == "" {
		media = "application/octet-stream"
	}
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="task"`}, "Content-Type": {media}})
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(part, f)
	return err
}

// unique makes file names that do not collide.
func unique(taken map[string]bool, name string) string {
	ext := filepath.Ext(name)
	for i := 1; taken[name]; i++ {
		name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), i, ext)
	}
	taken[name] = true
	return name
}

// extension of a media type: the usual one, not the first of the alphabet.
func extension(media string) string {
	usual := map[string]string{"image/jpeg": ".jpg", "text/plain": ".txt", "application/json": ".json", "application/octet-stream": ".bin"}
	base, _, err := mime.ParseMediaType(media)
	if err != nil {
		return ".bin"
	}
	if ext, ok := usual[base]; ok {
		return ext
	}
	all, err := mime.ExtensionsByType(base)
	if err != nil || len(all) == 0 {
		return ".bin"
	}
	return slices.Min(all)
}
