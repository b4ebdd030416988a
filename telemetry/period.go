package telemetry

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"farmhand/skeleton/signal"
	"farmhand/telemetry/internal/frame"
)

// Span is how long a Period is.
const Span = 5 * time.Minute

// periodVersion is that of the bytes of a Period.
const periodVersion = 1

// Period is how long the tasks of five minutes were served.
type Period struct {
	Start   time.Time // a multiple of Span since 1970
	Service signal.Hist
}

// PeriodOf is the start of the period that an instant is in.
func PeriodOf(at time.Time) time.Time {
	s := at.Unix()
	size := int64(Span / time.Second)
	return time.Unix(s-((s%size)+size)%size, 0).UTC()
}

// EncodePeriod writes a period down: version, start in seconds since 1970 (zigzag),
// N, the bits of Sum, Squares and Max, the number of bins, and of each how far it
// is from the one before and its count.
func EncodePeriod(p Period) []byte {
	h := &p.Service
	b := binary.AppendVarint([]byte{periodVersion}, p.Start.Unix())
	b = binary.AppendUvarint(b, uint64(h.N))
	for _, x := range []float64{h.Sum, h.Squares, h.Max} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(x))
	}
	b = binary.AppendUvarint(b, uint64(len(h.Bins)))
	at := uint16(0)
	for _, bin := range h.Bins {
		b = binary.AppendUvarint(b, uint64(bin.At-at))
		b = binary.AppendUvarint(b, uint64(bin.N))
		at = bin.At
	}
	return b
}

// DecodePeriod reads what EncodePeriod wrote. The error wraps ErrDamaged or
// ErrVersion.
func DecodePeriod(b []byte) (Period, error) {
	if len(b) > 0 && b[0] != periodVersion {
		return Period{}, fmt.Errorf("telemetry: period of version %d, this program reads %d: %w", b[0], periodVersion, ErrVersion)
	}
	r := frame.NewReader(b)
	r.Bytes(1)
	p := Period{Start: time.Unix(r.Varint(), 0).UTC()}
	h := &p.Service
	n := r.Uvarint()
	h.N = int(n)
	for _, x := range []*float64{&h.Sum, &h.Squares, &h.Max} {
		if bits := r.Bytes(8); bits != nil {
			*x = math.Float64frombits(binary.BigEndian.Uint64(bits))
		}
		if !(*x >= 0) || math.IsInf(*x, 0) {
			r.Fail("a sum that is no number")
		}
	}
	bins := r.Count()
	if n > math.MaxInt32 || bins > signal.Bins {
		r.Fail("impossible size")
	}
	h.Bins = readBins(r, min(bins, signal.Bins))
	if r.Err() != nil || r.Left() > 0 {
		return Period{}, fmt.Errorf("telemetry: period: %d bytes too many, %w", r.Left(), ErrDamaged)
	}
	return p, nil
}

// readBins reads bins, which ascend and are not empty.
func readBins(r *frame.Reader, n int) []signal.Bin {
	if n == 0 {
		return nil
	}
	bins := make([]signal.Bin, n)
	at := uint64(0)
	for i := range bins {
		step, count := r.Uvarint(), r.Uvarint()
		at += step
		if step >= signal.Bins || at >= signal.Bins || step == 0 && i > 0 || count == 0 || count > math.MaxUint32 {
			r.Fail("an impossible bin")
			return nil
		}
		bins[i] = signal.Bin{At: uint16(at), N: uint32(count)}
	}
	return bins
}
