package ui

import (
	"fmt"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile/columns"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/safe"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// chrome draws what stands around a screen but for the footer.
type chrome struct {
	*widget.Painter
	w, h int
	c    *screen.Context
	log  *openLog
	deck *deck
	why  func(keymap.Action) string
}

func (d chrome) draw(f layout.Frame) {
	d.deck.row = -1
	if !f.Title.Empty() {
		d.title(f.Title)
	}
	if n := f.Notice; !n.Empty() {
		text := fmt.Sprintf("%dx%d is small; %dx%d shows all. tab: next pane", d.w, d.h, layout.MinWidth, layout.MinHeight)
		if d.w < d.Width(text)+2 {
			text = fmt.Sprintf("small: %dx%d<%dx%d", d.w, d.h, layout.MinWidth, layout.MinHeight)
		}
		d.Text(n.Min.X, n.Min.Y, n.Max.X, text, d.Theme.Warn)
	}
	if !f.Crumbs.Empty() {
		d.crumbs(f.Crumbs)
	}
}

// counts are the losses that are always on screen: lost, truncated and unresolved.
func (d chrome) counts(short bool) (text string, warn bool) {
	s := d.c.Data.Summary
	if s == nil {
		return "", false
	}
	unresolved := max(0, s.Unresolved-s.Pending)
	warn = s.Lost > 0 || unresolved > 0.1 || s.Damaged != ""
	cut, failed, unknown := "  truncated ", "  failed ", "  unresolved "
	pending := fmt.Sprintf("  names pending for %s", format.Share(s.Pending))
	if short {
		cut, failed, unknown = " cut ", " failed ", " ? "
		pending = d.Glyphs.More
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
func (d chrome) notice() string {
	s := d.c.Data.Summary
	switch {
	case s == nil:
		return ""
	case s.Nameless && d.log.src.Live:
		return "names are being looked up" + d.Glyphs.More
	case s.Nameless:
		return "no names yet: without --live they come at the end"
	}
	return s.Damaged
}

func (d chrome) title(r layout.Rect) {
	p, t := d.Painter, d.Theme
	s := d.c.Data.Summary
	counts, warn := d.counts(false)
	if p.Width(counts)+36 > r.Dx() {
		counts, warn = d.counts(true)
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
			if rts := d.c.Profile.RTS; rts != "" {
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
	case d.log.live.feed == nil || d.log.live.state != columns.FollowGrowing:
	case d.log.live.paused:
		word, ws = "paused ", t.Warn
	default:
		word, ws = "live ", t.Key
	}
	if p.Width(word)+p.Width(counts)+16 > r.Dx() && d.log.live.feed == nil {
		word = "" // the log's name needs the room
	}
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X, word, ws)
	name := p.Width(d.log.src.Name)
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
	x = p.Name(x, r.Min.Y, min(x+max(0, free-p.Width(choice)-2), x+40), d.log.src.Name, t.Title) + 2
	if choice != "" {
		x = p.Text(x, r.Min.Y, r.Max.X-p.Width(counts)-1, choice, t.Text) + 2
	}
	st := t.Dim
	if warn {
		st = t.Warn
	}
	x = p.Text(x, r.Min.Y, r.Max.X, counts, st)
	d.deck.drawTabs(p, r, x+1, d.why)
}

func (d chrome) crumbs(r layout.Rect) {
	p, t := d.Painter, d.Theme
	s := d.c.Data.Summary
	right := ""
	if s != nil {
		right = fmt.Sprintf("%s of %s samples kept", format.Count(s.Kept), format.Count(s.Samples))
		if !d.current() {
			right = "computing " + p.Glyphs.More
		}
	}
	ts := d.c.Applied.All()
	var parts []string
	for _, tr := range ts {
		parts = append(parts, tr.String())
	}
	sep := " " + p.Glyphs.Then + " "
	text := strings.Join(parts, sep)
	if notice := d.notice(); notice != "" {
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
func (d chrome) current() bool {
	return d.c.Samples() == d.c.Data.Query.Samples
}

// drawLoading shows how much of the log is read.
func drawLoading(o *display, log *openLog) {
	p := o.painter
	y := o.h / 2
	text := "reading " + log.src.Name
	if log.src.Follow != nil {
		text = "waiting for " + log.src.Name
	}
	p.Text(2, y, o.w, text, p.Theme.Text)
	if log.loading.total > 0 && y+1 < o.h {
		f := float64(log.loading.done) / float64(log.loading.total)
		width := max(1, min(40, o.w-12))
		p.Bar(2, y+1, width, f, 1)
		p.Text(2+width+1, y+1, o.w, format.Share(f), p.Theme.Dim)
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
