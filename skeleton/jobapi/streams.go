package jobapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"

	"farmhand/internal/problem"
)

// decodeLines reads newline-delimited JSON: each line is a body, or describes a
// task where items is set. Empty lines are skipped.
func decodeLines(body io.Reader, o options, items bool, limit int, take sink) error {
	r := bufio.NewReaderSize(body, 64<<10)
	for line := 1; ; line++ {
		raw, err := readLine(r, limit)
		if err != nil && !errors.Is(err, io.EOF) {
			return onLine(err, line)
		}
		if text := bytes.TrimSpace(raw); len(text) > 0 {
			if !json.Valid(text) {
				return onLine(malformed("line", errors.New("the line is no JSON value")), line)
			}
			t, terr := element(text, items, o.defaults, limit)
			if terr == nil {
				terr = take(t)
			}
			if terr != nil {
				return onLine(terr, line)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readLine returns a line of its own memory; io.EOF comes with the last one.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit+1 {
			return nil, tooLarge("line", limit)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, malformed("body", err)
		}
		return line, err
	}
}

// onLine adds the line a problem is about.
func onLine(err error, line int) error {
	var p *problem.Problem
	if errors.As(err, &p) {
		p.Line = line
	}
	return err
}

// decodeParts reads multipart/form-data: one part a task, of the part's type.
func decodeParts(r *http.Request, o options, limit int, take sink) error {
	parts, err := r.MultipartReader()
	if err != nil {
		return malformed("Content-Type", err)
	}
	for i := 0; ; i++ {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return at(malformed("body", err), i)
		}
		t := o.defaults
		if media := part.Header.Get("Content-Type"); media != "" {
			if err := setType(&t, media); err != nil {
				return at(err, i)
			}
		}
		if t.Body, err = readPart(part, limit); err != nil {
			return at(err, i)
		}
		if err := take(t); err != nil {
			return at(err, i)
		}
	}
}

func readPart(part *multipart.Part, limit int) ([]byte, error) {
	if part.Header.Get("Content-Transfer-Encoding") != "" {
		return nil, malformed("Content-Transfer-Encoding", errors.New("a part must not be encoded"))
	}
	return readBody(part, "part", limit)
}

// readBody reads a whole body of at most limit bytes.
func readBody(r io.Reader, field string, limit int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, malformed(field, err)
	}
	if len(body) > limit {
		return nil, tooLarge(field, limit)
	}
	return body, nil
}

// decodeOne takes the whole body as one task.
func decodeOne(r *http.Request, o options, limit int, take sink) error {
	t := o.defaults
	if media := r.Header.Get("Content-Type"); media != "" {
		if err := setType(&t, media); err != nil {
			return err
		}
	}
	body, err := readBody(r.Body, "body", limit)
	if err != nil {
		return err
	}
	t.Body = body
	return take(t)
}
