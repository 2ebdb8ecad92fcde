package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/safe"
	"ccagent/ui/view"
	"ccagent/ui/widget"
)

var tabs = []string{"Main", "Source", "Tree", "CCS", "Heap", "Diff"}

// tabText is a tab as drawn.
func (a *App) tabText(i int) string {
	if i == a.screen {
		return fmt.Sprintf("[%d]%s", i+1, tabs[i])
	}
	return fmt.Sprintf(" %d %s", i+1, tabs[i])
}

// drawTabs draws the screens' names at the right end of the title bar and gives
// the column where they begin.
func (a *App) drawTabs(r layout.Rect, from int) int {
	p := a.painter
	n := len(screenActions)
	if a.w >= 140 {
		n = len(tabs)
	}
	width := 0
	for i := range n {
		width += len(a.tabText(i)) + 1
	}
	x := r.Max.X - width
	if x < from+2 {
		return r.Max.X
	}
	start := x
	for i := range n {
		st := p.Theme.Dim
		switch {
		case i == a.screen:
			st = p.Theme.Title
		case i < len(screenActions):
			st = p.Theme.Text
		}
		x = p.Text(x, r.Min.Y, r.Max.X, a.tabText(i), st) + 1
	}
	return start
}

// pressTab opens the screen whose name was clicked.
func (a *App) pressTab(m view.Mouse) bool {
	f := layout.Outer(a.w, a.h)
	if f.Title.Empty() || m.Y != f.Title.Min.Y {
		return false
	}
	n := len(screenActions)
	if a.w >= 140 {
		n = len(tabs)
	}
	x := f.Title.Max.X
	for i := n - 1; i >= 0; i-- {
		x -= len(a.tabText(i)) + 1
		if m.X >= x && m.X < x+len(a.tabText(i)) {
			if i < len(screenActions) {
				a.show(i)
			} else {
				a.say(keymap.Of([]keymap.Action{keymap.Screen4, keymap.Screen5, keymap.Screen6}[i-3]).Planned, true)
			}
			return true
		}
	}
	return true
}

// counts are what is always on screen: what the log does not know.
func (a *App) counts(short bool) (text string, warn bool) {
	s := a.c.Data.Summary
	if s == nil {
		return "", false
	}
	warn = s.Lost > 0 || s.Unresolved > 0.1 || s.Damaged != ""
	if short {
		return fmt.Sprintf("lost %d cut %d ? %s", s.Lost, s.Truncated, widget.Percent(s.Unresolved)), warn
	}
	text = fmt.Sprintf("lost %s  truncated %s  unresolved %s", widget.Count(s.Lost), widget.Count(s.Truncated), widget.Percent(s.Unresolved))
	return text, warn
}

func (a *App) drawTitle(r layout.Rect) {
	p, t := a.painter, a.painter.Theme
	s := a.c.Data.Summary
	counts, warn := a.counts(false)
	if p.Width(counts)+24 > r.Dx() {
		counts, warn = a.counts(true)
	}
	// The fullest description that fits beside the counts.
	var about []string
	if s != nil {
		event := s.Event
		if s.Granted != "" {
			event += " (" + s.Granted + ")"
		}
		about = []string{
			fmt.Sprintf("%s: %s samples, %.2fs", event, widget.Count(s.Samples), float64(s.Duration)/1e9),
			fmt.Sprintf("%s: %s samples", event, widget.Count(s.Samples)),
			fmt.Sprintf("%s: %s", s.Event, widget.Count(s.Samples)),
		}
	}
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X, "ccview ", t.Dim)
	name := p.Width(a.src.Name)
	free := r.Max.X - x - p.Width(counts) - 4
	choice := ""
	for _, d := range about {
		choice = d
		if min(name, 24)+2+p.Width(d) <= free {
			break
		}
	}
	x = p.Text(x, r.Min.Y, min(x+max(0, free-p.Width(choice)-2), x+40), a.src.Name, t.Title) + 2
	x = p.Text(x, r.Min.Y, r.Max.X-p.Width(counts)-1, choice, t.Text) + 2
	st := t.Dim
	if warn {
		st = t.Warn
	}
	x = p.Text(x, r.Min.Y, r.Max.X, counts, st)
	end := a.drawTabs(r, x)
	if s != nil && s.Damaged != "" && x+2+p.Width(s.Damaged) < end {
		p.Text(x+2, r.Min.Y, end, s.Damaged, t.Warn)
	}
}

func (a *App) drawCrumbs(r layout.Rect) {
	p, t := a.painter, a.painter.Theme
	s := a.c.Data.Summary
	right := ""
	if s != nil {
		right = fmt.Sprintf("%s of %s samples kept", widget.Count(s.Kept), widget.Count(s.Samples))
		if a.busy && !stackEqual(a) {
			right = "computing " + p.Glyphs.More
		}
	}
	ts := a.c.Stack.All()
	var parts []string
	if a.fixed != "" {
		parts = append(parts, a.fixed)
	}
	for _, tr := range ts {
		parts = append(parts, tr.String())
	}
	sep := " " + p.Glyphs.Then + " "
	text := strings.Join(parts, sep)
	room := r.Dx() - p.Width(right) - 5
	for len(parts) > 1 && p.Width(text) > room {
		parts = parts[1:]
		text = p.Glyphs.More + sep + strings.Join(parts, sep)
	}
	st := t.Strong
	if text == "" {
		text, st = "all samples: f focus, d drop, [ ] range narrow them", t.Dim
	}
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X-p.Width(right)-2, text, st)
	const pops = "backspace pops"
	if len(ts) > 0 && x+3+len(pops) < r.Max.X-p.Width(right)-3 {
		p.Text(x+3, r.Min.Y, r.Max.X, pops, t.Dim)
	}
	p.Right(r.Min.X+1, r.Max.X-1, r.Min.Y, right, t.Dim)
}

// stackEqual reports whether what is shown is of the transforms that hold.
func stackEqual(a *App) bool {
	n := a.need()
	d := &a.c.Data.Need
	return n.Event == d.Event && fmt.Sprint(n.Stack) == fmt.Sprint(d.Stack)
}

func (a *App) drawFooter(r layout.Rect, tiny bool) {
	p, t := a.painter, a.painter.Theme
	switch {
	case a.prompt != nil:
		a.drawPrompt(r)
	case a.message != "":
		st := t.Text
		if a.warn {
			st = t.Warn
		}
		p.Text(r.Min.X+1, r.Min.Y, r.Max.X, a.message, st)
	case tiny:
		text, _ := a.counts(true)
		p.Text(r.Min.X, r.Min.Y, r.Max.X, text, t.Dim)
	default:
		x := r.Min.X + 1
		for _, b := range keymap.Footer(r.Dx()-1, a.why) {
			x = p.Text(x, r.Min.Y, r.Max.X, b.FirstKey(), t.Key) + 1
			x = p.Text(x, r.Min.Y, r.Max.X, b.Short, t.Dim) + 2
		}
	}
}

func (a *App) drawPrompt(r layout.Rect) {
	p, t, pr := a.painter, a.painter.Theme, a.prompt
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X, pr.label, t.Key)
	runes := []rune(pr.input.Value())
	at := min(pr.input.Position(), len(runes))
	// The end of a long text is what is being typed.
	from := 0
	for from < at && x+safe.Width(string(runes[from:at])) >= r.Max.X-1 {
		from++
	}
	st := t.Strong
	if pr.err != "" {
		st = t.Error
	}
	col := x + safe.Width(string(runes[from:at]))
	x = p.Text(x, r.Min.Y, r.Max.X, string(runes[from:]), st)
	note, ns := pr.hint, t.Dim
	if pr.err != "" {
		note, ns = pr.err, t.Error
	}
	p.Text(x+3, r.Min.Y, r.Max.X, note, ns)
	a.cursor = tea.NewCursor(min(col, r.Max.X-1), r.Min.Y)
}

func (a *App) drawChrome(f layout.Frame) {
	if !f.Title.Empty() {
		a.drawTitle(f.Title)
	}
	if !f.Notice.Empty() {
		text := fmt.Sprintf("%dx%d is small; %dx%d shows all. tab: next pane", a.w, a.h, layout.MinWidth, layout.MinHeight)
		if a.w < a.painter.Width(text)+2 {
			text = fmt.Sprintf("small: %dx%d<%dx%d", a.w, a.h, layout.MinWidth, layout.MinHeight)
		}
		a.painter.Text(f.Notice.Min.X, f.Notice.Min.Y, f.Notice.Max.X, text, a.painter.Theme.Warn)
	}
	if !f.Crumbs.Empty() {
		a.drawCrumbs(f.Crumbs)
	}
	if !f.Footer.Empty() {
		a.drawFooter(f.Footer, f.Small && f.Title.Empty())
	}
}

func (a *App) drawLoading() {
	p := a.painter
	y := a.h / 2
	text := "reading " + a.src.Name
	p.Text(2, y, a.w, text, p.Theme.Text)
	if a.loading.total > 0 && y+1 < a.h {
		f := float64(a.loading.done) / float64(a.loading.total)
		width := max(1, min(40, a.w-12))
		p.Bar(2, y+1, width, f, 1)
		p.Text(2+width+1, y+1, a.w, widget.Percent(f), p.Theme.Dim)
	}
}

// clip cuts a name for the window's title.
func clip(s string, n int) string {
	s = safe.String(s)
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
