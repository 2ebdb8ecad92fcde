package theme

import (
	"image/color"
	"math"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
)

func TestHeatLevelDoubles(t *testing.T) {
	for _, c := range []struct {
		share float64
		want  int
	}{
		{0, 0}, {-1, 0}, {math.NaN(), 0}, {1e-9, 1}, {0.5, 8}, {1, 8}, {7, 8}, {0.49, 7}, {0.25, 7}, {0.24, 6}, {0.0156, 2}, {0.0079, 2}, {0.0077, 1},
	} {
		if got := HeatLevel(c.share); got != c.want {
			t.Errorf("HeatLevel(%v) = %d, want %d", c.share, got, c.want)
		}
	}
}

func TestUnknownTheme(t *testing.T) {
	if _, err := New("solarised"); err == nil {
		t.Error("an unknown theme was accepted")
	}
}

// Text must be readable on every background it is drawn on: a contrast of 4.5
// is what WCAG 2 asks of text at level AA.
func TestContrast(t *testing.T) {
	terminal := map[string]color.Color{
		"dark": rgb(0x000000), "light": rgb(0xffffff), "high-contrast": rgb(0x000000), "colour-blind": rgb(0x000000),
	}
	for _, name := range Names() {
		th, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		if th.Plain {
			continue
		}
		bg, ok := terminal[name]
		if !ok {
			t.Fatalf("theme %s: no background to test against", name)
		}
		check := func(role string, s Style) {
			b := s.Bg
			if b == nil {
				b = bg
			}
			if c := contrast(s.Fg, b); c < 4.5 {
				t.Errorf("%s: %s has contrast %.1f", name, role, c)
			}
		}
		check("text", th.Text)
		check("strong", th.Strong)
		check("selected", th.Selected)
		check("selected idle", th.SelectedIdle)
		check("overlap", th.Overlap)
		check("match", th.Match)
		check("range", th.Range)
		check("warn", th.Warn)
		check("error", th.Error)
		for i := range th.Cause {
			check("cause", th.Cause[i])
		}
		for i := range th.Flame {
			check("flame", th.Flame[i])
		}
		check("flame idle", th.FlameIdle)
	}
}

// NO_COLOR leaves only bold.
func TestPlainIsOnlyBold(t *testing.T) {
	th := plain()
	for _, s := range append([]Style{th.Text, th.Dim, th.Selected, th.SelectedIdle, th.Overlap, th.Range, th.Match, th.SyntaxComment}, append(th.Heat[:], th.Cause[:]...)...) {
		if s.Fg != nil || s.Bg != nil || s.Underline != 0 || s.Attrs&^uv.AttrBold != 0 {
			t.Errorf("plain theme has %+v", s)
		}
	}
}

func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	if x < y {
		x, y = y, x
	}
	return (x + 0.05) / (y + 0.05)
}

func luminance(c color.Color) float64 {
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
