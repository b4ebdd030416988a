package blocklog

import (
	"encoding/binary"
	"fmt"
	"time"

	"farmhand/telemetry/internal/frame"
)

// The forms of a block: kinds of a frame, whose bodies are
//
//	inRows      times | length of each entry | entries
//	inColumns   times | entries taken apart, see columns.go
//	inOwn       what the log's Codec packed
//
// where times = how many entries there are, and of each how many microseconds it
// is after the one before, the first one after 1970. All numbers are varints.
const (
	inRows    = 1
	inColumns = 2
	inOwn     = 3
)

// What a block holds at most when it is unpacked.
const (
	mostBytes   = 64 << 20
	mostEntries = 100_000
)

// pack makes a block of entries in the form that suits them.
func pack(entries []Entry, own Codec) []byte {
	if own != nil {
		if b, err := own.Pack(entries); err == nil {
			return frame.Plain(inOwn, b)
		}
	}
	head := appendTimes(nil, entries)
	if b, ok := appendColumns(head, entries); ok {
		return frame.Deflate(inColumns, b)
	}
	return frame.Deflate(inRows, appendRows(head, entries))
}

// unpack returns the entries of a block. What it takes in memory is bounded,
// whatever the bytes say. The error wraps ErrDamaged, or is that of the codec.
func unpack(b []byte, own Codec) ([]Entry, error) {
	form, body, err := frame.Open(b, mostBytes)
	if err != nil {
		return nil, err
	}
	if form == inOwn {
		if own == nil {
			return nil, fmt.Errorf("this program does not know how it was packed: %w", ErrDamaged)
		}
		return own.Unpack(body)
	}
	r := frame.NewReader(body)
	times := readTimes(r)
	var data [][]byte
	switch form {
	case inRows:
		data = readRows(r, len(times))
	case inColumns:
		data = readColumns(r, len(times))
	default:
		r.Fail("unknown form")
	}
	if r.Left() > 0 {
		r.Fail("too long")
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	entries := make([]Entry, len(times))
	for i := range entries {
		entries[i] = Entry{times[i], data[i]}
	}
	return entries, nil
}

func appendTimes(b []byte, entries []Entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(entries)))
	last := int64(0)
	for i := range entries {
		at := entries[i].At.UnixMicro()
		b = binary.AppendVarint(b, at-last)
		last = at
	}
	return b
}

func readTimes(r *frame.Reader) []time.Time {
	n := r.Count()
	if n > mostEntries {
		r.Fail("too many entries")
		n = 0
	}
	times := make([]time.Time, n)
	at := int64(0)
	for i := range times {
		at += r.Varint()
		times[i] = time.UnixMicro(at).UTC()
	}
	return times
}

func appendRows(b []byte, entries []Entry) []byte {
	for i := range entries {
		b = binary.AppendUvarint(b, uint64(len(entries[i].Data)))
	}
	for i := range entries {
		b = append(b, entries[i].Data...)
	}
	return b
}

func readRows(r *frame.Reader, n int) [][]byte {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = int(min(r.Uvarint(), mostBytes))
	}
	data := make([][]byte, n)
	for i := range data {
		data[i] = r.Bytes(sizes[i])
	}
	return data
}
