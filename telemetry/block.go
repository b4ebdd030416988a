package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"

	"farmhand/telemetry/internal/frame"
)

// Version of the meaning of a row. Columns may be added without a new one.
const Version = 1

// MostRows is how many rows a block has at most.
const MostRows = 10_000

// mostBytes is how long a block is at most, when it is inflated.
const mostBytes = 64 << 20

var (
	// ErrDamaged says that bytes are no block, or not what was kept.
	ErrDamaged = frame.ErrDamaged
	// ErrVersion says that a block is of a version that this program does not know.
	ErrVersion = errors.New("another version")
)

// Encode makes a block of rows, of MostRows at most.
//
// A block is a frame of kind Version. Its body: the number of rows and the number
// of columns, then of each column its length in bytes and its values. A value is
// 0 where it is unknown, else how it differs from the last known one, zigzag,
// plus 1; of the first column, when, it is how that difference differs from the
// one before. All numbers are unsigned varints.
func Encode(rows []Row) ([]byte, error) {
	if len(rows) > MostRows {
		return nil, fmt.Errorf("telemetry: %d rows: a block has %d at most", len(rows), MostRows)
	}
	body := encode(rows)
	if len(rows) == 1 { // too short to shrink
		return frame.Plain(Version, body), nil
	}
	return frame.Deflate(Version, body), nil
}

func encode(rows []Row) []byte {
	body := binary.AppendUvarint(nil, uint64(len(rows)))
	body = binary.AppendUvarint(body, uint64(len(columns)))
	values := make([]byte, 0, 4*len(rows))
	for i, c := range columns {
		values = values[:0]
		var last, pace int64
		for j := range rows {
			x, known := c.get(&rows[j])
			if !known {
				values = append(values, 0)
				continue
			}
			d := x - last
			last = x
			if i == 0 {
				d, pace = d-pace, d
			}
			values = binary.AppendUvarint(values, uint64(d<<1^d>>63)+1)
		}
		body = binary.AppendUvarint(body, uint64(len(values)))
		body = append(body, values...)
	}
	return body
}

// Decode returns the rows of a block. The error wraps ErrDamaged or ErrVersion.
// What a block takes in memory is bounded by its bytes and by MostRows.
func Decode(b []byte) ([]Row, error) {
	kind, body, err := frame.Open(b, mostBytes)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if kind != Version {
		return nil, fmt.Errorf("telemetry: version %d, this program reads %d: %w", kind, Version, ErrVersion)
	}
	r := frame.NewReader(body)
	n, cols := r.Count(), r.Count()
	if n > MostRows || cols == 0 && n > 0 {
		r.Fail("impossible size")
	}
	if r.Err() != nil {
		return nil, fmt.Errorf("telemetry: %w", r.Err())
	}
	rows := make([]Row, n)
	for i := range max(cols, len(columns)) {
		var values *frame.Reader
		if i < cols {
			values = frame.NewReader(r.Bytes(r.Count()))
		}
		if i < len(columns) {
			if err := decodeColumn(i, values, rows); err != nil {
				return nil, err
			}
		}
	}
	if r.Err() != nil || r.Left() > 0 {
		return nil, fmt.Errorf("telemetry: %d bytes too many: %w", r.Left(), ErrDamaged)
	}
	return rows, nil
}

// decodeColumn fills in one number of each row; values is nil where the block
// has no such column.
func decodeColumn(i int, values *frame.Reader, rows []Row) error {
	c, most := columns[i], int64(largest)
	if i == 0 {
		most = latest
	}
	var last, pace int64
	for j := range rows {
		if values == nil {
			c.set(&rows[j], 0, false)
			continue
		}
		u := values.Uvarint()
		if u == 0 {
			c.set(&rows[j], 0, false)
			continue
		}
		u--
		d := int64(u>>1) ^ -int64(u&1)
		if i == 0 {
			d += pace
			pace = d
		}
		last += d
		if last > most || last < -most {
			values.Fail("a number is too large")
		}
		c.set(&rows[j], last, true)
	}
	if values != nil && (values.Err() != nil || values.Left() > 0) {
		return fmt.Errorf("telemetry: column %d of %d rows: %w", i, len(rows), ErrDamaged)
	}
	return nil
}
