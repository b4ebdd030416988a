// Package frame wraps bytes for keeping: with a kind, a checksum, and deflated
// where that makes them shorter.
//
//	kind (1) | form (1): 0 as is, 1 deflated | CRC-32C of kind and body (4) | body
package frame

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// ErrDamaged says that bytes are no frame, or not the ones that were kept.
var ErrDamaged = errors.New("damaged")

const (
	plain    = 0
	deflated = 1
	header   = 6
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writers are reused: a new one takes a megabyte.
var writers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic("frame: " + err.Error()) // the level is valid
	}
	return w
}}

// Plain wraps a body as it is.
func Plain(kind byte, body []byte) []byte {
	b := append(make([]byte, 0, header+len(body)), kind, plain)
	return append(binary.BigEndian.AppendUint32(b, sum(kind, body)), body...)
}

// Deflate wraps a body, deflated unless that makes it longer.
func Deflate(kind byte, body []byte) []byte {
	var out bytes.Buffer
	out.Write(binary.BigEndian.AppendUint32([]byte{kind, deflated}, sum(kind, body)))
	w := writers.Get().(*flate.Writer)
	defer writers.Put(w)
	w.Reset(&out)
	_, err := w.Write(body)
	if err = errors.Join(err, w.Close()); err != nil {
		panic("frame: " + err.Error()) // a buffer takes everything
	}
	if out.Len() >= header+len(body) {
		return Plain(kind, body)
	}
	return out.Bytes()
}

// Open returns the kind and the body of a frame, of at most so many bytes. The
// error wraps ErrDamaged. The body of a plain frame is part of b.
func Open(b []byte, most int) (kind byte, body []byte, err error) {
	if len(b) < header {
		return 0, nil, fmt.Errorf("frame: %d bytes: %w", len(b), ErrDamaged)
	}
	kind, body = b[0], b[header:]
	switch b[1] {
	case plain:
	case deflated:
		if body, err = inflate(body, most); err != nil {
			return 0, nil, fmt.Errorf("frame: %w: %w", ErrDamaged, err)
		}
	default:
		return 0, nil, fmt.Errorf("frame: form %d: %w", b[1], ErrDamaged)
	}
	if len(body) > most {
		return 0, nil, fmt.Errorf("frame: more than %d bytes: %w", most, ErrDamaged)
	}
	if sum(kind, body) != binary.BigEndian.Uint32(b[2:]) {
		return 0, nil, fmt.Errorf("frame: checksum: %w", ErrDamaged)
	}
	return kind, body, nil
}

// inflate reads one byte beyond the most at most: memory grows with what is
// there, not with what is promised.
func inflate(b []byte, most int) ([]byte, error) {
	r := flate.NewReader(bytes.NewReader(b))
	body, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	return body, errors.Join(err, r.Close())
}

func sum(kind byte, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, body)
}
