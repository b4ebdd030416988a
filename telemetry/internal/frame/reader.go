package frame

import (
	"encoding/binary"
	"fmt"
)

// Reader takes a body apart. Once something is missing all that follows is
// zero, and Err says so.
type Reader struct {
	b   []byte
	err error
}

// NewReader returns a Reader of a body, which it does not change.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err wraps ErrDamaged where something was missing or too large.
func (r *Reader) Err() error { return r.err }

// Left is how many bytes are left.
func (r *Reader) Left() int { return len(r.b) }

// Fail notes that what was read makes no sense.
func (r *Reader) Fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("frame: %s: %w", what, ErrDamaged)
	}
	r.b = nil
}

// Uvarint reads a number.
func (r *Reader) Uvarint() uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.Fail("a number is cut off")
		return 0
	}
	r.b = r.b[n:]
	return x
}

// Varint reads a number with a sign.
func (r *Reader) Varint() int64 {
	x := r.Uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

// Count reads how many things follow, each of at least one byte: never more
// than there are bytes.
func (r *Reader) Count() int {
	n := r.Uvarint()
	if n > uint64(len(r.b)) {
		r.Fail("more is promised than there is")
		return 0
	}
	return int(n)
}

// Bytes reads n bytes, which are part of the body.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.Fail("bytes are cut off")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}
