package learned

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// The format of safetensors: eight bytes with the length of a header, the header in
// JSON, and the numbers, little-endian, one tensor after another. Python reads such
// files with the package of that name.
const (
	maxHeader = 1 << 20
	maxFile   = 32 << 20
)

// tensor is a named array of float64.
type tensor struct {
	name   string
	shape  []int
	values []float64
}

type tensorHeader struct {
	Type    string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// writeTensors writes tensors with text beside them.
func writeTensors(w io.Writer, metadata map[string]string, tensors []tensor) error {
	header := map[string]any{"__metadata__": metadata}
	at := 0
	for _, t := range tensors {
		header[t.name] = tensorHeader{"F64", t.shape, [2]int{at, at + 8*len(t.values)}}
		at += 8 * len(t.values)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("learned: %w", err)
	}
	for len(text)%8 != 0 { // numbers begin at a multiple of eight
		text = append(text, ' ')
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	b = append(b, text...)
	for _, t := range tensors {
		for _, x := range t.values {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	_, err = w.Write(b)
	return err
}

// readTensors reads what writeTensors wrote. The error says what does not fit.
func readTensors(r io.Reader) (metadata map[string]string, tensors map[string]tensor, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(b) > maxFile {
		return nil, nil, fmt.Errorf("it has more than %d MiB: want a policy", maxFile>>20)
	}
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("it has %d bytes: want a safetensors file", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxHeader || n > uint64(len(b)-8) {
		return nil, nil, fmt.Errorf("its header has %d bytes, the file %d: want a whole safetensors file", n, len(b))
	}
	data := b[8+n:]
	header := map[string]json.RawMessage{}
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		return nil, nil, fmt.Errorf("its header is no JSON object: %w", err)
	}
	tensors = map[string]tensor{}
	left := len(data) // bytes that no tensor has: a small file may not name the same ones a thousand times
	for name, raw := range header {
		if name == "__metadata__" {
			if err := json.Unmarshal(raw, &metadata); err != nil {
				return nil, nil, fmt.Errorf("its metadata are no texts: %w", err)
			}
			continue
		}
		var h tensorHeader
		if err := json.Unmarshal(raw, &h); err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		if left -= max(0, h.Offsets[1]-h.Offsets[0]); left < 0 {
			return nil, nil, fmt.Errorf("its tensors overlap: want each of the %d bytes in one of them", len(data))
		}
		values, err := h.values(data)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q %w", name, err)
		}
		tensors[name] = tensor{name, h.Shape, values}
	}
	return metadata, tensors, nil
}

func (h *tensorHeader) values(data []byte) ([]float64, error) {
	size := 1
	for _, d := range h.Shape {
		if d < 0 || d > maxFile {
			return nil, fmt.Errorf("has the shape %v", h.Shape)
		}
		if size *= d; size > maxFile {
			return nil, fmt.Errorf("has the shape %v: too large", h.Shape)
		}
	}
	from, to := h.Offsets[0], h.Offsets[1]
	if h.Type != "F64" || from < 0 || to > len(data) || to-from != 8*size {
		return nil, fmt.Errorf("is of %s at %d to %d of %d bytes: want F64, and 8 bytes for each of %d numbers", h.Type, from, to, len(data), size)
	}
	values := make([]float64, 0, size)
	for b := range slices.Chunk(data[from:to], 8) {
		values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return values, nil
}
