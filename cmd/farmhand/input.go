package main

import (
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
	"strings"
	"time"

	"farmhand/skeleton/jobapi/jobclient"
)

// A piece is sent when it has this many bytes or tasks, or at this age.
const (
	pieceBytes = 8 << 20
	pieceFiles = 500
	pieceAge   = time.Second
)

// piece is a stretch of the input that is sent in one go.
type piece struct {
	jobclient.Piece
	tasks int
	files []string // where each task is a file
	lines [][]byte // where each is a line
	last  bool     // certainly the last one
}

// input reads tasks from files, from lines, or standard input as one task.
type input struct {
	media string
	files []string
	lines <-chan lineBatch
	ahead [][]byte // lines read but not sent
	ended error    // why there are no more lines
	whole io.Reader
	stop  chan struct{}
	open  []io.Closer
}

// openInput opens what the command line names: files and folders, or standard
// input.
func openInput(stdin io.Reader, paths []string, lines bool, media string) (*input, error) {
	in := &input{media: media, stop: make(chan struct{})}
	fromStdin := len(paths) == 0 || len(paths) == 1 && paths[0] == "-"
	switch {
	case fromStdin && lines:
		in.lines = readLines(stdin, in.stop)
	case fromStdin:
		in.whole = stdin
	case lines:
		readers := make([]io.Reader, 0, 2*len(paths))
		for _, path := range paths {
			f, err := os.Open(path)
			if err != nil {
				in.close()
				return nil, err
			}
			in.open = append(in.open, f)
			readers = append(readers, f, strings.NewReader("\n"))
		}
		in.lines = readLines(io.MultiReader(readers...), in.stop)
	default:
		for _, path := range paths {
			if err := in.walk(path); err != nil {
				return nil, err
			}
		}
		if len(in.files) == 0 {
			return nil, fmt.Errorf("%w: no files in %s", errNothing, strings.Join(paths, ", "))
		}
	}
	return in, nil
}

func (in *input) close() {
	close(in.stop)
	for _, f := range in.open {
		_ = f.Close() // only read
	}
}

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

// skip leaves out the first n tasks: a job that goes on has them.
func (in *input) skip(ctx context.Context, n int) error {
	switch {
	case in.whole != nil:
		if n > 0 {
			in.whole = nil
		}
	case in.lines != nil:
		for n > 0 {
			if len(in.ahead) == 0 {
				if err := in.fill(ctx, nil); err != nil {
					return err
				}
				if len(in.ahead) == 0 {
					return in.short(n)
				}
			}
			k := min(n, len(in.ahead))
			in.ahead, n = in.ahead[k:], n-k
		}
	default:
		if n > len(in.files) {
			return in.short(n - len(in.files))
		}
		in.files = in.files[n:]
	}
	return nil
}

func (in *input) short(n int) error {
	return fmt.Errorf("the job holds %d tasks more than this input: it is not the input that the job was made of", n)
}

// unread puts a piece back that was not taken.
func (in *input) unread(p piece) {
	in.files = append(p.files, in.files...)
	in.ahead = append(p.lines, in.ahead...)
	if p.files == nil && p.lines == nil {
		in.whole = bytes.NewReader(p.Body)
	}
}

// next returns the next piece, or io.EOF.
func (in *input) next(ctx context.Context) (piece, error) {
	switch {
	case in.whole != nil:
		return in.nextWhole()
	case in.lines != nil:
		return in.nextLines(ctx)
	case len(in.files) > 0:
		return in.nextFiles()
	}
	return piece{}, io.EOF
}

func (in *input) nextWhole() (piece, error) {
	body, err := io.ReadAll(io.LimitReader(in.whole, maxLine+1))
	if err == nil && len(body) == 0 {
		return piece{}, errNothing
	}
	if err == nil && len(body) > maxLine {
		err = fmt.Errorf("the task is larger than %d MB", maxLine>>20)
	}
	in.whole = nil
	media := in.media
	if media == "" {
		media = "application/octet-stream"
	}
	return piece{Piece: jobclient.Piece{Type: media, Body: body}, tasks: 1, last: true}, err
}

// fill waits for lines, until it is time to send what there is.
func (in *input) fill(ctx context.Context, due <-chan time.Time) error {
	if in.ended != nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-due:
	case b := <-in.lines:
		in.ahead, in.ended = append(in.ahead, b.lines...), b.err
	}
	return nil
}

func (in *input) nextLines(ctx context.Context) (piece, error) {
	p := piece{Piece: jobclient.Piece{Type: "application/x-ndjson"}}
	var due <-chan time.Time
	for {
		for len(in.ahead) > 0 && (len(p.lines) == 0 || len(p.Body)+len(in.ahead[0]) < pieceBytes) {
			p.Body = append(append(p.Body, in.ahead[0]...), '\n')
			p.lines = append(p.lines, in.ahead[0])
			in.ahead = in.ahead[1:]
		}
		p.tasks = len(p.lines)
		switch {
		case len(in.ahead) > 0: // full
			return p, nil
		case in.ended != nil && p.tasks > 0: // an error comes with the next call
			p.last = errors.Is(in.ended, io.EOF)
			return p, nil
		case in.ended != nil:
			return p, in.ended
		}
		if due == nil && p.tasks > 0 {
			t := time.NewTimer(pieceAge)
			defer t.Stop()
			due = t.C
		}
		before := len(in.ahead)
		if err := in.fill(ctx, due); err != nil {
			in.unread(p)
			return piece{}, err
		}
		if len(in.ahead) == before && in.ended == nil && p.tasks > 0 { // old enough
			return p, nil
		}
	}
}

// nextFiles packs files into a form, one part a task.
func (in *input) nextFiles() (piece, error) {
	var p piece
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for len(in.files) > 0 && p.tasks < pieceFiles {
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
		p.files = append(p.files, in.files[0])
		in.files = in.files[1:]
		p.tasks++
	}
	if err := w.Close(); err != nil {
		return p, err
	}
	p.Type, p.Body = w.FormDataContentType(), body.Bytes()
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
	n, err := io.Copy(part, io.LimitReader(f, maxLine+1))
	if err == nil && n > maxLine {
		err = fmt.Errorf("%s is larger than %d MB", path, maxLine>>20)
	}
	return err
}
