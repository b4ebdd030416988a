package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	batchBytes = 256 << 10
	maxLine    = 64 << 20
)

// lineBatch are lines that were read together, or why there are no more.
type lineBatch struct {
	lines [][]byte
	err   error
}

// readLines reads lines of JSON ahead of who sends them, so that a slow
// producer's lines do not wait for the piece to fill. Empty lines are left out.
func readLines(r io.Reader, stop <-chan struct{}) <-chan lineBatch {
	out := make(chan lineBatch, 4)
	go func() {
		defer close(out)
		b := bufio.NewReaderSize(r, 64<<10)
		var batch lineBatch
		bytes := 0
		for number := 1; batch.err == nil; number++ {
			text, err := readLine(b)
			if len(text) > 0 && !json.Valid(text) {
				err = fmt.Errorf("line %d of the input is no JSON value: %.60q", number, text)
			} else if len(text) > 0 {
				batch.lines = append(batch.lines, text)
				bytes += len(text)
			}
			batch.err = err
			if err == nil && bytes < batchBytes && b.Buffered() > 0 {
				continue
			}
			select {
			case out <- batch:
				batch.lines, bytes = nil, 0
			case <-stop:
				return
			}
		}
	}()
	return out
}

// readLine returns the next line without space around it; io.EOF comes with the
// last one.
func readLine(b *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("a line of the input is longer than %d MB", maxLine>>20)
		case !errors.Is(err, bufio.ErrBufferFull):
			return bytes.TrimSpace(line), err
		}
	}
}
