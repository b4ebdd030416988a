package main

import (
	"bytes"
	"encoding/binary"
	"image"
)

// Orientation is how the stored rows and columns lie in the picture: the values
// 1–8 of Exif 2.3, §4.6.4, tag 0x0112.
type Orientation int

// Upright is the orientation of a picture that needs no turn.
const Upright Orientation = 1

// Swaps reports whether turning the picture swaps its width and height.
func (o Orientation) Swaps() bool { return o >= 5 }

// apply returns the upright picture.
func (o Orientation) apply(src *image.RGBA) *image.RGBA {
	if o == Upright {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	if o.Swaps() {
		dst = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			var tx, ty int
			switch o {
			case 2: // mirrored
				tx, ty = w-1-x, y
			case 3: // upside down
				tx, ty = w-1-x, h-1-y
			case 4:
				tx, ty = x, h-1-y
			case 5: // transposed
				tx, ty = y, x
			case 6: // to be turned right
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8: // to be turned left
				tx, ty = y, w-1-x
			}
			copy(dst.Pix[dst.PixOffset(tx, ty):][:4], src.Pix[src.PixOffset(x, y):][:4])
		}
	}
	return dst
}

// ReadOrientation returns the orientation noted in a JPEG file, or Upright. It
// walks the segments before the picture's data, each once, and the first
// directory of the first Exif segment.
func ReadOrientation(file []byte) Orientation {
	if len(file) < 2 || file[0] != 0xff || file[1] != 0xd8 {
		return Upright
	}
	for rest := file[2:]; len(rest) >= 4 && rest[0] == 0xff; {
		marker := rest[1]
		if marker == 0xff { // fill byte
			rest = rest[1:]
			continue
		}
		if marker == 0xda || marker == 0xd9 { // the data begins, or the file ends
			return Upright
		}
		n := int(binary.BigEndian.Uint16(rest[2:])) // counts itself
		if n < 2 || len(rest) < 2+n {
			return Upright
		}
		if exif, ok := bytes.CutPrefix(rest[4:2+n], []byte("Exif\x00\x00")); ok && marker == 0xe1 {
			return tiffOrientation(exif)
		}
		rest = rest[2+n:]
	}
	return Upright
}

// tiffOrientation reads tag 0x0112 of the first directory of a TIFF header.
func tiffOrientation(t []byte) Orientation {
	if len(t) < 8 {
		return Upright
	}
	var order binary.ByteOrder
	switch string(t[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return Upright
	}
	at := int64(order.Uint32(t[4:]))
	if at+2 > int64(len(t)) {
		return Upright
	}
	entries := t[at+2:]
	for range order.Uint16(t[at:]) {
		if len(entries) < 12 {
			return Upright
		}
		const short = 3
		if order.Uint16(entries) == 0x0112 && order.Uint16(entries[2:]) == short {
			if o := Orientation(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				return o
			}
			return Upright
		}
		entries = entries[12:]
	}
	return Upright
}
