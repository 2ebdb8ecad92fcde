package theme

import (
	"image/color"
	"math"
	"testing"

	"github.com/charmbracelet/colorprofile"
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

// The heat of a flame graph is a colour of its own at each level, also of 256, and only
// gets lighter or only darker, so that eyes that see no hue tell levels apart.
func TestFlameHeat(t *testing.T) {
	for _, name := range Names() {
		th, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		if th.Plain {
			continue
		}
		seen := map[color.Color]int{colorprofile.ANSI256.Convert(th.FlameIdle.Bg): -1}
		for i, s := range th.Flame {
			c := colorprofile.ANSI256.Convert(s.Bg)
			if other, ok := seen[c]; ok {
				t.Errorf("%s: flames %d and %d have the same of 256 colours", name, i, other)
			}
			seen[c] = i
			if i == 0 {
				continue
			}
			up := Luminance(s.Bg) > Luminance(th.Flame[i-1].Bg)
			if up != (name != "light") {
				t.Errorf("%s: flame %d is no step in lightness after %d", name, i, i-1)
			}
		}
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
