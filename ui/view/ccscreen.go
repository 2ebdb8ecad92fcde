package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/widget"
)

// CentreScreen is screen 4: cost centres, chosen and dropped on the finished
// log. Every sample belongs to one, so choosing never changes the total.
type CentreScreen struct {
	c       *Context
	choice  model.CentreChoice
	undo    []model.CentreChoice
	redo    []model.CentreChoice
	list    widget.List
	data    *model.CostCentres
	seen    centresSeen
	rows    []int // of data.Rows, as listed
	depth   []int
	cursor  string // name of the row under the cursor
	nonZero bool
	seek    bool // the cursor goes to the most expensive row once it is there
	inner   widget.Rect
}

// centresSeen is what rows was made from.
type centresSeen struct {
	data    *model.CostCentres
	sort    Sort
	minimum float64
	filter  Pattern
	nonZero bool
	base    float64
}

// NewCentreScreen gives screen 4 on a context: all top-level bindings of the
// program's own packages.
func NewCentreScreen(c *Context) *CentreScreen {
	s := &CentreScreen{c: c}
	s.choice = model.CentreChoice{On: true, Set: presetSet(centres.PresetBindings)}
	return s
}

func presetSet(p centres.Preset) string {
	return centres.Set{Patterns: []centres.Pattern{{Preset: p}}}.Format()
}

// Patterns are the chosen set's patterns, as typed.
func (s *CentreScreen) Patterns() string {
	lines := strings.Split(strings.TrimSpace(s.choice.Set), "\n")
	return strings.Join(lines[1:], ",")
}

// ParsePatterns reads what Patterns gives: patterns with commas in between.
func ParsePatterns(text string) (centres.Set, error) {
	var set centres.Set
	for item := range strings.SplitSeq(text, ",") {
		p, err := centres.ParsePattern(item)
		if err != nil {
			return set, err
		}
		set.Patterns = append(set.Patterns, p)
	}
	return set, nil
}

// Choose makes a set the chosen one.
func (s *CentreScreen) Choose(set centres.Set) {
	s.change(model.CentreChoice{On: true, Mode: s.choice.Mode, Set: set.Format()})
}

// Choice is what is chosen.
func (s *CentreScreen) Choice() model.CentreChoice { return s.choice }

func (s *CentreScreen) change(to model.CentreChoice) {
	if to != s.choice {
		s.undo, s.redo = append(s.undo, s.choice), nil
		s.choice = to
	}
}

// step goes through the history of choices; false if there is nothing there.
func (s *CentreScreen) step(from, to *[]model.CentreChoice) bool {
	n := len(*from)
	if n == 0 {
		return false
	}
	*to = append(*to, s.choice)
	s.choice, *from = (*from)[n-1], (*from)[:n-1]
	return true
}

// CanUndo reports whether Do(keymap.Undo) goes back a choice; CanRedo, forward.
func (s *CentreScreen) CanUndo() bool { return len(s.undo) > 0 }

// CanRedo see CanUndo.
func (s *CentreScreen) CanRedo() bool { return len(s.redo) > 0 }

// refresh lists what is to be listed and keeps the cursor on its centre.
func (s *CentreScreen) refresh() {
	now := centresSeen{s.c.Data.Centres, s.c.Sort, s.c.Minimum, s.c.Filter, s.nonZero, s.c.Base}
	if now == s.seen || now.data == nil {
		return
	}
	s.seen, s.data = now, now.data
	s.relist()
	if s.seek && s.data.Choice == s.choice {
		s.seek = false
		s.goTo(s.data.Expensive)
		return
	}
	for i, r := range s.rows {
		if s.data.Rows[r].Name == s.cursor {
			s.list.Set(i)
			return
		}
	}
	s.list.Set(s.list.Cursor)
	s.note()
}

// wanted reports whether a row passes what filters lists.
func (s *CentreScreen) wanted(r *model.CentreRow) bool {
	switch {
	case s.nonZero && r.Individual == 0:
		return false
	case max(r.Individual, r.Before)*s.c.Base < s.c.Minimum:
		return false
	}
	return s.c.Filter.Match(r.Name)
}

func (s *CentreScreen) relist() {
	rows := s.data.Rows
	s.rows, s.depth = s.rows[:0], make([]int, len(rows))
	if s.data.Choice.Mode.Stacks() {
		// Of stacks without weight of their own those that several stand on.
		shown := make([]bool, len(rows))
		for i := range rows {
			r := &rows[i]
			shown[i] = s.wanted(r) && (r.Individual > 0 || r.Kids > 1 || !r.Chosen && !r.Pseudo)
			if r.Parent >= 0 {
				s.depth[i] = s.depth[r.Parent]
				if shown[r.Parent] {
					s.depth[i]++
				}
			}
			if shown[i] {
				s.rows = append(s.rows, i)
			}
		}
	} else {
		for i := range rows {
			if s.wanted(&rows[i]) {
				s.rows = append(s.rows, i)
			}
		}
		slices.SortStableFunc(s.rows, func(a, b int) int { return s.order(&rows[a], &rows[b]) })
	}
	s.list.N = len(s.rows)
}

// order puts a dropped centre where its own cost would have it.
func (s *CentreScreen) order(a, b *model.CentreRow) int {
	key := func(r *model.CentreRow) float64 {
		switch {
		case s.c.Sort == ByName:
			return 0
		case s.c.Sort == ByInclusive:
			return max(r.Inherited, r.Before)
		case s.c.Sort == ByOnly || !r.Chosen && !r.Pseudo:
			return r.Before
		}
		return r.Individual
	}
	return cmp.Or(cmp.Compare(key(b), key(a)), cmp.Compare(a.Name, b.Name))
}

func (s *CentreScreen) row() *model.CentreRow {
	if s.data == nil || s.list.Cursor >= len(s.rows) {
		return nil
	}
	return &s.data.Rows[s.rows[s.list.Cursor]]
}

func (s *CentreScreen) note() {
	if r := s.row(); r != nil {
		s.cursor = r.Name
		if r.File != 0 && r.Line > 0 {
			s.c.File, s.c.Line = r.File, r.Line // so that screen 2 shows it
		}
	}
}

// goTo puts the cursor on a row, and says whether it is listed.
func (s *CentreScreen) goTo(row int) bool {
	if i := slices.Index(s.rows, row); i >= 0 {
		s.list.Set(i)
		s.note()
		return true
	}
	return false
}

// Why implements Screen.
func (s *CentreScreen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane, keymap.Zoom:
		return "this screen has one pane"
	case keymap.Invert, keymap.Sandwich:
		return "this turns the call tree; 3 shows it"
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight, keymap.Bookmark, keymap.NextBookmark:
		return "the timeline is on the main screen; 1 goes there"
	case keymap.Sort:
		if s.choice.Mode.Stacks() {
			return "stacks are by what they inherit; M goes to the modes without stacks"
		}
	case keymap.Mark, keymap.OnlyThis, keymap.ZoomIn, keymap.ZoomOut:
		switch r := s.row(); {
		case r == nil:
			return "no cost centre is listed"
		case r.Pseudo:
			return r.Name + " is what no chosen centre has; it cannot be dropped"
		}
	case keymap.InvertSet:
		if s.data == nil || len(s.data.All) == 0 {
			return "no cost centre is listed"
		}
	case keymap.Open:
		if r := s.row(); r == nil || r.File == 0 {
			return "no source is known of this cost centre"
		}
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		if r := s.row(); r == nil || r.Pseudo {
			return "select a cost centre first"
		}
	}
	return ""
}

// Do implements Screen.
func (s *CentreScreen) Do(a keymap.Action) string {
	s.refresh()
	if a != keymap.Mark && moveList(&s.list, a) {
		s.note()
		return ""
	}
	switch a {
	case keymap.Mode:
		return s.nextMode()
	case keymap.NonZero:
		if s.nonZero = !s.nonZero; s.nonZero {
			return "only rows with a cost of their own"
		}
		return "all rows"
	case keymap.Undo:
		s.step(&s.undo, &s.redo)
		return ""
	case keymap.Redo:
		s.step(&s.redo, &s.undo)
		return ""
	case keymap.Expensive:
		return s.expensive()
	case keymap.InvertSet:
		dropped := s.choice.IsDropped()
		inverse := make(map[string]bool)
		for _, name := range s.data.All {
			if !dropped[name] {
				inverse[name] = true
			}
		}
		s.change(s.choice.Drop(inverse))
		return ""
	}
	r := s.row()
	if r == nil {
		return ""
	}
	dropped := s.choice.IsDropped()
	switch a {
	case keymap.Open:
		s.c.Goto = keymap.Screen2
	case keymap.Mark:
		if dropped[r.Name] {
			delete(dropped, r.Name)
		} else {
			dropped[r.Name] = true
		}
		s.change(s.choice.Drop(dropped))
	case keymap.OnlyThis:
		dropped = make(map[string]bool)
		for _, name := range s.data.All {
			dropped[name] = name != r.Name
		}
		delete(dropped, r.Name)
		s.change(s.choice.Drop(dropped))
	case keymap.ZoomIn, keymap.ZoomOut:
		for _, name := range s.subtree() {
			if a == keymap.ZoomIn {
				delete(dropped, name)
			} else {
				dropped[name] = true
			}
		}
		s.change(s.choice.Drop(dropped))
	}
	return ""
}

// subtree are the centres that stand on the row's, itself among them; in modes
// without stacks those of its module.
func (s *CentreScreen) subtree() []string {
	at := s.rows[s.list.Cursor]
	r := &s.data.Rows[at]
	names := []string{r.Name}
	in := map[int]bool{at: true}
	for i := range s.data.Rows {
		o := &s.data.Rows[i]
		switch {
		case o.Pseudo:
		case s.choice.Mode.Stacks():
			if in[o.Parent] {
				in[i] = true
				names = append(names, o.Name)
			}
		case o.Module == r.Module && o.Package == r.Package:
			names = append(names, o.Name)
		}
	}
	return names
}

func (s *CentreScreen) nextMode() string {
	next := s.choice
	for range 4 {
		next.Mode = (next.Mode + 1) % (centres.ModeExact + 1)
		if next.Mode != centres.ModeExact || s.c.Profile.HasCostCentreStacks() {
			break
		}
	}
	s.change(next)
	return "mode: " + next.Mode.String() + ", " + modeText[next.Mode]
}

var modeText = [...]string{
	centres.ModeLexical:    "the innermost centre around the code, else the caller's",
	centres.ModeEvaluation: "the nearest procedure on the stack that is a centre",
	centres.ModeStacks:     "which centre on behalf of which",
	centres.ModeExact:      "the stacks that the -prof program kept itself",
}

func (s *CentreScreen) expensive() string {
	if !s.choice.Mode.Stacks() {
		to := s.choice
		to.Mode = centres.ModeStacks
		s.change(to)
		s.seek = true
		return "the most expensive cost-centre stack"
	}
	if s.data == nil || !s.goTo(s.data.Expensive) {
		return "the most expensive stack is not listed; & and L leave rows out"
	}
	return ""
}

// Back implements Screen.
func (s *CentreScreen) Back() bool { return false }

// Mouse implements Screen.
func (s *CentreScreen) Mouse(m Mouse) string {
	at := s.list.Cursor
	pressed := mouseList(&s.list, s.inner, m)
	s.note()
	onMark := m.X < s.inner.Min.X+markCell
	if pressed && (onMark || m.Double && s.list.Cursor == at) && s.Why(keymap.Mark) == "" {
		return s.Do(keymap.Mark)
	}
	return ""
}

// Find implements Screen.
func (s *CentreScreen) Find(p *Pattern, by int) bool {
	s.refresh()
	if p.RE == nil || len(s.rows) == 0 {
		return false
	}
	at, stepBy := s.list.Cursor+by, by
	if by == 0 {
		stepBy = 1
	}
	for range s.rows {
		i := ((at % len(s.rows)) + len(s.rows)) % len(s.rows)
		if p.RE.MatchString(s.data.Rows[s.rows[i]].Name) {
			s.list.Set(i)
			s.note()
			return true
		}
		at += stepBy
	}
	return false
}

// Subject implements Screen.
func (s *CentreScreen) Subject() Subject {
	r := s.row()
	if r == nil {
		return Subject{Key: model.NoKey}
	}
	out := Subject{Key: model.NoKey, Path: r.Path, Line: r.Line}
	out.Row = fmt.Sprintf("%s\t%s\t%s", format.Share(r.Individual*s.c.Base), format.Share(r.Inherited*s.c.Base), r.Name)
	if !r.Pseudo {
		out.Name, out.Module, out.Package = r.Name, r.Module, r.Package
		switch r.Level {
		case profile.LevelModule, profile.LevelPackage:
			out.Level = r.Level
		default:
			out.Function = r.Level == profile.LevelBinding
		}
	}
	return out
}

// Needs implements Screen.
func (s *CentreScreen) Needs(n *model.Need) { n.Centres = s.choice }

// Draw implements Screen; see ccdraw.go.
func (s *CentreScreen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	s.draw(p, f.Body)
}
