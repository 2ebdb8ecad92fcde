package code

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/machinecode"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Code, Tab: "Code", New: newScreen,
	Keys: keymap.Screen{
		Help: "machine code of the selected function, with its samples", Steps: true,
		Notes: []keymap.Note{{Action: keymap.Open, Help: "of an instruction: the source line of its block"}},
	},
	Off: func(c *screen.Context) string {
		if why := c.WhyNoSamples(); why != "" {
			return why
		}
		if len(c.Profile.Modules) == 0 {
			return "the log does not say which files had the code that ran"
		}
		return ""
	},
}

// Screen is a function's instructions with their samples, between them lines of source.
type Screen struct {
	c       *screen.Context
	list    widget.List
	rows    []row
	hottest []int // rows by falling weight
	seen    *answer
	left    *answer     // what rows were made from before another screen's answer came
	leftAt  int         // the cursor's row then
	at      uint64      // address under the cursor
	fresh   bool        // the rows are new, and the cursor's is to be in the middle
	inner   widget.Rect // as last drawn
}

// row is a line of the list: a piece's heading, a source line, or an instruction.
type row struct {
	kind rowKind
	of   *machinecode.Range
	line *machinecode.Line // nil of a heading
}

type rowKind uint8

const (
	rowPiece rowKind = iota
	rowSource
	rowInstruction
)

func newScreen(c *screen.Context) screen.Screen { return &Screen{c: c} }

// part is whose code is wanted. A sealed viewer opens no file that a log names.
type part struct {
	name   string
	sealed string
}

// answer is the code, or why there is none.
type answer struct {
	name    string
	listing *machinecode.Listing
	problem string
}

// Compute implements model.Part; it gives an *answer.
func (w part) Compute(in *model.Input) (any, error) {
	type key struct {
		model.Samples
		part
	}
	return model.Recall(in.Engine, key{in.Samples, w}, func() *answer { return w.of(in.Selection) }), nil
}

func (w part) of(s *profile.Selection) *answer {
	out := &answer{name: w.name}
	if w.name == "" {
		return out
	}
	open := machinecode.OnDisk("")
	if w.sealed != "" {
		open = machinecode.Closed(w.sealed)
	}
	l, err := machinecode.Of(s, w.name, open)
	var lookup *machinecode.LookupError
	switch {
	case errors.As(err, &lookup):
		out.problem = "no sample that is kept is in machine code of " + w.name + ": the kernel's is in no file, and a function may have samples in its callees alone"
	case err != nil:
		out.problem = err.Error()
	default:
		out.listing = l
	}
	return out
}

func (s *Screen) answer() *answer { return screen.Part[answer](s.c) }

// refresh makes the rows of a new answer. The cursor stays at its address, or goes to the hottest
// instruction of what is new.
func (s *Screen) refresh() {
	a := s.answer()
	if a == s.seen {
		return
	}
	if a == nil {
		s.left, s.leftAt = s.seen, s.list.Cursor
	}
	was := s.seen
	if was == nil {
		was = s.left
	}
	s.seen, s.rows, s.hottest, s.list.N = a, nil, nil, 0
	if a == nil || a.listing == nil {
		return
	}
	for i := range a.listing.Ranges {
		r := &a.listing.Ranges[i]
		s.rows = append(s.rows, row{rowPiece, r, nil})
		file, number := "", uint32(0)
		source := func(l *machinecode.Line) {
			if l.File != "" && (l.File != file || l.Row != number) {
				file, number = l.File, l.Row
				s.rows = append(s.rows, row{rowSource, r, l})
			}
		}
		if !r.Guessed { // a block has one line, which is known where it has samples
			if j := slices.IndexFunc(r.Lines, func(l machinecode.Line) bool { return l.File != "" }); j >= 0 {
				source(&r.Lines[j])
			}
		}
		for j := range r.Lines {
			l := &r.Lines[j]
			source(l)
			if l.Samples > 0 {
				s.hottest = append(s.hottest, len(s.rows))
			}
			s.rows = append(s.rows, row{rowInstruction, r, l})
		}
	}
	slices.SortStableFunc(s.hottest, func(a, b int) int { return cmp.Compare(s.rows[b].line.Weight, s.rows[a].line.Weight) })
	s.list.N = len(s.rows)
	if was == a {
		s.list.Set(s.leftAt)
		return
	}
	if was != nil && was.name == a.name {
		for i := range s.rows {
			if s.rows[i].kind == rowInstruction && s.rows[i].line.Addr == s.at {
				s.list.Set(i)
				return
			}
		}
	}
	s.list.Set(0)
	s.hotter(0)
	s.fresh = true
}

// hotter moves to an instruction by falling weight: the first with by 0, else the next or the one before.
func (s *Screen) hotter(by int) bool {
	n := len(s.hottest)
	if n == 0 {
		return false
	}
	at := slices.Index(s.hottest, s.list.Cursor)
	switch {
	case by == 0:
		at = 0
	case at < 0 && by < 0:
		at = n - 1
	default:
		at = (at + by + n) % n
	}
	s.list.Set(s.hottest[at])
	s.note()
	return true
}

func (s *Screen) note() {
	if r := s.row(); r != nil && r.kind == rowInstruction {
		s.at = r.line.Addr
	}
}

// row is the row under the cursor; nil if there is none.
func (s *Screen) row() *row {
	if s.list.Cursor < len(s.rows) {
		return &s.rows[s.list.Cursor]
	}
	return nil
}

// place names a source line.
func place(l *machinecode.Line) string { return fmt.Sprintf("%s:%d", printer.Fit(l.File, 0), l.Row) }

// end is where a piece ends.
func end(r *machinecode.Range) string {
	if r.Guessed {
		return "…" // where it ends is not known
	}
	return fmt.Sprintf("%#x", r.Hi)
}

// text is a row as text, for searching and copying.
func (s *Screen) text(r *row) string {
	switch r.kind {
	case rowPiece:
		return fmt.Sprintf("%s  %s  %#x-%s in %s", format.Share(r.of.Share*s.c.Base), r.of.Procedure, r.of.Lo, end(r.of), filepath.Base(r.of.Path))
	case rowSource:
		return strings.TrimSpace(place(r.line) + "  " + r.line.Source)
	}
	return fmt.Sprintf("%x  %s", r.line.Addr, instruction(r.line))
}

// instruction is an instruction's text; that there is none is said for the whole listing.
func instruction(l *machinecode.Line) string {
	if l.Text == "" {
		return "?"
	}
	return l.Text
}

// source is the row's line of source; nil if it has none.
func (r *row) source() *machinecode.Line {
	if r == nil || r.line == nil || r.line.File == "" {
		return nil
	}
	return r.line
}

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.Query(part{s.c.CodeName(), s.c.Sealed}) }

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane, keymap.Left, keymap.Right, keymap.Zoom:
		return "there is one list: j and k move in it, n and N step through the hottest instructions"
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
		keymap.Bookmark, keymap.NextBookmark:
		return s.c.WhyNoTimeline()
	case keymap.Invert, keymap.Sandwich:
		return "inverting turns the call tree; " + s.c.Key(screen.Stacks) + " shows it"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		return "this acts on elements; " + s.c.Key(screen.Hot) + " goes to the hot list"
	case keymap.Sort, keymap.Minimum, keymap.Filter:
		return "instructions stand as they lie in memory; / searches them"
	case keymap.Open:
		if s.row().source() == nil {
			return "this row's source line is not known"
		}
	}
	return ""
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	if a == keymap.Open {
		l := s.row().source()
		s.c.File, s.c.Line, s.c.Goto = l.FileID, int(l.Row), screen.Source
		return ""
	}
	if screen.MoveList(&s.list, a) {
		s.note()
	}
	return ""
}

// Back implements Screen.
func (s *Screen) Back() bool { return false }

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	s.refresh()
	screen.MouseRows(s, &s.list, s.inner, m, s.note)
}

// Find implements Screen. Without a search, n and N step through the hottest instructions.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	if p.RE == nil {
		return s.hotter(by)
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(s.text(&s.rows[i])) }, s.note)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	out := screen.Subject{Key: model.NoKey}
	r := s.row()
	if r == nil {
		return out
	}
	out.Row = s.text(r)
	if r.kind == rowInstruction && r.line.Samples > 0 {
		out.Row = format.Share(r.line.Share*s.c.Base) + "  " + out.Row
	}
	if l := r.source(); l != nil {
		out.Path, out.Line = l.File, int(l.Row)
	}
	return out
}

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	w := part{s.c.CodeName(), s.c.Sealed}
	if w.name == "" {
		return nil, errors.New("no function is selected")
	}
	return func(sel *profile.Selection) (printer.Report, error) {
		a := w.of(sel)
		if a.listing == nil {
			return nil, errors.New(a.problem)
		}
		return Report{Listing: a.listing, All: true}, nil
	}, nil
}
