package theme

import (
	"image/color"
	"math"
)

// Readable is the contrast that text needs at least: level AA of WCAG 2.
const Readable = 4.5

// Contrast is the contrast of two colours, from 1 to 21, as WCAG 2 defines it.
func Contrast(a, b color.Color) float64 {
	x, y := Luminance(a), Luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Luminance is a colour's relative luminance, from 0 to 1, as WCAG 2 defines it.
func Luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	lin := func(v uint32) float64 {
		f := float64(v) / 0xffff
		if f <= 0.03928 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(r) + 0.7152*lin(g) + 0.0722*lin(b)
}
