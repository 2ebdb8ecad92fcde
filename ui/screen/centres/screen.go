// Package centres is the screen of cost centres, chosen and dropped on the finished log.
package centres

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Centres, Tab: "CC", New: newScreen, Endings: []string{".prof", ".dot", ".svg"},
	Off: (*screen.Context).WhyNoSamples,
	Keys: keymap.Screen{
		Help: "cost centres, chosen after the run",
		Section: keymap.Section{Group: "Cost centres", Bindings: []keymap.Binding{
			{Action: Choose, Keys: []string{"C"}, Show: "C", Short: "centres", Help: "choose by globs or presets: Main.load*, module:Data.*, @modules"},
			{Action: OnlyThis, Keys: []string{"*"}, Show: "*", Help: "only this centre; all others are dropped"},
			{Action: InvertSet, Keys: []string{"~"}, Show: "~", Help: "choose what is dropped, and drop what is chosen"},
			{Action: keymap.NonZero, Keys: []string{"Z"}, Show: "Z", Help: "only rows with a cost of their own, or all"},
			{Action: Expensive, Keys: []string{"x"}, Show: "x", Help: "to the most expensive cost-centre stack"},
			{Action: SaveSet, Keys: []string{"w"}, Show: "w", Help: "write the chosen centres to a file for ccview ccs --set"},
		}},
		Does: []keymap.Action{keymap.Mode, keymap.Undo, keymap.Redo},
		Notes: []keymap.Note{
			{Action: keymap.Mode, Help: "of cost centres: lexical, evaluation, stacks, exact"},
			{Action: keymap.Mark, Help: "on cost centres: choose the row's centre, or drop it"},
			{Action: keymap.ZoomIn, Help: "on cost centres: choose all that stand on the row, or its module"},
			{Action: keymap.ZoomOut, Help: "on cost centres: drop them"},
			{Action: keymap.Export, Help: "of cost centres .prof, .dot, .svg"},
		},
	},
}

// The screen's own actions.
const (
	Choose    keymap.Action = "choose-centres"
	OnlyThis  keymap.Action = "only-this-centre"
	InvertSet keymap.Action = "invert-centres"
	Expensive keymap.Action = "most-expensive"
	SaveSet   keymap.Action = "save-centres"
)

// Screen is cost centres, chosen and dropped on the finished
// log. Every sample belongs to one, so choosing never changes the total.
type Screen struct {
	c       *screen.Context
	choice  Choice
	undo    []Choice
	redo    []Choice
	list    widget.List
	data    *CostCentres
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
	data    *CostCentres
	sort    screen.Sort
	minimum float64
	filter  screen.Pattern
	nonZero bool
	base    float64
}

// newScreen begins with all top-level bindings of the program's own packages.
func newScreen(c *screen.Context) screen.Screen {
	s := &Screen{c: c}
	s.choice = Choice{Set: presetSet(centres.PresetBindings)}
	return s
}

func presetSet(p centres.Preset) string {
	return centres.Set{Patterns: []centres.Pattern{{Preset: p}}}.Format()
}

// patterns are the chosen set's patterns, as typed.
func (s *Screen) patterns() string {
	lines := strings.Split(strings.TrimSpace(s.choice.Set), "\n")
	return strings.Join(lines[1:], ",")
}

// parsePatterns reads what patterns gives: patterns with commas in between.
func parsePatterns(text string) (centres.Set, error) {
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

// ask asks for other centres.
func (s *Screen) ask() *screen.Prompt {
	return &screen.Prompt{
		Label: "centres: ", Hint: "globs or presets with commas: @bindings @modules @packages Main.load*,module:Data.*", Value: s.patterns(),
		Check: func(text string) error {
			_, err := parsePatterns(text)
			return err
		},
		Accept: func(text string) (string, error) {
			set, err := parsePatterns(text)
			if err == nil {
				s.change(Choice{Mode: s.choice.Mode, Set: set.Format()})
			}
			return "", nil
		},
	}
}

// save asks for a file to write the chosen centres to.
func (s *Screen) save() *screen.Prompt {
	return &screen.Prompt{
		Label: "write centres to ", Hint: "a file; ccview ccs --set reads it", Value: "centres.ccs",
		Accept: func(path string) (string, error) {
			text, err := s.choice.SetFile(s.c.Profile)
			if err == nil {
				err = screen.WriteNew(path, []byte(text))
			}
			if err != nil {
				return "", fmt.Errorf("write centres: %w", err)
			}
			return "centres written to " + path, nil
		},
	}
}

// latest is the latest answer; nil until there is one.
func (s *Screen) latest() *CostCentres { return screen.Part[CostCentres](s.c) }

func (s *Screen) change(to Choice) {
	if to != s.choice {
		s.undo, s.redo = append(s.undo, s.choice), nil
		s.choice = to
	}
}

// step goes through the history of choices; false if there is nothing there.
func (s *Screen) step(from, to *[]Choice) bool {
	n := len(*from)
	if n == 0 {
		return false
	}
	*to = append(*to, s.choice)
	s.choice, *from = (*from)[n-1], (*from)[:n-1]
	return true
}

// refresh lists what is to be listed and keeps the cursor on its centre.
func (s *Screen) refresh() {
	now := centresSeen{s.latest(), s.c.Sort, s.c.Minimum, s.c.Filter, s.nonZero, s.c.Base}
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
func (s *Screen) wanted(r *CentreRow) bool {
	switch {
	case s.nonZero && r.Individual == 0:
		return false
	case max(r.Individual, r.Before)*s.c.Base < s.c.Minimum:
		return false
	}
	return s.c.Filter.Match(r.Name)
}

func (s *Screen) relist() {
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
func (s *Screen) order(a, b *CentreRow) int {
	key := func(r *CentreRow) float64 {
		switch {
		case s.c.Sort == screen.ByName:
			return 0
		case s.c.Sort == screen.ByInclusive:
			return max(r.Inherited, r.Before)
		case s.c.Sort == screen.ByOnly || !r.Chosen && !r.Pseudo:
			return r.Before
		}
		return r.Individual
	}
	return cmp.Or(cmp.Compare(key(b), key(a)), cmp.Compare(a.Name, b.Name))
}

func (s *Screen) row() *CentreRow {
	if s.data == nil || s.list.Cursor >= len(s.rows) {
		return nil
	}
	return &s.data.Rows[s.rows[s.list.Cursor]]
}

func (s *Screen) note() {
	if r := s.row(); r != nil {
		s.cursor = r.Name
		if r.File != 0 && r.Line > 0 {
			s.c.File, s.c.Line = r.File, r.Line // so that screen 2 shows it
		}
	}
}

// goTo puts the cursor on a row, and says whether it is listed.
func (s *Screen) goTo(row int) bool {
	if i := slices.Index(s.rows, row); i >= 0 {
		s.list.Set(i)
		s.note()
		return true
	}
	return false
}

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane, keymap.Zoom:
		return "this screen has one pane"
	case keymap.Invert, keymap.Sandwich:
		return "this turns the call tree; " + s.c.Key(screen.Stacks) + " shows it"
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight, keymap.Bookmark, keymap.NextBookmark:
		return s.c.WhyNoTimeline()
	case keymap.Left, keymap.Right:
		return "there are no branches to open or close: j and k move in the list"
	case keymap.Sort:
		if s.choice.Mode.Stacks() {
			return "stacks are by what they inherit; M goes to the modes without stacks"
		}
	case keymap.Undo:
		if len(s.undo) == 0 {
			return s.c.WhyNoUndo()
		}
	case keymap.Redo:
		if len(s.redo) == 0 {
			return s.c.WhyNoRedo()
		}
	case SaveSet:
		return s.c.Sealed
	case keymap.Mode:
		if s.c.Profile.Samples() == 0 {
			return "the log has no samples, and so no costs"
		}
	case keymap.Mark, OnlyThis, keymap.ZoomIn, keymap.ZoomOut:
		switch r := s.row(); {
		case r == nil:
			return "no cost centre is listed"
		case r.Pseudo:
			return r.Name + " is what no chosen centre has; it cannot be dropped"
		}
	case InvertSet:
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
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	if a != keymap.Mark && screen.MoveList(&s.list, a) {
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
		if !s.step(&s.undo, &s.redo) {
			s.c.Applied.Undo()
		}
		return ""
	case Choose:
		s.c.Ask = s.ask()
		return ""
	case SaveSet:
		s.c.Ask = s.save()
		return ""
	case keymap.Redo:
		if !s.step(&s.redo, &s.undo) {
			s.c.Applied.Redo()
		}
		return ""
	case Expensive:
		return s.expensive()
	case InvertSet:
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
		s.c.Goto = screen.Source
	case keymap.Mark:
		if dropped[r.Name] {
			delete(dropped, r.Name)
		} else {
			dropped[r.Name] = true
		}
		s.change(s.choice.Drop(dropped))
	case OnlyThis:
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
func (s *Screen) subtree() []string {
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

func (s *Screen) nextMode() string {
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

func (s *Screen) expensive() string {
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
func (s *Screen) Back() bool { return false }

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	at := s.list.Cursor
	pressed := screen.MouseList(&s.list, s.inner, m)
	s.note()
	onMark := m.X < s.inner.Min.X+markCell
	if pressed && (onMark || m.Double && s.list.Cursor == at) && s.Why(keymap.Mark) == "" {
		s.Do(keymap.Mark)
	}
}

// Find implements Screen.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	if p.RE == nil {
		return false
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(s.data.Rows[s.rows[i]].Name) }, s.note)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	r := s.row()
	if r == nil {
		return screen.Subject{Key: model.NoKey}
	}
	out := screen.Subject{Key: model.NoKey, Path: r.Path, Line: r.Line}
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

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.Query(s.choice) }

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	choice := s.choice
	return func(sel *profile.Selection) (printer.Report, error) {
		costs, err := choice.attribute(sel)
		if err != nil {
			return nil, err
		}
		return Report{Selection: sel, Costs: costs}, nil
	}, nil
}

// Export implements Exporter: the layout of +RTS -p, or the call graph of the centres.
func (s *Screen) Export(ending string) func(io.Writer, *profile.Selection) error {
	choice := s.choice
	if !choice.Mode.Stacks() {
		choice.Mode = centres.ModeStacks
	}
	return func(w io.Writer, sel *profile.Selection) error {
		costs, err := choice.attribute(sel)
		if err != nil {
			return err
		}
		switch ending {
		case ".dot":
			return Graph(w, sel, costs, printer.Options{})
		case ".svg":
			return GraphSVG(w, sel, costs, printer.Options{})
		}
		return ProfReport(w, sel, costs, nil, printer.Options{})
	}
}

// Draw implements Screen; see ccdraw.go.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	s.draw(p, f.Body)
}
