package redistelemetry

import (
	"bytes"
	"fmt"

	"farmhand/telemetry"
	"farmhand/telemetry/blocklog"
)

// rowCodec packs rows by column.
type rowCodec struct{}

// Pack fails where an entry would not come out as it was: it is no row, has columns
// that this program does not know, or stands in the log at another time than its own.
func (rowCodec) Pack(entries []blocklog.Entry) ([]byte, error) {
	rows := make([]telemetry.Row, len(entries))
	for i, e := range entries {
		row, err := rowOf(e.Data)
		if err != nil {
			return nil, err
		}
		again, err := telemetry.Encode([]telemetry.Row{row})
		if err != nil || !bytes.Equal(again, e.Data) || !row.At.Equal(e.At) {
			return nil, fmt.Errorf("redistelemetry: the entry of %v holds more than a row of it", e.At)
		}
		rows[i] = row
	}
	return telemetry.Encode(rows)
}

// Unpack implements blocklog.Codec.
func (rowCodec) Unpack(b []byte) ([]blocklog.Entry, error) {
	rows, err := telemetry.Decode(b)
	if err != nil {
		return nil, err
	}
	entries := make([]blocklog.Entry, len(rows))
	for i := range rows {
		data, err := telemetry.Encode(rows[i : i+1])
		if err != nil {
			return nil, err
		}
		entries[i] = blocklog.Entry{At: rows[i].At, Data: data}
	}
	return entries, nil
}

// rowOf reads an entry, which is a block of one row.
func rowOf(data []byte) (telemetry.Row, error) {
	rows, err := telemetry.Decode(data)
	if err != nil {
		return telemetry.Row{}, err
	}
	if len(rows) != 1 {
		return telemetry.Row{}, fmt.Errorf("%d rows in the place of one: %w", len(rows), telemetry.ErrDamaged)
	}
	return rows[0], nil
}
