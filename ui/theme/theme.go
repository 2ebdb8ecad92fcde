package theme

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
)

// Style is a cell's look.
type Style = uv.Style

// HeatLevels is the number of heat steps; each stands for twice the one below.
const HeatLevels = 8

// ChangeLevels is the number of steps of a change, each of four times the one below.
const ChangeLevels = 4

// Causes is the number of overlapping causes that get a letter and a colour.
const Causes = 4

// Theme holds the style of every role.
type Theme struct {
	Name string
	// Plain is set when there is no colour: glyphs must then show what colours would.
	Plain bool

	Text, Dim, Strong   Style
	Border, BorderFocus Style
	Title, Link         Style
	Selected            Style // the row under the cursor in the pane that has the keys
	SelectedIdle        Style // the same in the others
	Overlap             Style // shares samples with the selection
	Match               Style // search match
	Only, Shared        Style // the two parts of a share's bar
	Warn, Error         Style
	Key                 Style // a key in footer and help

	Heat                 [HeatLevels]Style
	Cause                [Causes]Style
	Flame                [HeatLevels]Style // a block of a flame graph by its own cost; FlameIdle without
	FlameIdle, FlameEdge Style
	// More and Less are a block of a differential flame graph by the change of its share; FlameIdle
	// where it does not differ.
	More, Less [ChangeLevels]Style

	Range           Style // inside the selected time range
	Run, GC, Idle   Style // capability activity
	SyntaxKeyword   Style
	SyntaxType      Style
	SyntaxString    Style
	SyntaxNumber    Style
	SyntaxComment   Style
	SyntaxOperator  Style
	SyntaxDirective Style
}

// Names lists the themes that New knows, default first.
func Names() []string {
	names := make([]string, 0, len(palettes)+1)
	for _, p := range palettes {
		names = append(names, p.name)
	}
	return append(names, "plain")
}

// UnknownError is returned for a name that no theme has.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown theme %q: choose %s", e.Name, strings.Join(Names(), ", "))
}

// New gives the theme of that name; "" is the default. "plain" has no colour.
func New(name string) (*Theme, error) {
	if name == "" {
		name = palettes[0].name
	}
	if name == "plain" {
		return plain(), nil
	}
	i := slices.IndexFunc(palettes, func(p palette) bool { return p.name == name })
	if i < 0 {
		return nil, &UnknownError{name}
	}
	return palettes[i].theme(), nil
}

// HeatLevel puts a share (0..1) on the logarithmic heat scale: 0 for none, then
// 1 (below 1/64) to HeatLevels (above a half), doubling at every step.
func HeatLevel(share float64) int {
	if !(share > 0) {
		return 0
	}
	l := HeatLevels + 1 + int(math.Floor(math.Log2(min(share, 0.999))))
	return max(1, min(l, HeatLevels))
}

// ChangeLevel puts a change of share on its scale: 1 below 1 point, 2 below 4, 3 below 16, 4 from
// there on; 0 for none.
func ChangeLevel(change float64) int {
	change = math.Abs(change)
	switch {
	case !(change > 0):
		return 0
	case change < 0.01:
		return 1
	case change < 0.04:
		return 2
	case change < 0.16:
		return 3
	}
	return ChangeLevels
}

// palette names a theme's hues.
type palette struct {
	name                    string
	text, dim, strong, line color.Color
	accent, warn, err       color.Color
	selectBg, idleBg        color.Color
	overlapBg, rangeBg      color.Color
	matchFg, matchBg        color.Color
	only, shared            color.Color
	coolest, hottest, mid   color.Color
	// flame is the heat of a flame graph's blocks, each a colour of the 256 that terminals share;
	// cold is that of blocks without a cost of their own.
	flame                  [HeatLevels]color.Color
	cold                   color.Color
	more, less             [ChangeLevels]color.Color // of the same 256
	cause                  [Causes]color.Color
	run, gc                color.Color
	keyword, typ, str, num color.Color
}

func (p palette) theme() *Theme {
	fg := func(c color.Color) Style { return Style{Fg: c} }
	bold := func(c color.Color) Style { return Style{Fg: c, Attrs: uv.AttrBold} }
	t := &Theme{
		Name:         p.name,
		Text:         fg(p.text),
		Dim:          fg(p.dim),
		Strong:       bold(p.strong),
		Border:       fg(p.line),
		BorderFocus:  bold(p.accent),
		Title:        bold(p.strong),
		Link:         fg(p.accent),
		Selected:     Style{Fg: p.strong, Bg: p.selectBg, Attrs: uv.AttrBold},
		SelectedIdle: Style{Fg: p.strong, Bg: p.idleBg},
		Overlap:      Style{Fg: p.text, Bg: p.overlapBg},
		Match:        Style{Fg: p.matchFg, Bg: p.matchBg, Attrs: uv.AttrBold},
		Only:         fg(p.only),
		Shared:       fg(p.shared),
		Warn:         bold(p.warn),
		Error:        bold(p.err),
		Key:          bold(p.accent),
		Range:        Style{Fg: p.text, Bg: p.rangeBg},
		Run:          fg(p.run),
		GC:           bold(p.gc),
		Idle:         fg(p.dim),

		SyntaxKeyword:   bold(p.keyword),
		SyntaxType:      fg(p.typ),
		SyntaxString:    fg(p.str),
		SyntaxNumber:    fg(p.num),
		SyntaxComment:   Style{Fg: p.dim, Attrs: uv.AttrItalic},
		SyntaxOperator:  fg(p.keyword),
		SyntaxDirective: fg(p.num),
	}
	for i := range t.Heat {
		f := float64(i) / (HeatLevels - 1)
		c := mix(p.coolest, p.mid, f*2)
		if f > 0.5 {
			c = mix(p.mid, p.hottest, f*2-1)
		}
		t.Heat[i] = fg(c)
		if i >= HeatLevels-3 {
			t.Heat[i] = bold(c)
		}
		t.Flame[i] = on(p.flame[i])
	}
	for i := range ChangeLevels {
		t.More[i], t.Less[i] = on(p.more[i]), on(p.less[i])
	}
	t.FlameIdle = on(p.cold)
	t.FlameEdge = t.FlameIdle
	for i, c := range p.cause {
		t.Cause[i] = bold(c)
	}
	return t
}

// on is the style of text on a background: black or white, which has more contrast.
func on(bg color.Color) Style {
	black, white := rgb(0), rgb(0xffffff)
	if Contrast(black, bg) > Contrast(white, bg) {
		return Style{Fg: black, Bg: bg}
	}
	return Style{Fg: white, Bg: bg}
}

// plain is what NO_COLOR leaves: bold for what matters most.
func plain() *Theme {
	b := Style{Attrs: uv.AttrBold}
	t := &Theme{
		Name: "plain", Plain: true,
		Strong: b, BorderFocus: b, Title: b, Selected: b, Match: b, Warn: b, Error: b, Key: b,
		GC: b, SyntaxKeyword: b,
	}
	for i := HeatLevels - 3; i < HeatLevels; i++ {
		t.Heat[i] = b
	}
	for i := range t.Cause {
		t.Cause[i] = b
	}
	return t
}

func rgb(hex uint32) color.Color {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

func mix(a, b color.Color, f float64) color.Color {
	x, y := a.(color.RGBA), b.(color.RGBA)
	ch := func(p, q uint8) uint8 { return uint8(math.Round(float64(p) + (float64(q)-float64(p))*f)) }
	return color.RGBA{R: ch(x.R, y.R), G: ch(x.G, y.G), B: ch(x.B, y.B), A: 0xff}
}
