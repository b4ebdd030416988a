package signal

import (
	"encoding/binary"
	"errors"
	"math"
)

// Tallies and histograms have a short binary form, for stores:
//
//	tally  = version starts busy failed lost wait service sojourn
//	hist   = bins [sum squares max {distance n}]
//
// version is a byte; sum, squares and max are float64, little endian; all else is
// unsigned varints. distance is that of a bin from the one before it. Of an empty
// histogram only bins stands there.
const version = 1

// ErrBinary says that bytes are no binary form that this program knows.
var ErrBinary = errors.New("signal: not the binary form of a tally or a histogram")

// AppendBinary implements encoding.BinaryAppender.
func (t *Tally) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, version)
	for _, n := range []int{t.Starts, t.Busy, t.Failed, t.Lost} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, h := range t.hists() {
		b = h.append(b)
	}
	return b, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (t *Tally) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != version {
		return ErrBinary
	}
	r := reader{b: b[1:]}
	*t = Tally{Starts: r.int(), Busy: r.int(), Failed: r.int(), Lost: r.int(), Wait: r.hist(), Service: r.hist(), Sojourn: r.hist()}
	return r.end()
}

// AppendBinary implements encoding.BinaryAppender.
func (h *Hist) AppendBinary(b []byte) ([]byte, error) { return h.append(append(b, version)), nil }

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (h *Hist) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != version {
		return ErrBinary
	}
	r := reader{b: b[1:]}
	*h = r.hist()
	return r.end()
}

func (h *Hist) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(h.Bins)))
	if len(h.Bins) == 0 {
		return b
	}
	for _, x := range []float64{h.Sum, h.Squares, h.Max} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	last := uint16(0)
	for _, bin := range h.Bins {
		b = binary.AppendUvarint(b, uint64(bin.At-last))
		b = binary.AppendUvarint(b, uint64(bin.N))
		last = bin.At
	}
	return b
}

// reader takes values off bytes. After the first that is not there or not
// possible, it is broken and all it reads is 0.
type reader struct {
	b      []byte
	broken bool
}

func (r *reader) fail() { r.b, r.broken = nil, true }

// end is an error unless all bytes were good and are read.
func (r *reader) end() error {
	if r.broken || len(r.b) > 0 {
		return ErrBinary
	}
	return nil
}

func (r *reader) int() int {
	n, k := binary.Uvarint(r.b)
	if k <= 0 || n > math.MaxInt64 {
		r.fail()
		return 0
	}
	r.b = r.b[k:]
	return int(n)
}

// float reads a number that is finite and not negative.
func (r *reader) float() float64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	if !(x >= 0 && x <= math.MaxFloat64) {
		r.fail()
		return 0
	}
	return x
}

func (r *reader) hist() (h Hist) {
	n := r.int()
	if n == 0 {
		return h
	}
	if n > Bins {
		r.fail()
		return h
	}
	h = Hist{Sum: r.float(), Squares: r.float(), Max: r.float(), Bins: make([]Bin, n)}
	at := 0
	for i := range h.Bins {
		distance, count := r.int(), r.int()
		at += distance
		if at >= Bins || i > 0 && distance == 0 || count == 0 || count > math.MaxUint32 {
			r.fail()
			return Hist{}
		}
		h.Bins[i] = Bin{uint16(at), uint32(count)}
		h.N += count
	}
	return h
}
