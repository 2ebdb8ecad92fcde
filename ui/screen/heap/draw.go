package heap

import (
	"fmt"
	"image"
	"slices"

	"ccagent/internal/format"
	"ccagent/ui/chart"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	if s.mode() != bandsMode {
		s.table.draw(p, f, s.modeNames(), s.zoomed)
		return
	}
	s.refresh()
	d, h := s.latest(), s.heap()
	s.inner, s.chart = widget.Rect{}, widget.Rect{}
	if h != nil && h.Single {
		census := f.Body
		if d != nil && len(d.Pauses) > 0 && !f.Small && !s.zoomed {
			pauses := census
			census.Max.Y -= min(8, census.Dy()/3)
			pauses.Min.Y = census.Max.Y - 1 // its title is on the border between them
			s.drawCensus(p, census, h)
			s.drawPauses(p, pauses, d)
			return
		}
		s.drawCensus(p, census, h)
		return
	}
	top, bands, pauses := divide(f.Body, s.zoomed || f.Small, d != nil && len(d.Pauses) == 0)
	s.drawChart(p, top, d, h)
	if !bands.Empty() {
		line := ""
		if pauses.Empty() && d != nil && len(d.Pauses) > 0 {
			line = pausesLine(p, d, bands.Dx()-4)
		}
		s.drawBands(p, bands, h, line)
	}
	if !pauses.Empty() {
		s.drawPauses(p, pauses, d)
	}
}

// drawCensus draws the bands of the only census, by size.
func (s *Screen) drawCensus(p *widget.Painter, r widget.Rect, h *Heap) {
	t := p.Theme
	w := &s.c.Window
	title := "one census, by " + h.What
	if s.choice.In.title != "" {
		title += ": " + s.choice.In.title
	}
	if names := s.modeNames(); names != "" {
		title = names + "   " + title
	}
	p.Box(r, title, fmt.Sprintf("%s at %s", format.ShortBytes(h.Series.Peak), pane.Seconds(h.Series.PeakTime, w)), true)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	const figure, share = 11, 8
	drawn := h.Series.Drawn > 0
	x := p.Right(in.Min.X, in.Min.X+3+figure-1, in.Min.Y, "bytes", t.Dim) + len("bytes") + 1
	p.Right(x, x+share-1, in.Min.Y, "share", t.Dim)
	x += share
	if drawn {
		p.Right(x, x+figure-1, in.Min.Y, "±", t.Dim)
		x += figure
	}
	bar := max(8, min(40, (in.Max.X-x)/3))
	p.Text(x+bar+1, in.Min.Y, in.Max.X, "band", t.Dim)
	in.Min.Y++
	in.Max.Y -= s.drawNotes(p, in, h.Notes)
	s.inner = in
	if len(s.rows) == 0 {
		screen.DrawInstead(p, in, s.c.Emptied("band"))
		return
	}
	most := uint64(1)
	for i := range s.rows {
		most = max(most, peakOf(h.At(s.rows[i])))
	}
	s.list.Draw(in, func(k, y int) {
		i, x := s.rows[k], in.Min.X
		bytes := peakOf(h.At(i))
		part := format.Ratio(bytes, h.Series.Peak)
		if k == s.list.Cursor {
			p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
		}
		x += 3
		st := t.Text
		if l := theme.HeatLevel(part); l > 0 {
			st = t.Heat[l-1]
		}
		p.Right(x, x+figure-1, y, format.BytesLike(bytes, most), st)
		x += figure
		p.Right(x, x+share-1, y, format.Percent(part), t.Dim)
		x += share
		if drawn {
			if i >= 0 {
				p.Right(x, x+figure-1, y, "±"+format.ShortBytes(peakOf(h.Series.Rows[i].Margins)), t.Dim)
			}
			x += figure
		}
		scaled := float64(bytes) / float64(most)
		p.Bar(x, y, bar, scaled, scaled)
		x += bar + 1
		s.drawName(p, x, y, in.Max.X, h, i)
		if k == s.list.Cursor {
			p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, t.Selected)
		}
	})
}

// drawNotes draws what is to be known of figures at the foot of a list that has room for it, and gives the number of lines.
func (s *Screen) drawNotes(p *widget.Painter, in widget.Rect, notes []string) int {
	var lines []string
	for _, note := range notes {
		lines = append(lines, screen.Wrap(p, note, in.Dx()-2)...)
	}
	lines = lines[:min(len(lines), max(0, in.Dy()-6))]
	for k, l := range lines {
		p.Text(in.Min.X+1, in.Max.Y-len(lines)+k, in.Max.X, l, p.Theme.Dim)
	}
	return len(lines)
}

// drawName draws the name of a row's band.
func (s *Screen) drawName(p *widget.Painter, x, y, end int, h *Heap, row int) {
	st := p.Theme.Text
	if row < 0 {
		st = p.Theme.Dim
	}
	if s.c.Search.RE != nil && s.c.Search.RE.MatchString(s.name(h, row)) {
		st = p.Theme.Match
	}
	p.Name(x, y, end, s.name(h, row), st)
}

// bandStyle gives neighbouring bands different styles; a band is identified by its letter.
func bandStyle(t *theme.Theme, i int) theme.Style {
	if i < 0 {
		return t.Dim
	}
	return t.Cause[i%len(t.Cause)]
}

func (s *Screen) drawChart(p *widget.Painter, r widget.Rect, d, h2 *Heap) {
	in := r.Inset(1)
	w := &s.c.Window
	s.time.Strip = in
	s.time.Strip.Min.X = min(in.Min.X+pane.LabelWidth, in.Max.X)
	s.time.FitWindow()
	title, note := s.title(h2)
	if names := s.modeNames(); names != "" {
		title = names + "   " + title
	}
	if p.Width(title)+p.Width(note)+8 > r.Dx() {
		note = ""
	}
	if d != nil && slices.Contains(d.NotWatched, true) {
		note = p.Glyphs.NotWatched + " not watched  " + note
	}
	p.Box(r, title, note, true)
	s.chart = s.time.Strip
	if in.Empty() || s.time.Strip.Empty() {
		return
	}
	t := p.Theme
	if d == nil {
		screen.DrawInstead(p, in, screen.Computing(p))
		return
	}
	y := in.Min.Y
	s.time.Axis(p, y)
	y++
	for _, said := range append([]string{d.Missing, s.noPauses(d)}, d.Notes...) {
		if in.Dy() <= 6 {
			break
		}
		for _, l := range screen.Wrap(p, said, in.Dx()-2) {
			if y < in.Max.Y-4 {
				p.Text(in.Min.X+1, y, in.Max.X, l, t.Dim)
				y++
			}
		}
	}
	lines := len(d.Lines)
	if lines > 2 {
		lines = 2 // live and the heap; blocks lie between
	}
	foot, taken := 0, s.rare(h2) && in.Max.Y-y >= 12
	if in.Max.Y-y >= 8 {
		foot = lines
		if taken {
			foot++
		}
		if len(d.Pauses) > 0 {
			foot += 2
		}
		if len(d.Markers) > 0 {
			foot++
		}
	}
	area := s.time.Strip
	area.Min.Y, area.Max.Y = y, in.Max.Y-foot
	if h2 != nil {
		s.drawArea(p, in, area, h2)
		for y := area.Min.Y; y < area.Max.Y && h2.Sized; y++ {
			s.breakLine(p, y, d)
		}
	}
	if y := area.Max.Y; taken {
		p.Right(in.Min.X, in.Min.X+pane.LabelWidth-1, y, "census", t.Dim)
		for x, is := range h2.Series.Taken[:min(len(h2.Series.Taken), s.time.Strip.Dx())] {
			if is {
				p.Text(s.time.Strip.Min.X+x, y, in.Max.X, p.Glyphs.Tick, t.Key)
			}
		}
		s.drawLines(p, in, y+1, lines, foot-1, d)
	} else {
		s.drawLines(p, in, y, lines, foot, d)
	}
	if !s.marked || w.To <= w.From {
		s.time.Marks(p, in, in.Max.Y)
		return
	}
	if c := w.Column(s.mark); c >= 0 && c < s.time.Strip.Dx() {
		for y := area.Min.Y; y < area.Max.Y; y++ {
			p.Cell(s.time.Strip.Min.X+c, y, p.Glyphs.V, t.Key)
		}
	}
	s.time.Marks(p, in, in.Max.Y)
}

// rare reports whether moments of censuses are to be marked: between them bands are drawn as at the last one, and nothing is
// known. Where most columns have one, marks say nothing.
func (s *Screen) rare(h *Heap) bool {
	if h == nil || h.Sized {
		return false
	}
	n := 0
	for _, taken := range h.Series.Taken {
		if taken {
			n++
		}
	}
	return n <= len(h.Series.Taken)/2
}

// drawArea draws the stacked bands with their axis.
func (s *Screen) drawArea(p *widget.Painter, in, area widget.Rect, h *Heap) {
	if area.Dy() <= 0 {
		return
	}
	t := p.Theme
	limit := chart.Limit(h.Series.Peak)
	selected, any := s.row()
	for y, row := range chart.Bands(h.Series, area.Dy(), limit) {
		for x, cell := range row[:min(len(row), area.Dx())] {
			if cell == chart.Empty {
				continue
			}
			st := bandStyle(t, cell)
			if any && (cell == selected || cell == chart.Other && selected < 0) {
				st = t.Selected
			}
			p.Cell(area.Min.X+x, area.Min.Y+y, chart.Letter(s.letter(cell)), st)
		}
		switch y {
		case 0:
			p.Right(in.Min.X, area.Min.X-1, area.Min.Y, format.ShortBytes(limit), t.Dim)
		case area.Dy() / 2:
			if area.Dy() >= 6 {
				at := uint64(float64(limit) * (1 - float64(y)/float64(area.Dy())))
				p.Right(in.Min.X, area.Min.X-1, area.Min.Y+y, format.ShortBytes(at), t.Dim)
			}
		}
	}
}

// letter is a cell's band as it is called where one band alone is shown.
func (s *Screen) letter(cell int) int {
	if cell >= 0 && s.choice.Band > 0 {
		return s.choice.Band - 1
	}
	return cell
}

// drawLines draws the sizes, the pauses and the program's markers below the chart.
func (s *Screen) drawLines(p *widget.Painter, in widget.Rect, y, lines, foot int, d *Heap) {
	t := p.Theme
	if foot == 0 {
		return
	}
	label := func(name string) { p.Right(in.Min.X, in.Min.X+pane.LabelWidth-1, y, name, t.Dim) }
	shown := 0
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Name == "blocks" && len(d.Lines) > 2 || shown == lines {
			continue
		}
		shown++
		label(l.Name)
		for x, b := range l.Bytes[:min(len(l.Bytes), s.time.Strip.Dx())] {
			p.Cell(s.time.Strip.Min.X+x, y, p.Glyphs.Level(float64(b)/float64(max(1, l.Peak))), t.Run)
		}
		s.breakLine(p, y, d)
		y++
	}
	if len(d.Pauses) > 0 {
		label("in gc")
		p.Strip(s.time.Strip.Min.X, y, pane.Fit(d.InGC, s.time.Strip.Dx()), t.GC)
		s.breakLine(p, y, d)
		y++
		label("gen")
		for x, g := range d.Generation[:min(len(d.Generation), s.time.Strip.Dx())] {
			switch {
			case g == UnknownGeneration:
				p.Cell(s.time.Strip.Min.X+x, y, "g", t.GC)
			case g > 0:
				p.Cell(s.time.Strip.Min.X+x, y, fmt.Sprint(g), t.GC)
			case g == 0:
				p.Cell(s.time.Strip.Min.X+x, y, "0", t.Dim)
			}
		}
		s.breakLine(p, y, d)
		y++
	}
	if len(d.Markers) > 0 {
		label("marks")
		end := s.time.Strip.Min.X
		for _, m := range d.Markers {
			x := s.time.Strip.Min.X + s.c.Window.Column(m.Time)
			if x < end || x >= s.time.Strip.Max.X {
				continue
			}
			end = p.Text(x, y, s.time.Strip.Max.X, p.Glyphs.Tick+m.Text, t.Key) + 1
		}
	}
}

// breakLine marks the columns of a line in which collections were not watched.
func (s *Screen) breakLine(p *widget.Painter, y int, d *Heap) {
	p.Broken(s.time.Strip.Min.X, s.time.Strip.Max.X, y, d.NotWatched)
}

// drawBands draws the list of bands, with a line of the pauses at its foot, if there is one.
func (s *Screen) drawBands(p *widget.Painter, r widget.Rect, h *Heap, pauses string) {
	note := "by " + s.order.String()
	p.Box(r, "bands", note, false)
	in := r.Inset(1)
	t := p.Theme
	if pauses != "" && in.Dy() > 3 {
		in.Max.Y--
		p.Text(in.Min.X+1, in.Max.Y, in.Max.X, pauses, t.Dim)
	}
	if h == nil || in.Empty() {
		return
	}
	const figure = 10
	x := in.Min.X + 3
	labels := []string{"at cursor", "growth", "peak"}
	if in.Dx() < 60 {
		labels = labels[:2]
	}
	drawn := h.Series.Drawn > 0
	if drawn {
		labels = append(labels, "±")
	}
	for _, label := range labels {
		p.Right(x, x+figure, in.Min.Y, label, t.Dim)
		x += figure
	}
	p.Text(x+1, in.Min.Y, in.Max.X, "band", t.Dim)
	in.Min.Y++
	s.inner = in
	cursor, from := s.c.Window.Cursor, s.markColumn()
	if len(s.rows) == 0 {
		p.Text(in.Min.X+2, in.Min.Y, in.Max.X, "no band matches & "+s.c.Filter.Text, t.Dim)
	}
	// One unit a column, so that figures can be compared by their length.
	var most, grown, peak uint64
	for _, i := range s.rows {
		by := h.At(i)
		most, peak = max(most, valueAt(by, cursor)), max(peak, peakOf(by))
		g := h.Growth(i, from, cursor)
		grown = max(grown, uint64(max(g, -g)))
	}
	s.list.Draw(in, func(k, y int) {
		i := s.rows[k]
		by := h.At(i)
		selected := k == s.list.Cursor
		x := in.Min.X
		if selected {
			p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
		}
		cell := i
		if i < 0 {
			cell = chart.Other
		}
		p.Cell(x+1, y, chart.Letter(s.letter(cell)), bandStyle(t, i))
		x += 3
		right := func(v string, st theme.Style) {
			p.Right(x, x+figure, y, v, st)
			x += figure
		}
		right(format.BytesLike(valueAt(by, cursor), most), t.Text)
		g := h.Growth(i, from, cursor)
		st := t.Text
		if g > 0 && h.Series.Peak > 0 {
			if l := theme.HeatLevel(float64(g) / float64(h.Series.Peak)); l > 0 {
				st = t.Heat[l-1]
			}
		}
		right(format.SignedLike(g, grown), st)
		if in.Dx() >= 60 {
			right(format.BytesLike(peakOf(by), peak), t.Dim)
		}
		if margin := s.margin(h, i, cursor); drawn {
			text := ""
			if margin > 0 {
				text = "±" + format.ShortBytes(margin)
			}
			right(text, t.Dim)
		}
		s.drawName(p, x+1, y, in.Max.X, h, i)
		if selected {
			p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, t.Selected)
		}
	})
}

// margin is the distance to the ends of the 95 % confidence interval of a row at a column; 0 if all was counted.
func (s *Screen) margin(h *Heap, row, column int) uint64 {
	if row < 0 {
		return 0
	}
	return valueAt(h.Series.Rows[row].Margins, column)
}

// noPauses says why there are no pauses; empty if there are.
func (s *Screen) noPauses(d *Heap) string {
	switch {
	case len(d.Pauses) > 0:
		return ""
	case d.Unseen != "":
		return "collections were not looked at: " + d.Unseen
	case d.Partly:
		return "no collection was seen in this time: the probes were in place for a part of it, or for none"
	}
	return "the log has no collections in this time: ccagent record -e gc has them, and +RTS -l"
}

// drawPauses draws the pauses for GC: sums of the window, and those at the cursor.
func (s *Screen) drawPauses(p *widget.Painter, r widget.Rect, d *Heap) {
	p.Box(r, "gc pauses", "", false)
	in := r.Inset(1)
	if d == nil || in.Empty() {
		return
	}
	t := p.Theme
	y := in.Min.Y
	line := func(l string, st theme.Style) {
		parts := []string{l}
		if p.Width(l) > in.Dx()-1 {
			parts = screen.Wrap(p, l, in.Dx()-4)
		}
		for n, part := range parts {
			if n > 0 {
				part = "  " + part
			}
			if y < in.Max.Y {
				p.Text(in.Min.X+1, y, in.Max.X, part, st)
				y++
			}
		}
	}
	line("gen  pauses    total   median  longest", t.Dim)
	for _, g := range append(d.ByGen[:len(d.ByGen):len(d.ByGen)], d.All) {
		name := "all"
		switch {
		case g.Generation >= 0:
			name = fmt.Sprint(g.Generation)
		case g.Count != d.All.Count:
			name = "?"
		}
		line(fmt.Sprintf("%3s %7s %8s %8s %8s", name, format.Count(g.Count), format.Short(float64(g.TotalNs)), format.Short(float64(g.P50Ns)), format.Short(float64(g.MaxNs))), t.Text)
		if len(d.ByGen) == 1 {
			break
		}
	}
	w := &s.c.Window
	from, to := w.At(w.Cursor), w.At(w.Cursor+1)
	line(gcShare(d)+"; at the cursor:", t.Dim)
	n := 0
	for i := range d.Pauses {
		x := &d.Pauses[i]
		if x.End < from || x.Start >= to {
			continue
		}
		n++
		l := format.Short(float64(x.Ns())) + " at " + pane.Seconds(x.Start, w)
		if x.Generation >= 0 {
			l += fmt.Sprintf(", gen %d, copied %s", x.Generation, format.ShortBytes(x.Copied))
		}
		if x.Live > 0 {
			l += ", live " + format.ShortBytes(x.Live)
		}
		line(l, t.Text)
		if y >= in.Max.Y {
			return
		}
	}
	if n == 0 {
		line("none", t.Dim)
	}
}

// pausesLine sums the pauses of the window up, in at most room columns.
func pausesLine(p *widget.Painter, d *Heap, room int) string {
	line := fmt.Sprintf("gc pauses: %s, %s in all, longest %s", format.Count(d.All.Count), format.Short(float64(d.All.TotalNs)), format.Short(float64(d.All.MaxNs)))
	if more := line + "; " + gcShare(d); p.Width(more) <= room {
		return more
	}
	return line
}

// gcShare is the part of the time in which the program stood still for collections. Where the probes that report
// them were in place for a part of it, only of the whole log is known how long.
func gcShare(d *Heap) string {
	took := float64(d.All.TotalNs)
	switch {
	case !d.Partly:
		return "stood still " + format.Share(took/float64(max(1, d.To-d.From)))
	case d.Whole:
		return fmt.Sprintf("stood still %s of %s watched", format.Share(took/float64(max(1, d.Watched))), format.Short(float64(d.Watched)))
	}
	return "not all of it was watched"
}
