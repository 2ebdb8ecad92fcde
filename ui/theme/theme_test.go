package theme

import (
	"fmt"
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

// terminals are the backgrounds that a theme is drawn on: pure ones, and those of popular schemes.
var terminals = map[string][]color.Color{
	"dark":          {rgb(0x000000), rgb(0x1e1e1e)},
	"light":         {rgb(0xffffff), rgb(0xfafafa)},
	"high-contrast": {rgb(0x000000)},
	"colour-blind":  {rgb(0x000000), rgb(0x1e1e1e)},
}

// roles are a theme's styles of text by their names.
func (t *Theme) roles() map[string]Style {
	out := map[string]Style{
		"text": t.Text, "dim": t.Dim, "strong": t.Strong, "title": t.Title, "link": t.Link, "selected": t.Selected, "selected idle": t.SelectedIdle,
		"overlap": t.Overlap, "match": t.Match, "range": t.Range, "warn": t.Warn, "error": t.Error, "key": t.Key, "run": t.Run, "gc": t.GC, "idle": t.Idle,
		"keyword": t.SyntaxKeyword, "type": t.SyntaxType, "string": t.SyntaxString, "number": t.SyntaxNumber, "comment": t.SyntaxComment,
		"operator": t.SyntaxOperator, "directive": t.SyntaxDirective, "flame idle": t.FlameIdle,
	}
	for i := range HeatLevels {
		out[fmt.Sprint("heat ", i)], out[fmt.Sprint("flame ", i)] = t.Heat[i], t.Flame[i]
	}
	for i := range ChangeLevels {
		out[fmt.Sprint("more ", i)], out[fmt.Sprint("less ", i)] = t.More[i], t.Less[i]
	}
	for i := range Causes {
		out[fmt.Sprint("cause ", i)] = t.Cause[i]
	}
	return out
}

// Text is readable on every background that it is drawn on, in all colours and in the 256 of older
// terminals: level AA of WCAG 2, and AAA of what has high contrast. Bars and borders are no text:
// 3 is what WCAG asks of them, and borders only decorate.
func TestContrast(t *testing.T) {
	for _, name := range Names() {
		th, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		if th.Plain {
			continue
		}
		least, worst, of := Readable, 22.0, ""
		if name == "high-contrast" {
			least = 7
		}
		on := func(s Style, bg color.Color, least float64, role string) {
			if s.Bg != nil {
				bg = s.Bg
			}
			for _, profile := range []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI256} {
				c := Contrast(profile.Convert(s.Fg), profile.Convert(bg))
				if c < least {
					t.Errorf("%s: %s has contrast %.2f in %v, below %v", name, role, c, profile, least)
				}
				if c < worst && least >= Readable {
					worst, of = c, role
				}
			}
		}
		for _, bg := range terminals[name] {
			for role, s := range th.roles() {
				on(s, bg, least, role)
			}
			on(th.Only, bg, 3, "a bar")
			on(th.Shared, bg, 3, "a bar's rest")
			on(th.Border, bg, 1.5, "a border")
			on(th.BorderFocus, bg, 3, "the focus")
		}
		on(Style{Fg: th.Only.Fg}, th.Shared.Fg, 1.3, "a bar's part on the rest")
		t.Logf("%s: the least contrast of text is %.2f, of %s", name, worst, of)
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
