package diff

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile/diff"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// The widths of the columns, each with the space before it.
const (
	diffFigure  = 10
	diffRatio   = 9
	diffP       = 8
	diffVerdict = 9
	diffBar     = 10
	detailRows  = 5 // with the border
)

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	r := s.result()
	title, note := s.title(r)
	box, detail := f.Body, f.Body
	if !s.zoomed && !f.Small && f.Body.Dy() >= 16 && r != nil {
		detail.Min.Y = detail.Max.Y - detailRows - 1
		box.Max.Y = detail.Min.Y + 1
	} else {
		detail.Min.Y = detail.Max.Y
	}
	p.Box(box, title, note, true)
	in := box.Inset(1)
	if in.Empty() {
		return
	}
	t := p.Theme
	if r == nil {
		screen.DrawInstead(p, in, s.missing(p))
		return
	}
	y := in.Min.Y
	for _, l := range s.heads(p, r, in.Dx()-2) {
		if in.Max.Y-y > 4 {
			p.Text(in.Min.X+1, y, in.Max.X, l, t.Text)
			y++
		}
	}
	cols := s.columns(r, in.Dx())
	foot := s.explain(p, r, cols, in.Dx()-2)
	if n := in.Max.Y - y - 6; n < len(foot) {
		foot = foot[:max(0, n)]
	}
	if in.Max.Y-y >= 3 {
		s.header(p, in, cols, y)
		y++
	}
	rows := in
	rows.Min.Y, rows.Max.Y = y, in.Max.Y-len(foot)
	s.inner = rows
	if len(s.rows) == 0 {
		s.empty(p, r, rows)
	}
	scale := 0.0
	for _, i := range s.rows {
		scale = max(scale, math.Abs(r.Rows[i].Delta))
	}
	s.list.Draw(rows, func(i, y int) { s.drawRow(p, r, rows, cols, scale, i, y) })
	for i, l := range foot {
		p.Text(in.Min.X+1, rows.Max.Y+i, in.Max.X, l, t.Dim)
	}
	if !detail.Empty() {
		s.drawRuns(p, r, detail)
	}
}

func (s *Screen) missing(p *widget.Painter) []string {
	d := s.latest()
	switch {
	case d == nil:
		return screen.Computing(p)
	case d.Problem != "":
		return []string{d.Problem, "t shows another event; backspace takes a transform off"}
	}
	return []string{"nothing to compare"}
}

// heads are the lines above the table: the sides, and all samples.
func (s *Screen) heads(p *widget.Painter, r *diff.Result, w int) []string {
	side := func(name string, runs []*diff.Run) string {
		out := name + " " + filepath.Base(runs[0].Name)
		if len(runs) > 1 {
			out += fmt.Sprintf(" and %d more", len(runs)-1)
		}
		return out
	}
	t := &r.Total
	unit := r.A[0].Unit
	total := fmt.Sprintf("total %s → %s  %s", Figure(t.A.Mean, diff.None, unit), Figure(t.B.Mean, diff.None, unit), Relative(t))
	if r.Method != diff.NoTest {
		total += fmt.Sprintf("  p=%s %s", PValue(t.P), t.Verdict)
	} else {
		total += "  n=1: no test"
	}
	sides := side("A", r.A) + "   " + side("B", r.B)
	if p.Width(sides)+4+p.Width(total) <= w {
		return []string{sides + "    " + total}
	}
	return []string{sides, total}
}

// explain is what the figures rest on, in lines of at most w columns.
func (s *Screen) explain(p *widget.Painter, r *diff.Result, cols diffColumns, w int) []string {
	n := fmt.Sprintf("n=%d+%d: ", len(r.A), len(r.B))
	half := ""
	if cols.half {
		half = " ± leaves out 0 where there is a verdict."
	}
	switch r.Method {
	case diff.NoTest:
		if half != "" {
			half = ": ± is the noise of sampling alone"
		}
		return screen.Wrap(p, n+"no test. One run does not show how runs differ"+half+".", w)
	case diff.WelchHolm:
		n += "Welch's t (4+4 runs: a permutation test)"
	default:
		n += fmt.Sprintf("%s test, %s ways", r.Method, format.Count(uint64(r.Dealings)))
	}
	return screen.Wrap(p, fmt.Sprintf("%s; that nothing differs: p %s; adjusted for %d elements: any false verdict in %g%% of comparisons.%s",
		n, PValue(r.Whole), r.Tested, 100*r.Options.Alpha, half), w)
}

type diffColumns struct {
	half, p, verdict, bar bool
	name                  int // where names begin, from the left
}

func (s *Screen) columns(r *diff.Result, w int) diffColumns {
	var c diffColumns
	used := 1 + 3*diffFigure + diffRatio
	fits := func(n int, name int) bool {
		if used+n+name > w {
			return false
		}
		used += n
		return true
	}
	if r.Method != diff.NoTest {
		c.verdict = fits(diffVerdict, 18)
		c.p = c.verdict && fits(diffP, 18)
	}
	c.half = fits(diffFigure, 28)
	c.bar = fits(diffBar, 32)
	c.name = used + 1
	return c
}

func (s *Screen) header(p *widget.Painter, in widget.Rect, c diffColumns, y int) {
	t := p.Theme
	x := in.Min.X + 1
	right := func(label string, w int) {
		p.Right(x, x+w, y, label, t.Dim)
		x += w
	}
	right("A", diffFigure-1)
	right("B", diffFigure)
	right("B-A", diffFigure)
	right("", diffRatio)
	if c.half {
		right("±95%", diffFigure)
	}
	if c.p {
		right("p", diffP)
	}
	if c.verdict {
		p.Text(x+1, y, in.Max.X, "verdict", t.Dim)
	}
	p.Text(in.Min.X+c.name, y, in.Max.X, s.choice.Level.String(), t.Dim)
}

func (s *Screen) drawRow(p *widget.Painter, r *diff.Result, in widget.Rect, c diffColumns, scale float64, i, y int) {
	row := &r.Rows[s.rows[i]]
	t := p.Theme
	unit, norm := r.A[0].Unit, r.Options.Normalise
	selected := i == s.list.Cursor
	x := in.Min.X
	if selected {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	x++
	right := func(label string, w int, st theme.Style) {
		p.Right(x, x+w, y, label, st)
		x += w
	}
	st := t.Text
	switch row.Verdict {
	case diff.Slower, diff.More:
		st = t.Error
	case diff.Faster, diff.Less:
		st = t.Run
	}
	right(Figure(row.A.Mean, norm, unit), diffFigure-1, t.Text)
	right(Figure(row.B.Mean, norm, unit), diffFigure, t.Text)
	right(Change(row.Delta, norm, unit), diffFigure, st)
	right(Relative(row), diffRatio, st)
	if c.half {
		right("±"+strings.TrimPrefix(Change((row.High-row.Low)/2, norm, unit), "+"), diffFigure, t.Dim)
	}
	if c.p {
		right(PValue(row.Adjusted), diffP, t.Dim)
	}
	if c.verdict {
		word, ws := string(row.Verdict), st
		switch row.Verdict {
		case diff.Same:
			word, ws = "~", t.Dim
		case diff.Small:
			word, ws = "small", t.Dim
		}
		p.Text(x+1, y, x+diffVerdict, word, ws)
		x += diffVerdict
	}
	if c.bar && scale > 0 {
		glyph := ">"
		if row.Delta < 0 {
			glyph = "<"
		}
		cells := int(math.Round(math.Abs(row.Delta) / scale * (diffBar - 2)))
		for k := range cells {
			p.Cell(x+1+k, y, glyph, st)
		}
	}
	name := t.Text
	if row.Kind == "category" {
		name = t.Dim
	}
	if s.c.Search.RE != nil && s.c.Search.RE.MatchString(row.Name) {
		name = t.Match
	}
	x = p.Name(in.Min.X+c.name, y, in.Max.X, row.Name, name)
	switch {
	case !row.InA:
		p.Text(x, y, in.Max.X, "  only in B", t.Dim)
	case !row.InB:
		p.Text(x, y, in.Max.X, "  only in A", t.Dim)
	}
	if selected {
		line := in
		line.Min.Y, line.Max.Y = y, y+1
		p.Tint(line, t.Selected)
	}
}

func (s *Screen) empty(p *widget.Painter, r *diff.Result, in widget.Rect) {
	lines := s.c.Emptied("element")
	switch {
	case len(r.Rows) == 0:
		lines = []string{"no sample is left on either side", "backspace takes the last transform off, t shows the next event"}
	case lines != nil:
	case s.all || r.Method == diff.NoTest:
		lines = []string{"no element differs"}
	default:
		lines = []string{"no element differs significantly", "Z lists all of them"}
	}
	screen.DrawInstead(p, in, lines)
}

// drawRuns draws the selected element's runs as points on one scale.
func (s *Screen) drawRuns(p *widget.Painter, r *diff.Result, box widget.Rect) {
	row := s.row()
	if row == nil {
		p.Box(box, "runs", "", false)
		return
	}
	p.Box(box, "runs of "+row.Name, "", false)
	in := box.Inset(1)
	t := p.Theme
	unit, norm := r.A[0].Unit, r.Options.Normalise
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range append(append([]float64(nil), row.A.Runs...), row.B.Runs...) {
		low, high = min(low, v), max(high, v)
	}
	const label, figures = 3, 24
	strip := in
	strip.Min.X, strip.Max.X = in.Min.X+label, max(in.Min.X+label, in.Max.X-figures)
	side := func(y int, name string, v diff.Side, st theme.Style) {
		p.Text(in.Min.X+1, y, in.Max.X, name, t.Dim)
		counts := make([]int, max(1, strip.Dx()))
		for _, x := range v.Runs {
			at := 0
			if high > low {
				at = int((x - low) / (high - low) * float64(len(counts)-1))
			}
			counts[at]++
		}
		for i, n := range counts {
			switch {
			case n == 1:
				p.Cell(strip.Min.X+i, y, "o", st)
			case n > 9:
				p.Cell(strip.Min.X+i, y, "+", st)
			case n > 1:
				p.Cell(strip.Min.X+i, y, fmt.Sprint(n), st)
			}
		}
		note := fmt.Sprintf("mean %s", Figure(v.Mean, norm, unit))
		p.Text(strip.Max.X+1, y, in.Max.X, note, t.Text)
	}
	side(in.Min.Y, "A", row.A, t.Only)
	side(in.Min.Y+1, "B", row.B, t.Link)
	p.Text(strip.Min.X, in.Min.Y+2, strip.Max.X, Figure(low, norm, unit), t.Dim)
	p.Right(strip.Min.X, strip.Max.X, in.Min.Y+2, Figure(high, norm, unit), t.Dim)
	change := fmt.Sprintf("B-A %s (%s)", Change(row.Delta, norm, unit), Relative(row))
	interval := fmt.Sprintf(", 95%% from %s to %s", Change(row.Low, norm, unit), Change(row.High, norm, unit))
	verdict := ", of sampling alone"
	if !math.IsNaN(row.P) {
		verdict = fmt.Sprintf("; p %s for itself, %s among %d", PValue(row.P), PValue(row.Adjusted), r.Tested)
		if row.Verdict == diff.Moved {
			verdict = "; moved within " + row.Caller + verdict
		}
	} else if row.Verdict == diff.Small {
		verdict = "; too small to be tested"
	}
	about := change + interval + verdict
	if p.Width(about) > in.Dx()-2 && verdict[0] == ';' {
		about = change + verdict
	}
	p.Text(in.Min.X+1, in.Min.Y+3, in.Max.X, about, t.Text)
}
