package diffflame

import (
	"fmt"
	"image"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile/stacks"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	s.graph, s.table = widget.Rect{}, widget.Rect{}
	upper, lower := f.Body, f.Body
	switch {
	case (f.Small || s.zoomed) && s.focus == graphPane:
		lower = widget.Rect{}
	case f.Small || s.zoomed:
		upper = widget.Rect{}
	default:
		upper.Max.Y = f.Body.Min.Y + min(max(10, f.Body.Dy()*11/20), f.Body.Dy()-5)
		lower.Min.Y = upper.Max.Y - 1
	}
	if !upper.Empty() {
		note := "M: by A, by both"
		if s.by != byB {
			note = "M: others"
		}
		p.Box(upper, s.c.Few("differential flame graph: widths by "+s.by.String()), note, s.focus == graphPane)
		if in := upper.Inset(1); !in.Empty() {
			s.drawGraph(p, in)
		}
	}
	if !lower.Empty() {
		title, note := "paths that changed by more than the noise of sampling", "Z: all"
		if s.all {
			title, note = "all paths", "Z: only what changed"
		}
		if less := s.c.Narrowed(); less != "" {
			title += "  " + less
		}
		p.Box(lower, title, note, s.focus == listPane)
		if in := lower.Inset(1); !in.Empty() && s.pair != nil {
			s.drawList(p, in)
		}
	}
	if !upper.Empty() && !lower.Empty() {
		p.Highlight([...]widget.Rect{upper, lower}[s.focus])
	}
}

func (s *Screen) missing(p *widget.Painter) []string {
	if a := s.latest(); a != nil && a.problem != "" {
		return []string{a.problem, "t shows another event; backspace takes a transform off"}
	}
	return screen.Computing(p)
}

func (s *Screen) drawGraph(p *widget.Painter, in widget.Rect) {
	s.blocks = s.blocks[:0]
	if s.pair == nil {
		screen.DrawInstead(p, in, s.missing(p))
		return
	}
	if in.Dy() >= 5 {
		in.Max.Y--
		s.drawLegend(p, widget.Rect{Min: image.Pt(in.Min.X, in.Max.Y), Max: image.Pt(in.Max.X, in.Max.Y+1)})
		in.Max.Y--
		s.drawDetails(p, widget.Rect{Min: image.Pt(in.Min.X, in.Max.Y), Max: image.Pt(in.Max.X, in.Max.Y+1)})
	}
	s.graph = in
	root := int32(0)
	for i, path := range s.paths {
		if path == s.zoom && s.zoom != 0 {
			root = int32(i)
			break
		}
	}
	t := s.shape()
	if t.Weight(root) <= 0 {
		side := s.by.String()
		screen.DrawInstead(p, in, []string{side + " has nothing of " + s.pair.Nodes[root].Name, "M chooses other widths, esc all of the graph"})
		return
	}
	y := in.Min.Y
	var above []int32
	for n := t.Parent(root); n >= 0; n = t.Parent(n) {
		above = append(above, n)
	}
	for i := min(len(above), in.Dy()/3) - 1; i >= 0; i-- {
		s.drawBlock(p, pane.Block{Node: above[i], R: widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}})
		y++
	}
	deep, n := 0, s.at
	for ; n >= 0 && n != root; n = t.Parent(n) {
		deep++
	}
	if n < 0 {
		deep = 0
	}
	rows := in.Max.Y - y
	s.first = max(0, min(s.first, deep))
	if deep >= s.first+rows {
		s.first = deep - rows + 1
	}
	pane.Spread(t, root, widget.Rect{Min: image.Pt(in.Min.X, y), Max: in.Max}, in.Min.X, in.Max.X, -s.first, 1, func(b pane.Block) { s.drawBlock(p, b) })
}

// style is that of a node by its change.
func style(th *theme.Theme, n *stacks.PairNode) theme.Style {
	level := theme.ChangeLevel(n.Change())
	switch {
	case !n.Differs() || level == 0:
		return th.FlameIdle
	case n.Change() > 0:
		return th.More[level-1]
	}
	return th.Less[level-1]
}

// points is a change of share, with its sign, in percentage points.
func points(change float64) string {
	return strings.Replace(fmt.Sprintf("%+.1f", 100*change), "-", "−", 1)
}

// leastLabel is the room that a name which does not fit needs: with less it says nothing.
const leastLabel = 8

func (s *Screen) drawBlock(p *widget.Painter, b pane.Block) {
	s.blocks = append(s.blocks, b)
	n, th, r := &s.pair.Nodes[b.Node], p.Theme, b.R
	st := style(th, n)
	if re := s.c.Search.RE; re != nil {
		st = th.FlameIdle // changes would hide what was searched for
		if re.MatchString(n.Name) {
			st = th.Match
		}
	}
	mark := p.Glyphs.V
	if b.Node == s.at {
		st, mark = th.Selected, p.Glyphs.Pointer
		if s.focus != graphPane {
			st = th.SelectedIdle
		}
	}
	p.Fill(r, st)
	x, y := r.Min.X, r.Min.Y
	p.Cell(x, y, mark, st)
	room := r.Dx() - 1
	gone, _ := s.gone(b.Node)
	if (len(gone) > 0 || b.More) && r.Dx() >= 3 {
		room--
	}
	text := n.Name
	if n.Differs() {
		text = points(n.Change()) + " " + text // the sign says what the colour does
	}
	if p.Width(text) <= room || room >= leastLabel {
		x = p.Name(x+1, y, x+1+room, text, st)
	} else if room >= 1 && n.Differs() {
		sign := "+"
		if n.Change() < 0 {
			sign = "−"
		}
		x = p.Text(x+1, y, x+1+room, sign, st)
	}
	if th.Plain {
		for ; x < r.Min.X+1+room; x++ {
			p.Cell(x, y, p.Glyphs.Light, th.Dim)
		}
	}
	if r.Dx() < 3 {
		return
	}
	switch {
	case len(gone) > 0:
		level := th.Less[theme.ChangeLevels-1]
		if s.by == byA {
			level = th.More[theme.ChangeLevels-1]
		}
		p.Text(r.Max.X-1, y, r.Max.X, [...]string{"−", "+"}[s.by], level)
	case b.More:
		p.Mark(r.Max.X-1, y, p.Glyphs.More)
	}
}

// drawDetails says of the selected node what both sides have, and what of it the widths leave out.
func (s *Screen) drawDetails(p *widget.Painter, r widget.Rect) {
	n := &s.pair.Nodes[s.at]
	text := fmt.Sprintf("A %s  B %s  %s", format.Share(n.Share[0]), format.Share(n.Share[1]), change(n))
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X, text+"   ", p.Theme.Text)
	if gone, share := s.gone(s.at); len(gone) > 0 {
		word := "gone"
		if s.by == byA {
			word = "new"
		}
		more := fmt.Sprintf("   %s below: %s of %s in %s", word, format.Share(share), map[widths]string{byB: "A", byA: "B"}[s.by], format.Plural(uint64(len(gone)), "function"))
		if s.pair.Nodes[gone[0]].Name != "" {
			more += ", as " + s.pair.Nodes[gone[0]].Name
		}
		x = p.Name(x, r.Min.Y, max(x+leastLabel, r.Max.X-p.Width(more)), n.Name, p.Theme.Strong)
		p.Text(x, r.Min.Y, r.Max.X, more, p.Theme.Warn)
		return
	}
	p.Name(x, r.Min.Y, r.Max.X, n.Name, p.Theme.Strong)
}

// change is a node's change with its interval, or that it is within noise.
func change(n *stacks.PairNode) string {
	text := points(n.Change()) + " points"
	side, only := n.Only()
	switch {
	case n.Parent < 0:
		return ""
	case only && side == 1:
		text += ", new"
	case only:
		text += ", gone"
	}
	if n.Low == 0 && n.High == 0 {
		return text
	}
	text += fmt.Sprintf(" (%s to %s)", points(n.Low), points(n.High))
	if !n.Differs() {
		text += ": within noise"
	}
	return text
}

// drawLegend says what the colours mean.
func (s *Screen) drawLegend(p *widget.Painter, r widget.Rect) {
	th := p.Theme
	x := p.Text(r.Min.X+1, r.Min.Y, r.Max.X, "points of share  less in B ", th.Dim)
	for i := theme.ChangeLevels - 1; i >= 0; i-- {
		x = p.Text(x, r.Min.Y, r.Max.X, [...]string{" − ", " −1", " −4", "−16"}[i], th.Less[i])
	}
	x = p.Text(x, r.Min.Y, r.Max.X, " within noise ", th.FlameIdle)
	for i := range theme.ChangeLevels {
		x = p.Text(x, r.Min.Y, r.Max.X, [...]string{" + ", "+1 ", "+4 ", "+16"}[i], th.More[i])
	}
	x = p.Text(x, r.Min.Y, r.Max.X, " more in B", th.Dim)
	if s.by != byBoth {
		word := map[widths]string{byB: "   − at a block's end: gone below it", byA: "   + at a block's end: new below it"}[s.by]
		if x+p.Width(word) <= r.Max.X {
			p.Text(x, r.Min.Y, r.Max.X, word, th.Dim)
		}
	}
}

// The widths of the list's columns.
const (
	shareWidth  = 7 // "100.0% "
	changeWidth = 7 // "−12.3  "
	sureWidth   = 7 // "±12.3  "
)

func (s *Screen) drawList(p *widget.Painter, in widget.Rect) {
	th := p.Theme
	sure := in.Dx() >= 56
	if in.Dy() >= 4 {
		x := in.Min.X + 1
		for _, h := range []string{"A", "B", "B−A"} {
			p.Right(x, x+shareWidth-1, in.Min.Y, h, th.Dim)
			x += shareWidth
		}
		if sure {
			p.Right(x, x+sureWidth-1, in.Min.Y, "±95%", th.Dim)
			x += sureWidth
		}
		p.Text(x, in.Min.Y, in.Max.X, "function", th.Dim)
		in.Min.Y++
	}
	s.table = in
	s.list.Draw(in, func(i, y int) { s.drawRow(p, in, sure, i, y) })
	if len(s.rows) == 1 && in.Dy() > 1 {
		lines := s.c.Emptied("path")
		if lines == nil {
			lines = []string{"no path's share changed by more than the noise of sampling; Z lists all"}
		}
		in.Min.Y++
		screen.DrawInstead(p, in, lines)
	}
}

func (s *Screen) drawRow(p *widget.Painter, in widget.Rect, sure bool, i, y int) {
	th, n := p.Theme, &s.pair.Nodes[s.rows[i]]
	x := in.Min.X
	if i == s.list.Cursor {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, th.Strong)
	}
	x++
	for side := range 2 {
		p.Right(x, x+shareWidth-1, y, format.Share(n.Share[side]), th.Text)
		x += shareWidth
	}
	text, st := points(n.Change()), th.Dim
	if n.Differs() {
		st = style(th, n)
	}
	if n.Parent < 0 {
		text = ""
	}
	p.Right(x, x+changeWidth-1, y, text, st)
	x += changeWidth
	if sure {
		if n.Low != 0 || n.High != 0 {
			p.Right(x, x+sureWidth-1, y, fmt.Sprintf("±%.1f", 50*(n.High-n.Low)), th.Dim)
		}
		x += sureWidth
	}
	x += min(s.depths[i], max(2, (in.Max.X-x)/3))
	st = th.Text
	if s.c.Search.RE != nil && s.c.Search.RE.MatchString(n.Name) {
		st = th.Match
	}
	x = p.Name(x, y, in.Max.X, n.Name, st)
	if side, only := n.Only(); only {
		p.Text(x, y, in.Max.X, [...]string{"  gone", "  new"}[side], th.Warn)
	}
	if i == s.list.Cursor {
		st := th.Selected
		if s.focus != listPane {
			st = th.SelectedIdle
		}
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, st)
	}
}
