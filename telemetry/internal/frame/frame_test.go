package frame

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

const most = 1 << 16

func TestWhatIsWrappedComesBack(t *testing.T) {
	noise := make([]byte, 1000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	for _, body := range [][]byte{nil, {0}, noise, bytes.Repeat([]byte("farm"), 1000)} {
		for _, wrap := range []func(byte, []byte) []byte{Plain, Deflate} {
			b := wrap(7, body)
			kind, got, err := Open(b, most)
			if err != nil || kind != 7 || !bytes.Equal(got, body) {
				t.Fatalf("kind %d, %d of %d bytes, %v", kind, len(got), len(body), err)
			}
			if len(b) > len(body)+header {
				t.Errorf("%d bytes became %d", len(body), len(b))
			}
		}
	}
}

// A deflated frame has some bits that nobody reads.
func TestDamageIsSeenOrHarmless(t *testing.T) {
	for _, b := range [][]byte{Plain(7, []byte("a farm")), Deflate(7, bytes.Repeat([]byte("farm"), 100))} {
		_, body, _ := Open(b, most)
		for i := range b {
			c := bytes.Clone(b)
			c[i] ^= 0x10
			if kind, got, err := Open(c, most); !errors.Is(err, ErrDamaged) && (kind != 7 || !bytes.Equal(got, body)) {
				t.Errorf("byte %d of %d changed: %q, %v", i, len(b), got, err)
			}
			if _, got, err := Open(b[:i], most); !errors.Is(err, ErrDamaged) && !bytes.Equal(got, body) {
				t.Errorf("cut to %d of %d bytes: %v", i, len(b), err)
			}
		}
	}
}

func TestABombStaysSmall(t *testing.T) {
	bomb := Deflate(7, make([]byte, 1<<24))
	if _, body, err := Open(bomb, most); !errors.Is(err, ErrDamaged) || len(body) > 0 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(Plain(7, []byte("a farm")))
	f.Add(Deflate(7, bytes.Repeat([]byte("farm"), 100)))
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, body, err := Open(b, most)
		if err != nil {
			return
		}
		if again, got, err := Open(Deflate(kind, body), most); err != nil || again != kind || !bytes.Equal(got, body) {
			t.Errorf("%d %q, then %d %q, %v", kind, body, again, got, err)
		}
	})
}
