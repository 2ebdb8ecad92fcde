package theme

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"ccagent/ui/internal/golden"
)

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

// pair is two colours that stand on each other, with the contrast that they need.
type pair struct {
	what, on string
	fg, bg   color.Color
	least    float64
}

// pairs are all colours of a theme with what they are drawn on: text with its own background or on the
// terminal's, then what is no text.
func (t *Theme) pairs() (out []pair) {
	text := Readable
	if t.Name == "high-contrast" {
		text = 7
	}
	roles := t.roles()
	add := func(what string, s Style, least float64) {
		if s.Bg != nil {
			out = append(out, pair{what, "its own", s.Fg, s.Bg, least})
			return
		}
		for _, bg := range terminals[t.Name] {
			out = append(out, pair{what, hex(bg), s.Fg, bg, least})
		}
	}
	for _, what := range slices.Sorted(maps.Keys(roles)) {
		add(what, roles[what], text)
	}
	add("a bar", t.Only, 3)
	add("a bar's rest", t.Shared, 3)
	out = append(out, pair{"a bar's part on the rest", "the rest", t.Only.Fg, t.Shared.Fg, 1.3})
	add("a border", t.Border, 1.5)
	add("the focused border", t.BorderFocus, 3)
	return out
}

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// Text is readable on every background that it is drawn on, in all colours and in the 256 of older
// terminals: level AA of WCAG 2, and AAA of what has high contrast. Bars and borders are no text:
// 3 is what WCAG asks of them, and borders only decorate. The table of all pairs is in the documentation.
func TestContrast(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`# Contrast of the viewer's colours

The contrast of each colour with each background that it is drawn on, as WCAG 2 defines it (1 to 21), in true
colour and in the 256 colours of older terminals. Where a colour has no background of its own it stands on the
terminal's: black and a common scheme's, or white and a common scheme's. Text has at least 4.5, of
high-contrast 7; bars and the focused border at least 3, the two parts of a bar 1.3 with each other, and borders,
which only decorate, 1.5. A test fails where a pair has less, or differs from this table:

    go test -run Contrast ./ui/theme            computes
    go test -run Contrast ./ui/theme -update    writes the table anew
`)
	for _, name := range Names() {
		th, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		if th.Plain {
			continue
		}
		ps := th.pairs()
		var rows strings.Builder
		worst := map[float64]float64{} // by what is asked for
		for _, p := range ps {
			var c [2]float64
			for i, profile := range []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI256} {
				c[i] = Contrast(profile.Convert(p.fg), profile.Convert(p.bg))
				if c[i] < p.least {
					t.Errorf("%s: %s on %s has contrast %.2f in %v, below %v", name, p.what, p.on, c[i], profile, p.least)
				}
				if w, ok := worst[p.least]; !ok || c[i] < w {
					worst[p.least] = c[i]
				}
			}
			fmt.Fprintf(&rows, "| %s | %s | %s | %.1f | %.1f | %v |\n", p.what, hex(p.fg), strings.Replace(p.on, "its own", hex(p.bg), 1), c[0], c[1], p.least)
		}
		fmt.Fprintf(&doc, "\n## %s\n\nThe least: ", name)
		for i, least := range slices.Backward(slices.Sorted(maps.Keys(worst))) {
			fmt.Fprintf(&doc, "%.2f where %v is asked for", worst[least], least)
			if i > 0 {
				doc.WriteString(", ")
			}
		}
		doc.WriteString(".\n\n| What | Colour | On | True colour | 256 colours | At least |\n|---|---|---|---|---|---|\n" + rows.String())
	}
	golden.Check(t, "../../../docs/viewer/contrast.md", doc.String())
}
