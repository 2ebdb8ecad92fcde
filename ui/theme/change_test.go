package theme

import (
	"image/color"
	"math"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// dichromacies turn linear RGB into what eyes without one kind of cone see: Machado, Oliveira and
// Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009),
// severity 1.
var dichromacies = map[string][3][3]float64{
	"none":         {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// seen is a colour as CIE L*a*b* (D65), as eyes of a kind see it.
func seen(c color.Color, eyes [3][3]float64) [3]float64 {
	r, g, b, _ := c.RGBA()
	lin := func(v uint32) float64 {
		f := float64(v) / 0xffff
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	rgb := [3]float64{lin(r), lin(g), lin(b)}
	var v [3]float64
	for i := range v {
		for j := range rgb {
			v[i] += eyes[i][j] * rgb[j]
		}
		v[i] = max(0, min(v[i], 1))
	}
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	x := f((0.4124564*v[0] + 0.3575761*v[1] + 0.1804375*v[2]) / 0.95047)
	y := f(0.2126729*v[0] + 0.7151522*v[1] + 0.0721750*v[2])
	z := f((0.0193339*v[0] + 0.1191920*v[1] + 0.9503041*v[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func distance(a, b color.Color, eyes [3][3]float64) float64 {
	x, y := seen(a, eyes), seen(b, eyes)
	return math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2]))
}

// More and less are told apart at each level, and from what does not differ, by eyes with all cones
// in every theme, and with any one kind missing in the colour-blind one: a ΔE of 2.3 is just
// noticeable. Steps of one direction only get lighter or only darker.
func TestChangeColours(t *testing.T) {
	const least = 12
	for _, name := range Names() {
		th, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		if th.Plain {
			continue
		}
		for eyes, m := range dichromacies {
			if eyes != "none" && name != "colour-blind" {
				continue
			}
			worst := math.Inf(1)
			check := func(what string, i int, a, b Style) {
				d := distance(colorprofile.ANSI256.Convert(a.Bg), colorprofile.ANSI256.Convert(b.Bg), m)
				worst = min(worst, d)
				if d < least {
					t.Errorf("%s, %s: %s, level %d: ΔE %.1f", name, eyes, what, i, d)
				}
			}
			for i := range ChangeLevels {
				check("more and less", i, th.More[i], th.Less[i])
				check("more and the same", i, th.More[i], th.FlameIdle)
				check("less and the same", i, th.Less[i], th.FlameIdle)
				if i > 0 {
					check("more and the step before", i, th.More[i], th.More[i-1])
					check("less and the step before", i, th.Less[i], th.Less[i-1])
				}
			}
			t.Logf("%s, %s: the least ΔE is %.1f", name, eyes, worst)
		}
		for i := 1; i < ChangeLevels; i++ {
			for _, s := range [][ChangeLevels]Style{th.More, th.Less} {
				if up := Luminance(s[i].Bg) > Luminance(s[i-1].Bg); up != (name != "light") {
					t.Errorf("%s: change %d is no step in lightness", name, i)
				}
			}
		}
	}
}

func TestChangeLevel(t *testing.T) {
	for change, want := range map[float64]int{0: 0, 0.005: 1, -0.005: 1, 0.01: 2, -0.05: 3, 0.5: 4, 1: 4} {
		if got := ChangeLevel(change); got != want {
			t.Errorf("ChangeLevel(%v) = %d, want %d", change, got, want)
		}
	}
	if ChangeLevel(math.NaN()) != 0 {
		t.Error("NaN has a level")
	}
}
