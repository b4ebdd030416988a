package blocklog

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"farmhand/telemetry/internal/farmday"
	"farmhand/telemetry/internal/frame"
)

var began = time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)

func entriesOf(texts ...string) (entries []Entry) {
	for i, s := range texts {
		entries = append(entries, Entry{began.Add(time.Duration(i) * time.Second), []byte(s)})
	}
	return entries
}

func same(a, b []Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].At.Equal(b[i].At) || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return true
}

// formOf says how entries are packed, after they were unpacked again.
func formOf(t interface{ Fatalf(string, ...any) }, entries []Entry) byte {
	b := pack(entries, nil)
	got, err := unpack(b, nil)
	if err != nil || !same(got, entries) {
		t.Fatalf("%q became %q, %v", entries, got, err)
	}
	return b[0]
}

func TestEntriesArePackedInTheFormThatSuitsThem(t *testing.T) {
	for _, c := range []struct {
		form  byte
		texts []string
	}{
		{inColumns, []string{}},
		{inRows, []string{""}},
		{inRows, []string{`{"a":1}`}},
		{inColumns, []string{"", ""}},
		{inColumns, []string{`{"a":1}`, `{"a":-1.5e9}`, `{"a":null}`, `{"a":"b"}`, `{"a":true}`, `{"a":false}`}},
		{inColumns, []string{`{"p50":"\"x\\"}`, `{"p50":"="}`, `{"p50":=}`, `{"p50":=}`}},
		{inColumns, []string{`"`, `"`, `"\`, `"\`, `"a":`, `"a":`, `-`, `n`, `n`}},
		{inRows, []string{"{\n}", "{\n}"}},
		{inRows, []string{"\x00", "\x00"}},
		{inRows, []string{"\"\n\"", "\"\n\""}},
		{inRows, []string{"one", "two", "three"}},
	} {
		if got := formOf(t, entriesOf(c.texts...)); got != c.form {
			t.Errorf("%q: form %d, want %d", c.texts, got, c.form)
		}
	}
}

// Keys are part of the shape, also those with numbers in them.
func TestShapes(t *testing.T) {
	shape, values, _ := take([]byte(`{"p50":1,"a b":["x",-2e+3,null,true,false,{"q":"\"}"}]}`))
	if got, want := string(bytes.ReplaceAll(shape, []byte{hole}, []byte("_"))), `{"p50":_,"a b":[_,_,_,_,_,{"q":_}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := string(bytes.Join(values, []byte(" "))), `1 "x" -2e+3 null true false "\"}"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAnyEntriesArePacked(t *testing.T) {
	piece := rapid.OneOf(rapid.StringMatching(`[ -~]{0,10}`), rapid.String(),
		rapid.SampledFrom([]string{`{"a":`, `"b"`, `"`, `\`, `null`, `12.5`, `-`, `=`, `}`, "\n", "\x00"}))
	rapid.Check(t, func(t *rapid.T) {
		var entries []Entry
		for range rapid.IntRange(0, 30).Draw(t, "entries") {
			e := Entry{At: time.UnixMicro(rapid.Int64Range(0, never).Draw(t, "at"))}
			for range rapid.IntRange(0, 4).Draw(t, "pieces") {
				e.Data = append(e.Data, piece.Draw(t, "piece")...)
			}
			entries = append(entries, e)
		}
		formOf(t, append(entries, entries...)) // some of them are alike
	})
}

// refuser is a codec that packs nothing.
type refuser struct{}

func (refuser) Pack([]Entry) ([]byte, error)   { return nil, errors.New("never") }
func (refuser) Unpack([]byte) ([]Entry, error) { return nil, ErrDamaged }

func TestWhatACodecCannotPackIsPackedNevertheless(t *testing.T) {
	entries := entriesOf("a", "b")
	got, err := unpack(pack(entries, refuser{}), refuser{})
	if err != nil || !same(got, entries) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := unpack(frame.Plain(inOwn, nil), nil); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// A few bytes that promise much are refused before the memory is taken.
func TestPromisesAreNotBelieved(t *testing.T) {
	for what, b := range map[string][]byte{
		"entries":    frame.Deflate(inRows, append([]byte{0x80, 0x80, 0x80, 0x01}, make([]byte, 3_000_000)...)),
		"repetition": bomb(1000, 1_000_000),
		"holes":      bomb(50_000, 10),
		"a zip bomb": frame.Deflate(inRows, make([]byte, mostBytes+1)),
		"no form":    frame.Plain(9, []byte{0}),
	} {
		if _, err := unpack(b, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// bomb are entries that repeat one value, in a shape of 100 holes.
func bomb(entries, value int) []byte {
	b := appendTimes(nil, make([]Entry, entries))
	b = append(append(b, 1, 100), bytes.Repeat([]byte{hole}, 100)...)
	b = append(b, make([]byte, entries)...)
	values := bytes.Repeat([]byte{again}, 100*entries)
	values = append(append(bytes.Repeat([]byte{'1'}, value), end), values...)
	return frame.Deflate(inColumns, append(appendUvarint(b, len(values)), values...))
}

func appendUvarint(b []byte, n int) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func FuzzUnpack(f *testing.F) {
	f.Add(byte(inRows), appendRows(appendTimes(nil, entriesOf("a", "b")), entriesOf("a", "b")))
	columns, _ := appendColumns(appendTimes(nil, entriesOf(`[1]`, `[2]`)), entriesOf(`[1]`, `[2]`))
	f.Add(byte(inColumns), columns)
	f.Fuzz(func(t *testing.T, form byte, body []byte) {
		entries, err := unpack(frame.Plain(form, body), nil)
		if err == nil {
			formOf(t, entries)
		}
	})
}

func receipts(n int) (entries []Entry) {
	f, r := farmday.New(farmday.Web, 1, began.Add(-12*time.Hour)), farmday.NewReceipts()
	for range n {
		o := f.Next()
		entries = append(entries, Entry{o.At, r.Next(o)})
	}
	return entries
}

func BenchmarkPackReceipts(b *testing.B) {
	entries := receipts(150)
	b.ReportAllocs()
	for b.Loop() {
		pack(entries, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(150*b.N), "µs/receipt")
}

func BenchmarkUnpackReceipts(b *testing.B) {
	block := pack(receipts(150), nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := unpack(block, nil); err != nil {
			b.Fatal(err)
		}
	}
}
