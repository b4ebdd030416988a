package main

import (
	"image"
	"image/color"
	"math"
	"math/cmplx"
	"math/rand/v2"
)

// A painter draws a picture of a size; what it leaves to chance comes from rng.
type painter = func(w, h int, rng *rand.Rand) *image.RGBA

// rgb is a colour of parts in [0, 1].
type rgb [3]float64

// shade colours each pixel by the mean over 2 × 2 points of it. The point's
// coordinates are in units of the width, (0, 0) in the middle.
func shade(w, h int, at func(x, y float64) rgb) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for py := range h {
		for px := range w {
			var sum rgb
			for k := range 4 {
				x := (float64(px) + 0.25 + 0.5*float64(k%2) - float64(w)/2) / float64(w)
				y := (float64(py) + 0.25 + 0.5*float64(k/2) - float64(h)/2) / float64(w)
				for i, v := range at(x, y) {
					sum[i] += v / 4
				}
			}
			img.SetRGBA(px, py, sum.rgba())
		}
	}
	return img
}

func (c rgb) rgba() color.RGBA {
	part := func(v float64) uint8 { return uint8(math.Round(255 * min(max(v, 0), 1))) }
	return color.RGBA{part(c[0]), part(c[1]), part(c[2]), 255}
}

func mix(a, b rgb, t float64) rgb {
	for i := range a {
		a[i] += (b[i] - a[i]) * t
	}
	return a
}

// glow is a cyclic scale of colours with period 1.
func glow(t, phase float64) rgb {
	var c rgb
	for i := range c {
		c[i] = 0.5 + 0.5*math.Cos(2*math.Pi*(t+phase+float64(i)*0.11))
	}
	return c
}

// escape counts the steps of z ← z² + c until z leaves the disk of radius 32,
// smoothly between whole steps; it is negative when z stays.
func escape(z, c complex128, steps int) float64 {
	for n := range steps {
		if r := real(z)*real(z) + imag(z)*imag(z); r > 1024 {
			return float64(n) + 1 - math.Log2(math.Log2(r)/2)
		}
		z = z*z + c
	}
	return -1
}

func julia(re, im float64) painter {
	return func(w, h int, _ *rand.Rand) *image.RGBA {
		return shade(w, h, func(x, y float64) rgb {
			n := escape(complex(3.1*x, 3.1*y), complex(re, im), 300)
			if n < 0 {
				return rgb{0.05, 0.04, 0.12}
			}
			return glow(math.Sqrt(n)/6, 0.55)
		})
	}
}

func mandelbrot(re, im, width float64) painter {
	return func(w, h int, _ *rand.Rand) *image.RGBA {
		return shade(w, h, func(x, y float64) rgb {
			n := escape(0, complex(re+width*x, im+width*y), 600)
			if n < 0 {
				return rgb{0.02, 0.02, 0.05}
			}
			return glow(math.Log(n+1)/2.2, 0.1)
		})
	}
}

// newton colours each point by the root of zᵏ = 1 that Newton's method finds
// from there, darker where it takes longer.
func newton(k int) painter {
	return func(w, h int, _ *rand.Rand) *image.RGBA {
		return shade(w, h, func(x, y float64) rgb {
			z, n := complex(3*x, 3*y), 0
			for ; n < 40; n++ {
				p := cmplx.Pow(z, complex(float64(k-1), 0))
				step := (p*z - 1) / (complex(float64(k), 0) * p)
				if z -= step; cmplx.Abs(step) < 1e-3 {
					break
				}
			}
			root := math.Round(cmplx.Phase(z) / (2 * math.Pi) * float64(k))
			return mix(glow(root/float64(k), 0.3), rgb{0.1, 0.1, 0.2}, min(1, float64(n/2)/10))
		})
	}
}
