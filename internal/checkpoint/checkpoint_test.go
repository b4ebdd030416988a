package checkpoint

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

type state struct {
	n    int
	x    float64
	list []float64
	a    []int32
	b    []float32
	raw  []byte
	pcg  rand.PCG
}

func (s *state) visit(c *Codec) {
	c.Int("n", &s.n, 1000)
	c.Float("x", &s.x)
	s.list = slices.Grow(s.list[:0], 10)[:c.Len("list length", len(s.list), 10)]
	c.Floats("list", s.list)
	Numbers(c, "a", s.a)
	Numbers(c, "b", s.b)
	c.Bytes("raw", &s.raw, 5)
	c.PCG("pcg", &s.pcg)
}

func example() *state {
	s := &state{n: 7, x: math.Inf(-1), list: []float64{1, -0.5, math.MaxFloat64}, a: []int32{-3, 4}, b: []float32{0.1}, raw: []byte("xyz")}
	s.pcg.Seed(5, 6)
	s.pcg.Uint64()
	return s
}

func saved(t *testing.T) []byte {
	var buf bytes.Buffer
	if err := Save(&buf, []byte(`{"k":1}`), example().visit); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	s := &state{a: make([]int32, 2), b: make([]float32, 1)}
	if err := Load(bytes.NewReader(saved(t)), []byte(`{"k":1}`), s.visit); err != nil {
		t.Fatal(err)
	}
	want := example()
	if s.n != want.n || s.x != want.x || !slices.Equal(s.list, want.list) || !slices.Equal(s.a, want.a) ||
		!slices.Equal(s.b, want.b) || !slices.Equal(s.raw, want.raw) || s.pcg.Uint64() != want.pcg.Uint64() {
		t.Errorf("read %+v: want %+v", s, want)
	}
}

func TestBadCheckpointsAreRefused(t *testing.T) {
	good := saved(t)
	fields := func(f func(*Codec)) []byte {
		var buf bytes.Buffer
		if err := Save(&buf, []byte(`{"k":1}`), f); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	huge := 1 << 62
	flipped := slices.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct {
		data   []byte
		header string
		want   string
	}{
		"empty":         {nil, `{"k":1}`, "not a checkpoint"},
		"foreign":       {[]byte("PK\x03\x04 something else entirely"), `{"k":1}`, "not a checkpoint"},
		"cut off":       {good[:len(good)-9], `{"k":1}`, "damaged or cut off"},
		"cut to magic":  {good[:len(magic)], `{"k":1}`, "damaged or cut off"},
		"a flipped bit": {flipped, `{"k":1}`, "damaged or cut off"},
		"of another":    {good, `{"k":2}`, "k is 1: want 2"},
		"huge number":   {fields(func(c *Codec) { c.Int("n", &huge, 0) }), `{"k":1}`, "n is 4611686018427387904: want at most 1000"},
		"other field":   {fields(func(c *Codec) { c.Int("m", &huge, 0) }), `{"k":1}`, "n is missing"},
		"other size":    {fields(func(c *Codec) { c.Floats("n", make([]float64, 2)) }), `{"k":1}`, "n has 16 bytes: want 8"},
		"too few":       {fields(func(c *Codec) {}), `{"k":1}`, "n is missing"},
		"too many": {fields(func(c *Codec) {
			example().visit(c)
			c.Int("more", &huge, 0)
		}), `{"k":1}`, "bytes too many"},
	} {
		s := &state{a: make([]int32, 2), b: make([]float32, 1)}
		err := Load(bytes.NewReader(c.data), []byte(c.header), s.visit)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v: want one with %q", name, err, c.want)
		}
	}
}
