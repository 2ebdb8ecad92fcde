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
	if s == nil || d.unsampled() {
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

// unsampled reports whether the log has no samples, and was not to have any.
func (d chrome) unsampled() bool {
	s := d.c.Data.Summary
	return s != nil && s.Events == 0 && s.Samples == 0
}

// instead says what a log without events has.
func (d chrome) instead() string {
	switch p := d.c.Profile; {
	case p.RTS != "":
		return p.RTS
	case len(p.Dumps) > 0:
		return "thread dump"
	case len(p.HeapProfiles) > 0:
		return "heap census"
	}
	return "no event"
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

// countsBelow reports whether the counts stand in the line of transforms, since with them the tabs
// would lose their names.
func (d chrome) countsBelow(r layout.Rect) bool {
	counts, _ := d.counts(false)
	const described = 66 // the log's name and what it is of
	return d.Width(counts)+d.deck.tabsWidth(tabsNamed)+described > r.Dx()
}

// plain is the first word of the title, unless that says how the log is shown.
const plain = "ccview "

// maxName is how much of a log's name is shown where there is room. The middle of longer names is left out.
const maxName = 40

// describe chooses the title's first word and the fullest description of the log, of those given, that
// fit into width columns beside the log's name. Where not even the shortest does, the name is cut
// first, its ending before the rest; then the word "ccview" goes, and last what the log is of.
func (d chrome) describe(word, name string, about []string, width int) (first, description string) {
	type form struct {
		word string
		name int // columns of it
	}
	brief := d.Width(briefly(name))
	forms := []form{{word, min(24, d.Width(name))}, {word, min(24, brief)}, {word, min(12, brief)}}
	if word == plain {
		word = ""
		forms = append(forms, form{word, min(12, brief)})
	}
	for _, f := range append(forms, form{word, min(5, brief)}) {
		for _, text := range about {
			if d.Width(f.word)+f.name+2+d.Width(text) <= width {
				return f.word, text
			}
		}
	}
	return word, ""
}

// briefly is a log's name without the ending, which says the least.
func briefly(name string) string { return strings.TrimSuffix(name, ".eventlog") }

func (d chrome) title(r layout.Rect) {
	p, t := d.Painter, d.Theme
	s := d.c.Data.Summary
	counts, warn := d.counts(false)
	if d.countsBelow(r) {
		counts = ""
	}
	// The fullest description that fits beside the counts.
	var about []string
	if s != nil {
		event, short := s.Title, s.Event
		if s.Events == 0 {
			event = d.instead()
			short = event
		}
		about = []string{
			fmt.Sprintf("%s: %s samples, %.2fs", event, format.Count(s.Samples), float64(s.Duration)/1e9),
			fmt.Sprintf("%s: %s samples", event, format.Count(s.Samples)),
			fmt.Sprintf("%s: %s", short, format.Count(s.Samples)),
			short,
		}
		if d.unsampled() {
			about = []string{fmt.Sprintf("%s, %.2fs", event, float64(s.Duration)/1e9), event}
		}
	}
	word, ws := plain, t.Dim
	switch {
	case d.c.Compared != nil:
		word, ws = d.c.Compared.Shown.String()+" ", t.Key
	case d.log.live.feed == nil || d.log.live.state != columns.FollowGrowing:
	case d.log.live.paused:
		word, ws = "paused ", t.Warn
	default:
		word, ws = "live ", t.Key
	}
	free := r.Dx() - 2 // but for a space at each end
	if counts != "" {
		free -= p.Width(counts) + 2
	}
	if r.Dx() >= layout.MinWidth {
		free -= d.deck.tabsWidth(tabsNamed) // the tabs go before the log's length
	} else if w := d.deck.tabsWidth(tabsNumbered); w <= r.Dx()/2 {
		free -= w
	}
	name := d.log.src.Name
	word, choice := d.describe(word, name, about, free)
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X, word, ws)
	room := free - p.Width(word)
	if choice != "" {
		room -= p.Width(choice) + 2
	}
	if p.Width(name) > room {
		name = briefly(name)
	}
	x = p.Name(x, r.Min.Y, min(x+max(0, room), x+maxName), name, t.Title) + 2
	if choice != "" {
		x = p.Text(x, r.Min.Y, r.Max.X-p.Width(counts)-1, choice, t.Text) + 2
	}
	st := t.Dim
	if warn {
		st = t.Warn
	}
	if counts != "" {
		x = p.Text(x, r.Min.Y, r.Max.X, counts, st)
	}
	d.deck.drawTabs(p, r, x-1, d.why)
}

// keptAndLost adds the counts to how many samples are kept, in width columns: in words if there is
// room, and what is pending before what is kept.
func (d chrome) keptAndLost(kept string, width int) (text string, warn bool) {
	long, warn := d.counts(false)
	short, _ := d.counts(true)
	forms := []string{kept + "  " + long, kept + "  " + short}
	if d.c.Data.Summary.Pending > 0 {
		forms = []string{kept + "  " + long, long}
	}
	if len(d.c.Applied.All()) > 0 && width < 80 { // they need the room
		return strings.Replace(forms[1], " samples kept", " kept", 1), warn
	}
	for _, text := range forms {
		if d.Width(text) <= width {
			return text, warn
		}
	}
	return short, warn
}

func (d chrome) crumbs(r layout.Rect) {
	p, t := d.Painter, d.Theme
	s := d.c.Data.Summary
	right, warn := "", false
	if s != nil && !d.unsampled() {
		right = fmt.Sprintf("%s of %s samples kept", format.Count(s.Kept), format.Count(s.Samples))
		if c := d.c.Compared; c != nil {
			right = c.Shown.String() + ": " + right
		}
		if d.countsBelow(r) {
			right, warn = d.keptAndLost(right, r.Dx()-20)
		}
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
	if text == "" && !d.unsampled() {
		text, st = "all samples", t.Dim
		if hint := d.narrowing(); p.Width(text+hint) <= room {
			text += hint
		}
	}
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X-p.Width(right)-2, text, st)
	const pops = "backspace pops"
	if len(ts) > 0 && x+3+len(pops) < r.Max.X-p.Width(right)-3 {
		p.Text(x+3, r.Min.Y, r.Max.X, pops, t.Dim)
	}
	rs := t.Dim
	if warn {
		rs = t.Warn
	}
	p.Right(r.Min.X+1, r.Max.X-1, r.Min.Y, right, rs)
}

// narrowing names the keys that narrow the samples on this screen; empty if none does.
func (d chrome) narrowing() string {
	var keys []string
	for _, n := range []struct {
		act  keymap.Action
		text string
	}{{keymap.Focus, "f focus"}, {keymap.Drop, "d drop"}, {keymap.RangeFrom, "[ ] range"}, {keymap.FocusExpr, "F by pattern"}} {
		if d.why(n.act) == "" && len(keys) < 3 {
			keys = append(keys, n.text)
		}
	}
	if keys == nil {
		return ""
	}
	if len(keys) == 1 {
		return ": " + keys[0] + " narrows them"
	}
	return ": " + strings.Join(keys, ", ") + " narrow them"
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
