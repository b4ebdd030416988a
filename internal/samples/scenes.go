package main

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
)

// noise returns smooth noise in [0, 1]: values on a lattice, blended, over five
// octaves.
func noise(rng *rand.Rand) func(x, y float64) float64 {
	const n = 64
	var lattice [n][n]float64
	for i := range lattice {
		for j := range lattice[i] {
			lattice[i][j] = rng.Float64()
		}
	}
	ease := func(t float64) float64 { return t * t * (3 - 2*t) }
	one := func(x, y float64) float64 {
		fx, fy := math.Floor(x), math.Floor(y)
		tx, ty := ease(x-fx), ease(y-fy)
		i, j := int(fx)&(n-1), int(fy)&(n-1)
		k, l := (i+1)&(n-1), (j+1)&(n-1)
		a := lattice[i][j] + (lattice[k][j]-lattice[i][j])*tx
		b := lattice[i][l] + (lattice[k][l]-lattice[i][l])*tx
		return a + (b-a)*ty
	}
	return func(x, y float64) float64 {
		sum, weight := 0.0, 0.5
		for range 5 {
			sum += weight * one(x, y)
			x, y, weight = 2*x+17, 2*y+31, weight/2
		}
		return sum / 0.96875
	}
}

func clouds(w, h int, rng *rand.Rand) *image.RGBA {
	f := noise(rng)
	return shade(w, h, func(x, y float64) rgb {
		sky := mix(rgb{0.2, 0.45, 0.8}, rgb{0.75, 0.85, 0.95}, y+0.4)
		return mix(sky, rgb{1, 1, 1}, min(1, max(0, 3*f(5*x+9, 8*y+9)-1.3)))
	})
}

func marble(w, h int, rng *rand.Rand) *image.RGBA {
	f := noise(rng)
	return shade(w, h, func(x, y float64) rgb {
		vein := math.Abs(math.Sin(9*x + 5*y + 9*f(4*x+9, 4*y+9)))
		return mix(rgb{0.2, 0.3, 0.32}, rgb{0.95, 0.93, 0.9}, math.Sqrt(vein))
	})
}

// hills are ridges in the evening, paler with distance.
func hills(w, h int, rng *rand.Rand) *image.RGBA {
	const ridges = 6
	f := noise(rng)
	return shade(w, h, func(x, y float64) rgb {
		c := mix(rgb{0.98, 0.55, 0.3}, rgb{0.35, 0.3, 0.55}, 0.5-2*y)
		if math.Hypot(x-0.15, y+0.08) < 0.06 {
			c = rgb{1, 0.95, 0.75}
		}
		for i := range ridges {
			d := float64(i) / ridges
			if y > -0.12+0.34*d-0.22*(f(3*x+20*d+9, 7*d)-0.5)*(0.6+d) {
				c = mix(rgb{0.75, 0.45, 0.45}, rgb{0.08, 0.1, 0.16}, d+0.1)
			}
		}
		return c
	})
}

func plasma(n int) painter {
	return func(w, h int, rng *rand.Rand) *image.RGBA {
		kx, ky, phase := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range n {
			kx[i], ky[i], phase[i] = 20*(rng.Float64()-0.5), 20*(rng.Float64()-0.5), 6*rng.Float64()
		}
		return shade(w, h, func(x, y float64) rgb {
			sum := 0.0
			for i := range n {
				sum += math.Sin(kx[i]*x + ky[i]*y + phase[i])
			}
			return glow(sum/float64(n)*2, 0.7)
		})
	}
}

// waves are rings around n sources that meet.
func waves(n int) painter {
	return func(w, h int, rng *rand.Rand) *image.RGBA {
		sx, sy := make([]float64, n), make([]float64, n)
		for i := range n {
			sx[i], sy[i] = rng.Float64()-0.5, 0.7*(rng.Float64()-0.5)
		}
		return shade(w, h, func(x, y float64) rgb {
			sum := 0.0
			for i := range n {
				d := math.Hypot(x-sx[i], y-sy[i])
				sum += math.Sin(90*d) / (1 + 2*d)
			}
			return mix(rgb{0.03, 0.15, 0.3}, rgb{0.7, 0.95, 0.95}, 0.5+0.5*sum/float64(n))
		})
	}
}

// voronoi colours each point by its nearest of n sites, with dark borders.
func voronoi(n int) painter {
	return func(w, h int, rng *rand.Rand) *image.RGBA {
		type site struct{ x, y, hue float64 }
		sites := make([]site, n)
		for i := range sites {
			sites[i] = site{1.1 * (rng.Float64() - 0.5), 1.1 * (rng.Float64() - 0.5), rng.Float64()}
		}
		return shade(w, h, func(x, y float64) rgb {
			first, second, hue := math.Inf(1), math.Inf(1), 0.0
			for _, s := range sites {
				switch d := math.Hypot(x-s.x, y-s.y); {
				case d < first:
					first, second, hue = d, first, s.hue
				case d < second:
					second = d
				}
			}
			if second-first < 0.12/math.Sqrt(float64(n))/4 {
				return rgb{0.1, 0.1, 0.12}
			}
			return mix(glow(hue/2, 0.5), rgb{1, 1, 1}, 0.35)
		})
	}
}

// truchet is a floor of tiles, each with two quarter circles, turned by chance;
// n tiles lie in a row.
func truchet(n int) painter {
	return func(w, h int, rng *rand.Rand) *image.RGBA {
		turn := make([]bool, 4*n*n)
		for i := range turn {
			turn[i] = rng.IntN(2) == 0
		}
		return shade(w, h, func(x, y float64) rgb {
			x, y = (x+0.5)*float64(n), (y+1)*float64(n)
			i, j := int(x), int(y)
			x, y = x-float64(i), y-float64(j)
			if turn[(j*n+i)%len(turn)] {
				x = 1 - x
			}
			d := min(math.Abs(math.Hypot(x, y)-0.5), math.Abs(math.Hypot(1-x, 1-y)-0.5))
			return mix(rgb{0.95, 0.75, 0.2}, rgb{0.1, 0.25, 0.35}, min(1, max(0, (d-0.13)*30)))
		})
	}
}

// plot is a chart of four random walks over a grid.
func plot(w, h int, rng *rand.Rand) *image.RGBA {
	const n = 400
	var walks [4][n + 1]float64
	for i := range walks {
		for k := range n {
			walks[i][k+1] = walks[i][k] + 0.007*rng.NormFloat64()
		}
	}
	line := func(d, width float64) float64 { return min(1, max(0, 1-(d-width)*float64(w))) }
	return shade(w, h, func(x, y float64) rgb {
		c := rgb{0.99, 0.99, 0.98}
		grid := min(math.Abs(x*10-math.Round(x*10)), math.Abs(y*10-math.Round(y*10))) / 10
		c = mix(c, rgb{0.8, 0.82, 0.85}, line(grid, 0.0008))
		for i := range walks {
			at := (x + 0.5) * n
			k := min(int(at), n-1)
			slope := (walks[i][k+1] - walks[i][k]) * n
			d := math.Abs(y-walks[i][k]-(at-float64(k))*slope/n) / math.Sqrt(1+slope*slope)
			c = mix(c, mix(glow(float64(i)/4, 0.2), rgb{}, 0.2), line(d, 0.0025))
		}
		return c
	})
}

// sunflower lays discs by the golden angle on a transparent ground (Vogel, A
// better way to construct the sunflower head, 1979).
func sunflower(w, h int, _ *rand.Rand) *image.RGBA {
	const n = 700
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	golden := math.Pi * (3 - math.Sqrt(5))
	for k := range n {
		r := math.Sqrt(float64(k)/n) * 0.47 * float64(w)
		sin, cos := math.Sincos(float64(k) * golden)
		cx, cy := float64(w)/2+r*cos, float64(h)/2+r*sin
		radius := float64(w) * (0.004 + 0.009*float64(k)/n)
		c := mix(rgb{0.45, 0.2, 0.05}, rgb{1, 0.75, 0.1}, float64(k)/n)
		for y := int(cy - radius - 1); y <= int(cy+radius+1); y++ {
			for x := int(cx - radius - 1); x <= int(cx+radius+1); x++ {
				cover := min(1, radius+0.5-math.Hypot(float64(x)-cx, float64(y)-cy))
				if cover <= 0 || !image.Pt(x, y).In(img.Rect) || img.RGBAAt(x, y).A > uint8(255*cover) {
					continue
				}
				full := c.rgba()
				img.Set(x, y, color.NRGBA{full.R, full.G, full.B, uint8(255 * cover)})
			}
		}
	}
	return img
}
