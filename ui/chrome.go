package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"ccagent/internal/format"
	"ccagent/profile/columns"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/safe"
	"ccagent/ui/screen"
)

// tab is a screen's name in the title bar.
type tab struct {
	screen int
	text   string
	x      int
}

// layTabs places the tabs at the right end of the title bar: with names, with numbers
// alone, or none, as fits to the right of column from.
func (a *App) layTabs(r layout.Rect, from int) []tab {
	for form := range 3 { // with names, apart, close
		var out []tab
		width := 0
		for i := range kinds {
			text := fmt.Sprintf(" %d ", i+1)
			switch {
			case i == a.screen:
				text = fmt.Sprintf("[%d]", i+1)
			case form == 2:
				text = fmt.Sprint(i + 1)
			}
			if form == 0 {
				text += kinds[i].Tab + " "
			}
			out = append(out, tab{screen: i, text: text})
			width += len(text)
		}
		if x := r.Max.X - width; x >= from {
			for i := range out {
				out[i].x = x
				x += len(out[i].text)
			}
			return out
		}
	}
	return nil
}

// drawTabs draws them.
func (a *App) drawTabs(r layout.Rect, from int) {
	p := a.painter
	a.tabs = a.layTabs(r, from)
	for _, t := range a.tabs {
		st := p.Theme.Dim
		switch {
		case t.screen == a.screen:
			st = p.Theme.Title
		case a.why(keymap.OpenScreen(t.screen)) == "":
			st = p.Theme.Text
		}
		p.Text(t.x, r.Min.Y, r.Max.X, t.text, st)
	}
}

// pressTab opens the screen whose name was clicked.
func (a *App) pressTab(m screen.Mouse) bool {
	f := layout.Outer(a.w, a.h)
	if f.Title.Empty() || m.Y != f.Title.Min.Y {
		return false
	}
	for _, t := range a.tabs {
		if m.X < t.x || m.X >= t.x+len(t.text) {
			continue
		}
		a.do(keyTable.Of(keymap.OpenScreen(t.screen)))
	}
	return true
}

// counts are the losses that are always on screen: lost, truncated and unresolved.
func (a *App) counts(short bool) (text string, warn bool) {
	s := a.c.Data.Summary
	if s == nil {
		return "", false
	}
	unresolved := max(0, s.Unresolved-s.Pending)
	warn = s.Lost > 0 || unresolved > 0.1 || s.Damaged != ""
	cut, failed, unknown := "  truncated ", "  failed ", "  unresolved "
	pending := fmt.Sprintf("  names pending for %s", format.Share(s.Pending))
	if short {
		cut, failed, unknown = " cut ", " failed ", " ? "
		pending = a.painter.Glyphs.More
	}
	text = "lost " + format.Count(s.Lost) + cut + format.Count(s.Truncated)
	if s.Failed > 0 {
		text += failed + format.Count(s.Failed)
	}
	text += unknown + format.Share(unresolved)
	if s.Pending > 0 {
		text += pending
	}
	return text, warn
}

// notice says what is wrong with the log, or not there yet.
func (a *App) notice() string {
	s := a.c.Data.Summary
	switch {
	case s == nil:
		return ""
	case s.Nameless && a.src.Live:
		return "names are being looked up" + a.painter.Glyphs.More
	case s.Nameless:
		return "no names yet: without --live they come at the end"
	}
	return s.Damaged
}

func (a *App) drawTitle(r layout.Rect) {
	p, t := a.painter, a.painter.Theme
	s := a.c.Data.Summary
	counts, warn := a.counts(false)
	if p.Width(counts)+36 > r.Dx() {
		counts, warn = a.counts(true)
	}
	// The fullest description that fits beside the counts.
	var about []string
	if s != nil {
		event, short := s.Event, s.Event
		if s.Granted != "" {
			event += " (" + s.Granted + ")"
		}
		if s.Events == 0 {
			event, short = "no event", "no event"
			if rts := a.c.Profile.RTS; rts != "" {
				event = rts
			}
		}
		about = []string{
			fmt.Sprintf("%s: %s samples, %.2fs", event, format.Count(s.Samples), float64(s.Duration)/1e9),
			fmt.Sprintf("%s: %s samples", event, format.Count(s.Samples)),
			fmt.Sprintf("%s: %s", short, format.Count(s.Samples)),
			short,
			"",
		}
	}
	word, ws := "ccview ", t.Dim
	switch {
	case a.live.feed == nil || a.live.state != columns.FollowGrowing:
	case a.live.paused:
		word, ws = "paused ", t.Warn
	default:
		word, ws = "live ", t.Key
	}
	if p.Width(word)+p.Width(counts)+16 > r.Dx() && a.live.feed == nil {
		word = "" // the log's name needs the room
	}
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X, word, ws)
	name := p.Width(a.src.Name)
	free := r.Max.X - x - p.Width(counts) - 4
	if r.Dx() >= layout.MinWidth {
		free -= len(kinds) + 1 // the tabs go before the log's length
	}
	choice := ""
	for _, d := range about {
		choice = d
		if min(name, 24)+2+p.Width(d) <= free {
			break
		}
	}
	x = p.Name(x, r.Min.Y, min(x+max(0, free-p.Width(choice)-2), x+40), a.src.Name, t.Title) + 2
	if choice != "" {
		x = p.Text(x, r.Min.Y, r.Max.X-p.Width(counts)-1, choice, t.Text) + 2
	}
	st := t.Dim
	if warn {
		st = t.Warn
	}
	x = p.Text(x, r.Min.Y, r.Max.X, counts, st)
	a.drawTabs(r, x+1)
}

func (a *App) drawCrumbs(r layout.Rect) {
	p, t := a.painter, a.painter.Theme
	s := a.c.Data.Summary
	right := ""
	if s != nil {
		right = fmt.Sprintf("%s of %s samples kept", format.Count(s.Kept), format.Count(s.Samples))
		if !a.current() {
			right = "computing " + p.Glyphs.More
		}
	}
	ts := a.c.Applied.All()
	var parts []string
	for _, tr := range ts {
		parts = append(parts, tr.String())
	}
	sep := " " + p.Glyphs.Then + " "
	text := strings.Join(parts, sep)
	if notice := a.notice(); notice != "" {
		// The notice stands before the transforms, which keep a third of the line.
		room := r.Max.X - p.Width(right) - min(p.Width(text), r.Dx()/3) - 6
		x := p.Text(r.Min.X+1, r.Min.Y, max(room, r.Min.X+16), notice, t.Warn)
		r.Min.X = min(x+2, r.Max.X)
	}
	room := r.Dx() - p.Width(right) - 5
	for len(parts) > 1 && p.Width(text) > room {
		parts = parts[1:]
		text = p.Glyphs.More + sep + strings.Join(parts, sep)
	}
	st := t.Strong
	if text == "" {
		text, st = "all samples", t.Dim
		if hint := ": f focus, d drop, [ ] range narrow them"; p.Width(text+hint) <= room {
			text += hint
		}
	}
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X-p.Width(right)-2, text, st)
	const pops = "backspace pops"
	if len(ts) > 0 && x+3+len(pops) < r.Max.X-p.Width(right)-3 {
		p.Text(x+3, r.Min.Y, r.Max.X, pops, t.Dim)
	}
	p.Right(r.Min.X+1, r.Max.X-1, r.Min.Y, right, t.Dim)
}

// current reports whether the figures on screen belong to the current event and
// transforms, and are not still being computed.
func (a *App) current() bool {
	return a.c.Samples() == a.c.Data.Query.Samples
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
		for _, b := range keyTable.Footer(r.Dx()-1, a.why) {
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
	if a.src.Follow != nil {
		text = "waiting for " + a.src.Name
	}
	p.Text(2, y, a.w, text, p.Theme.Text)
	if a.loading.total > 0 && y+1 < a.h {
		f := float64(a.loading.done) / float64(a.loading.total)
		width := max(1, min(40, a.w-12))
		p.Bar(2, y+1, width, f, 1)
		p.Text(2+width+1, y+1, a.w, format.Share(f), p.Theme.Dim)
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
