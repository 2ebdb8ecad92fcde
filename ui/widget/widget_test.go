package widget

import (
	"image"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"ccagent/ui/theme"
)

func painter(t *testing.T, w, h int, g *Glyphs) *Painter {
	t.Helper()
	th, err := theme.New("plain")
	if err != nil {
		t.Fatal(err)
	}
	return NewPainter(w, h, th, g)
}

// shown is what the canvas says, one line a row, without trailing spaces.
func shown(p *Painter) string {
	lines := strings.Split(ansi.Strip(p.Render()), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestTextStaysInItsColumns(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		ascii bool
		want  string
	}{
		{"step", 8, false, "step"},
		{"simulate", 8, false, "simulate"},
		{"simulated", 8, false, "simulat…"},
		{"simulated", 8, true, "simula.."},
		{"日本語", 6, false, "日本語"},
		{"日本語", 5, false, "日本…"},
		{"日本語", 4, false, "日…"},
		{"日本語", 8, true, "??????"},
		{"a\x1b[2Jb", 8, false, "a�[2Jb"},
		{"abc", 1, true, ""},
		{"abc", 0, false, ""},
	} {
		g := Unicode()
		if c.ascii {
			g = ASCII()
		}
		p := painter(t, 12, 1, g)
		p.Text(0, 0, c.limit, c.in, p.Theme.Text)
		if got := shown(p); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

// A name that is too long loses words before letters, and those from its middle.
func TestNameFits(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"M (local code before $wdatep)", 29, "M (local code before $wdatep)"},
		{"M (local code before $wdatep)", 28, "M (before $wdatep)"},
		{"M (local code before $wdatep)", 11, "M (be…atep)"},
		{"Hledger.Data.Types.compare", 11, "Hledg…mpare"},
	} {
		p := painter(t, 40, 1, Unicode())
		if end := p.Name(0, 0, c.width, c.in, p.Theme.Text); end > c.width || shown(p) != c.want {
			t.Errorf("%q in %d columns is %q and ends at %d, want %q", c.in, c.width, shown(p), end, c.want)
		}
	}
}

func TestBoxesJoin(t *testing.T) {
	const want = `
┌ top ──── note ─┐
│                │
├───────┬────────┤
│       │        │
└───────┴────────┘`
	p := painter(t, 18, 5, Unicode())
	p.Box(image.Rect(0, 0, 18, 3), "top", "note", false)
	p.Box(image.Rect(0, 2, 9, 5), "", "", false)
	p.Box(image.Rect(8, 2, 18, 5), "", "", true)
	if got := shown(p); got != want[1:] {
		t.Errorf("\n%s\nwant%s", got, want)
	}
}

func TestListKeepsItsCursorVisible(t *testing.T) {
	l := List{N: 10}
	r := image.Rect(0, 2, 10, 5) // three rows
	see := func() string {
		var b strings.Builder
		l.Draw(r, func(i, _ int) {
			c := byte('0' + i)
			if i == l.Cursor {
				b.WriteByte('>')
			}
			b.WriteByte(c)
		})
		return b.String()
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, ">012"},
		{func() { l.Move(2) }, "01>2"},
		{func() { l.Move(1) }, "12>3"},
		{func() { l.Move(-99) }, ">012"},
		{func() { l.Move(99) }, "78>9"},
		{func() { l.Scroll(-4) }, "34>5"},
		{func() { l.Scroll(99) }, ">789"},
		{func() { l.N = 2 }, "0>1"},
		{func() { l.N = 0 }, ""},
	} {
		step.do()
		if got := see(); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	l = List{N: 5}
	see()
	if got := l.RowAt(r, 3); got != 1 {
		t.Errorf("row at line 3 is %d", got)
	}
	if got := l.RowAt(r, 5); got != -1 {
		t.Errorf("row below the list is %d", got)
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		only, share float64
		want        string
	}{
		{0.5, 1, "#####~~~~~"}, {0, 0.3, "~~~"}, {0.3, 0.3, "###"}, {0, 0.001, "."}, {0, 0, ""}, {2, 3, "##########"},
	} {
		p := painter(t, 10, 1, ASCII())
		p.Bar(0, 0, 10, c.only, c.share)
		if got := shown(p); got != c.want {
			t.Errorf("Bar(%v, %v) = %q, want %q", c.only, c.share, got, c.want)
		}
	}
}

// coloured is a painter with the default theme.
func coloured(t *testing.T, w, h int) *Painter {
	t.Helper()
	th, err := theme.New("")
	if err != nil {
		t.Fatal(err)
	}
	return NewPainter(w, h, th, Unicode())
}

// With colours a bar is drawn in eighths of a column, and where both parts meet in a column, one
// is its background.
func TestBarInEighths(t *testing.T) {
	for _, c := range []struct {
		solid, all float64
		want       string
	}{
		{0.5, 1, "██▌██"}, {0.25, 1, "█▎███"}, {0, 0.001, "▏"}, {0, 0.31, "█▌"}, {0.3, 0.3, "█▌"}, {0, 0, ""}, {0.01, 0.01, "▏"}, {2, 3, "█████"},
	} {
		p := coloured(t, 5, 1)
		p.Bar(0, 0, 5, c.solid, c.all)
		if got := shown(p); got != c.want {
			t.Errorf("Bar(%v, %v) = %q, want %q", c.solid, c.all, got, c.want)
		}
	}
	p := coloured(t, 5, 1)
	p.Bar(0, 0, 5, 0.25, 1)
	if st := p.canvas.CellAt(1, 0).Style; st.Fg != p.Theme.Only.Fg || st.Bg != p.Theme.Shared.Fg {
		t.Errorf("where the parts meet the style is %+v", st)
	}
}

// A row's tint leaves a background that says something, and no text that cannot be read on it.
func TestTintKeepsMatches(t *testing.T) {
	p := coloured(t, 4, 1)
	p.Text(0, 0, 2, "ab", p.Theme.Match)
	p.Text(2, 0, 4, "cd", theme.Style{Fg: p.Theme.Selected.Bg})
	p.Tint(image.Rect(0, 0, 4, 1), p.Theme.Selected)
	if st := p.canvas.CellAt(0, 0).Style; st.Bg != p.Theme.Match.Bg || st.Fg != p.Theme.Match.Fg {
		t.Errorf("a match became %+v", st)
	}
	if st := p.canvas.CellAt(2, 0).Style; st.Bg != p.Theme.Selected.Bg || st.Fg != p.Theme.Selected.Fg {
		t.Errorf("text of the tint's colour became %+v", st)
	}
}

// A span's columns are GHC's: a tab counts to its stop, a wide character one.
func TestUnderlayFollowsGHCColumns(t *testing.T) {
	for _, c := range []struct {
		line     string
		from, to int
		left     int
		want     string
	}{
		{"f = go x", 5, 7, 0, "f = go x\n    ^S"},
		{"\tgo x", 9, 11, 0, "        go x\n        ^S"},
		{"日 = go x", 5, 7, 0, "日 = go x\n     ^S"},
		{"f = go x", 5, 0, 0, "f = go x\n    ^SSS"},
		{"f = go x", 5, 7, 2, "…  go x\n  ^S"},
	} {
		p := painter(t, 20, 2, Unicode())
		r := image.Rect(0, 0, 20, 2)
		p.CodeLine(r, 0, c.left, c.line, nil, nil)
		p.Underlay(r, 1, c.left, c.line, Mark{From: c.from, To: c.to}, "S")
		if c.left == 2 {
			c.want = "… go x\n  ^S"
		}
		if got := shown(p); got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
}
