// Package checkpoint writes the state of a learner, or of a whole training, and reads
// it again.
//
// Who has a state describes it once, as calls on a Codec in a fixed order; the
// same calls write and read, so that the two cannot differ. A checkpoint is
//
//	"farmhand checkpoint 1\n"
//	a line of JSON: what the state belongs to
//	fields, each its name and its numbers, little-endian
//	CRC-32C of all that
//
// Equal states give equal bytes.
package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
)

const magic = "farmhand checkpoint 1\n"

// Limit is how large a checkpoint may be, in bytes.
const Limit = 1 << 30

var table = crc32.MakeTable(crc32.Castagnoli)

// Codec writes or reads fields.
type Codec struct {
	buf     []byte // written, or left to be read
	reading bool
	err     error // the first
}

// Save writes a checkpoint. header is one line of JSON; state writes the fields.
func Save(w io.Writer, header []byte, state func(*Codec)) error {
	c := &Codec{buf: append(append([]byte(magic), header...), '\n')}
	state(c)
	if c.err != nil {
		return c.err
	}
	c.buf = binary.LittleEndian.AppendUint32(c.buf, crc32.Checksum(c.buf, table))
	_, err := w.Write(c.buf)
	return err
}

// Load reads a checkpoint that was written with the same header; state reads the
// fields. A damaged one is refused before anything is read of it.
func Load(r io.Reader, header []byte, state func(*Codec)) error {
	buf, err := io.ReadAll(io.LimitReader(r, Limit+1))
	if err != nil {
		return err
	}
	if len(buf) > Limit {
		return fmt.Errorf("checkpoint: longer than %d bytes", Limit)
	}
	rest, ok := bytes.CutPrefix(buf, []byte(magic))
	if !ok {
		return errors.New("checkpoint: not a checkpoint, or one of another version")
	}
	if len(rest) < 4 || crc32.Checksum(buf[:len(buf)-4], table) != binary.LittleEndian.Uint32(buf[len(buf)-4:]) {
		return errors.New("checkpoint: damaged or cut off: its checksum does not fit")
	}
	got, fields, _ := bytes.Cut(rest[:len(rest)-4], []byte("\n"))
	if !bytes.Equal(got, header) {
		return fmt.Errorf("checkpoint: it is of something else: %s", strings.Join(differences("", decoded(got), decoded(header)), "; "))
	}
	c := &Codec{buf: fields, reading: true}
	state(c)
	if c.err == nil && len(c.buf) > 0 {
		c.err = fmt.Errorf("checkpoint: %d bytes too many", len(c.buf))
	}
	return c.err
}

func decoded(header []byte) (v any) {
	if json.Unmarshal(header, &v) != nil {
		return string(header)
	}
	return v
}

// differences names what of two headers differs, field by field.
func differences(name string, got, want any) (list []string) {
	a, ok := got.(map[string]any)
	b, both := want.(map[string]any)
	if !ok || !both {
		if !reflect.DeepEqual(got, want) {
			list = append(list, fmt.Sprintf("%s is %v: want %v", cmp.Or(name, "the header"), got, want))
		}
		return list
	}
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		list = append(list, differences(strings.TrimPrefix(name+"."+key, "."), a[key], b[key])...)
	}
	return list
}

// Reading reports whether the codec reads.
func (c *Codec) Reading() bool { return c.reading }

// Fail makes Load return an error, unless there is one already.
func (c *Codec) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Failed reports whether there is an error: what was read is not to be used.
func (c *Codec) Failed() bool { return c.err != nil }

// field writes a field's name and size in bytes, or reads them, and returns its
// bytes to be written or read; nil after an error.
func (c *Codec) field(name string, size int) []byte {
	if c.err != nil {
		return nil
	}
	if !c.reading {
		c.buf = append(append(c.buf, byte(len(name))), name...)
		c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(size))
		c.buf = append(c.buf, make([]byte, size)...)
		return c.buf[len(c.buf)-size:]
	}
	n := 1 + len(name)
	if len(c.buf) < n+8 || int(c.buf[0]) != len(name) || string(c.buf[1:n]) != name {
		c.err = fmt.Errorf("checkpoint: %s is missing", name)
		return nil
	}
	got := binary.LittleEndian.Uint64(c.buf[n:])
	c.buf = c.buf[n+8:]
	if got != uint64(size) || got > uint64(len(c.buf)) {
		c.err = fmt.Errorf("checkpoint: %s has %d bytes: want %d", name, got, size)
		return nil
	}
	data := c.buf[:size]
	c.buf = c.buf[size:]
	return data
}

// Int is a number. Read, it must be from 0 to most.
func (c *Codec) Int(name string, p *int, most int) {
	b := c.field(name, 8)
	switch {
	case b == nil:
	case !c.reading:
		binary.LittleEndian.PutUint64(b, uint64(*p))
	default:
		v := binary.LittleEndian.Uint64(b)
		if v > uint64(most) {
			c.err = fmt.Errorf("checkpoint: %s is %d: want at most %d", name, v, most)
			return
		}
		*p = int(v)
	}
}

// Float is a number.
func (c *Codec) Float(name string, p *float64) {
	one := [1]float64{*p}
	c.Floats(name, one[:])
	*p = one[0]
}

// Floats are as many numbers as x has.
func (c *Codec) Floats(name string, x []float64) {
	b := c.field(name, 8*len(x))
	switch {
	case b == nil:
	case !c.reading:
		for i, v := range x {
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
		}
	default:
		for i := range x {
			x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
}

// Numbers are as many numbers as x has, each of a type of fixed size.
func Numbers[T ~uint8 | ~int32 | ~uint64 | ~float32](c *Codec, name string, x []T) {
	b := c.field(name, binary.Size(x))
	switch {
	case b == nil:
	case !c.reading:
		if _, err := binary.Encode(b, binary.LittleEndian, x); err != nil {
			c.Fail(err)
		}
	default:
		if _, err := binary.Decode(b, binary.LittleEndian, x); err != nil {
			c.Fail(err)
		}
	}
}

// Len is the length of a list that follows, at most the given one; read, the list
// is to be made that long.
func (c *Codec) Len(name string, n, most int) int {
	c.Int(name, &n, most)
	if c.err != nil {
		return 0
	}
	return n
}

// Bytes are any, at most so many.
func (c *Codec) Bytes(name string, p *[]byte, most int) {
	n := c.Len(name+" length", len(*p), most)
	if c.reading && c.err == nil {
		if n > len(c.buf) {
			c.err = fmt.Errorf("checkpoint: %s has %d bytes of %d: it is cut off", name, len(c.buf), n)
			return
		}
		*p = make([]byte, n)
	}
	if b := c.field(name, len(*p)); b != nil {
		if c.reading {
			copy(*p, b)
		} else {
			copy(b, *p)
		}
	}
}

// PCG is the state of a random source.
func (c *Codec) PCG(name string, p *rand.PCG) {
	state, err := p.MarshalBinary()
	if err != nil {
		c.Fail(err)
		return
	}
	b := c.field(name, len(state))
	switch {
	case b == nil:
	case !c.reading:
		copy(b, state)
	default:
		if err := p.UnmarshalBinary(b); err != nil {
			c.Fail(fmt.Errorf("checkpoint: %s: %w", name, err))
		}
	}
}
