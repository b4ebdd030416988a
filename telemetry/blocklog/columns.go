package blocklog

import (
	"bytes"
	"encoding/binary"

	"farmhand/telemetry/internal/frame"
)

// JSON records of one kind are alike but for their values. So they are taken
// apart: an entry's shape is what is left of it when every value (a number, a
// string that is no key, null, true, false) is a hole. Shapes are written once;
// the values in the same hole of entries of the same shape stand together, each
// ended by a line feed, or as a single = where it is the same again. Deflated,
// this is about a quarter shorter than the entries in their order.
//
//	number of shapes | each: length, bytes | the shape of each entry
//	| number of bytes of values | values: by shape, by hole, by entry
//
// It is only a way of cutting: whatever is put together again is what was there,
// valid JSON or not. Entries with control characters, which JSON in one line has
// none of, are left in rows, and so are those that have little in common.

const (
	hole  = 0
	end   = '\n'
	again = '='
)

// group are the entries of one shape.
type group struct {
	shape  []byte
	values [][][]byte // by entry, by hole
}

// appendColumns returns false where rows are better.
func appendColumns(b []byte, entries []Entry) ([]byte, bool) {
	var groups []*group
	known := map[string]int{}
	of := make([]int, len(entries))
	for i := range entries {
		shape, values, ok := take(entries[i].Data)
		if !ok {
			return nil, false
		}
		k, ok := known[string(shape)]
		if !ok {
			k = len(groups)
			known[string(shape)] = k
			groups = append(groups, &group{shape: shape})
		}
		of[i] = k
		groups[k].values = append(groups[k].values, values)
	}
	if 2*len(groups) > len(entries) {
		return nil, false
	}
	b = binary.AppendUvarint(b, uint64(len(groups)))
	for _, g := range groups {
		b = binary.AppendUvarint(b, uint64(len(g.shape)))
		b = append(b, g.shape...)
	}
	for _, k := range of {
		b = binary.AppendUvarint(b, uint64(k))
	}
	var values []byte
	for _, g := range groups {
		values = g.append(values)
	}
	b = binary.AppendUvarint(b, uint64(len(values)))
	return append(b, values...), true
}

func (g *group) append(b []byte) []byte {
	for h := range g.values[0] {
		for i := range g.values {
			v := g.values[i][h]
			if i > 0 && bytes.Equal(v, g.values[i-1][h]) {
				b = append(b, again)
				continue
			}
			b = append(append(b, v...), end)
		}
	}
	return b
}

// take takes an entry apart. It returns false where the entry holds a character
// that has a meaning of its own here.
func take(entry []byte) (shape []byte, values [][]byte, ok bool) {
	for i := 0; i < len(entry); {
		n, isValue := piece(entry[i:])
		for _, c := range entry[i : i+n] {
			if c < ' ' {
				return nil, nil, false
			}
		}
		if isValue {
			values = append(values, entry[i:i+n])
			shape = append(shape, hole)
		} else {
			shape = append(shape, entry[i:i+n]...)
		}
		i += n
	}
	return shape, values, true
}

// piece is the length of the value that b begins with, or of what is none.
func piece(b []byte) (n int, isValue bool) {
	switch c := b[0]; {
	case c == '"':
		n = text(b)
		return n, n == len(b) || b[n] != ':' // else it is a key
	case c == '-' || '0' <= c && c <= '9':
		n = 1
		for n < len(b) && ('0' <= b[n] && b[n] <= '9' || b[n] == '.' || b[n] == 'e' || b[n] == 'E' || b[n] == '-' || b[n] == '+') {
			n++
		}
		return n, true
	case bytes.HasPrefix(b, []byte("null")), bytes.HasPrefix(b, []byte("true")):
		return 4, true
	case bytes.HasPrefix(b, []byte("false")):
		return 5, true
	}
	return 1, false
}

// text is the length of the string that b begins with.
func text(b []byte) int {
	for n := 1; n < len(b); n++ {
		switch b[n] {
		case '\\':
			n++
		case '"':
			return n + 1
		}
	}
	return len(b)
}

// readColumns puts n entries together again.
func readColumns(r *frame.Reader, n int) [][]byte {
	many := r.Count()
	if many > n {
		r.Fail("more shapes than entries")
		return nil
	}
	groups := make([]*group, many)
	for k := range groups {
		groups[k] = &group{shape: r.Bytes(r.Count())}
	}
	of := make([]int, n)
	for i := range of {
		k := r.Uvarint()
		if k >= uint64(len(groups)) {
			r.Fail("an unknown shape")
			return nil
		}
		of[i] = int(k)
		groups[k].values = append(groups[k].values, nil)
	}
	values := r.Bytes(r.Count())
	room := mostBytes
	for _, g := range groups {
		if values, room = g.read(values, room); room < 0 {
			r.Fail("values are cut off, or too long")
			return nil
		}
	}
	if len(values) > 0 {
		r.Fail("more values than holes")
		return nil
	}
	data := make([][]byte, n)
	for i, k := range of {
		g := groups[k]
		data[i] = put(g.shape, g.values[0])
		g.values = g.values[1:]
	}
	return data
}

// read takes the group's values from the front of b. The room is for the bytes
// of the entries and for their values; it is negative when b does not suffice.
func (g *group) read(b []byte, room int) ([]byte, int) {
	holes := bytes.Count(g.shape, []byte{hole})
	room -= len(g.values) * (len(g.shape) + 24*holes)
	if room < 0 {
		return nil, -1
	}
	for i := range g.values {
		g.values[i] = make([][]byte, holes)
	}
	for h := range holes {
		for i := range g.values {
			switch n := bytes.IndexByte(b, end); {
			case len(b) > 0 && b[0] == again && i > 0:
				g.values[i][h], b = g.values[i-1][h], b[1:]
			case n < 0:
				return nil, -1
			default:
				g.values[i][h], b = b[:n], b[n+1:]
			}
			if room -= len(g.values[i][h]); room < 0 {
				return nil, -1
			}
		}
	}
	return b, room
}

// put fills the holes of a shape.
func put(shape []byte, values [][]byte) []byte {
	size := len(shape) - len(values)
	for _, v := range values {
		size += len(v)
	}
	entry := make([]byte, 0, size)
	for len(values) > 0 {
		n := bytes.IndexByte(shape, hole)
		entry = append(append(entry, shape[:n]...), values[0]...)
		shape, values = shape[n+1:], values[1:]
	}
	return append(entry, shape...)
}
