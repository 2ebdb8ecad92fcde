package heap

import (
	"fmt"
	"io"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/diagnosis"
	"ccagent/ui/printer"
)

// Paths is how closures are reached from roots: those whose name, kind or place has a text in it.
type Paths struct {
	Profile *profile.Profile
	Closure string
}

// pathRows is how many paths are printed where Top does not say.
const pathRows = 12

// chosen are the paths to closures that were asked for.
func (r Paths) chosen(n *graphNames) (all []int) {
	for i := range n.g.Paths {
		if strings.Contains(n.title(n.g.Paths[i].Closure), r.Closure) {
			all = append(all, i)
		}
	}
	return all
}

func (r Paths) none(n *graphNames) string {
	there, retained := false, false
	for i := range n.g.Bands {
		if strings.Contains(n.title(n.g.Bands[i].Closure), r.Closure) {
			there, retained = true, retained || n.g.Bands[i].Retained > 0
		}
	}
	switch {
	case retained:
		return fmt.Sprintf("The log has no path to %q: it has paths to those that retain most.", r.Closure)
	case there:
		return fmt.Sprintf("There is no path to %q: no root leads to any of these closures (ccview heap FILE --retained says why).", r.Closure)
	}
	if len((Roots{Name: r.Closure}).chosen(n)) > 0 {
		return fmt.Sprintf("No closure is called %q, but a root is: --root says what it keeps alive.", r.Closure)
	}
	return fmt.Sprintf("No closure is called %q; ccview heap FILE --retained lists them.", r.Closure)
}

// Text implements printer.Report.
func (r Paths) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	g := r.Profile.LastGraph()
	if g == nil {
		p.Note("%s", diagnosis.NoGraph(r.Profile))
		return p.Flush()
	}
	n := newGraphNames(r.Profile, g)
	p.Wrap(p.Bold, "   ", graphHead(g, o)...)
	all := r.chosen(n)
	if len(all) == 0 {
		p.Note("%s", r.none(n))
	}
	rows := o.Rows(len(all), pathRows)
	for _, i := range all[:min(len(all), rows)] {
		path := &g.Paths[i]
		p.Line("")
		p.Line(p.Bold(printer.Fit(n.title(path.Closure), p.room(0))))
		p.Note("%s (%s) are nearest to this root; the one at the end retains %s", format.Plural(path.Count, "closure"), format.Bytes(path.Bytes), format.Bytes(path.Retained))
		for _, l := range n.pathLines(path) {
			if text := printer.Fit(l.text, p.room(2)); l.aside {
				p.Line("  ", p.Faint(text))
			} else {
				p.Line("  ", text)
			}
		}
	}
	if left := len(all) - rows; left > 0 {
		p.Line("")
		p.Note("%d more: --top 0 prints all", left)
	}
	return p.Flush()
}

// pathLine is a root or a step of a path, or between them a remark.
type pathLine struct {
	text  string
	aside bool
}

// pathLines are the root and the steps of a path.
func (n *graphNames) pathLines(path *columns.HeapPath) []pathLine {
	out := []pathLine{{n.root(path.Root), false}}
	for _, s := range path.Steps {
		if s.Skipped > 0 {
			out = append(out, pathLine{fmt.Sprintf("  … %s left out", format.Plural(uint64(s.Skipped), "closure")), true})
		}
		if s.Frame != 0 {
			out = append(out, pathLine{"  in the stack's " + n.title(s.Frame), true})
		}
		line := "  " + n.title(s.Closure)
		if s.Times > 1 {
			line += fmt.Sprintf("  × %s", format.Count(uint64(s.Times)))
		}
		out = append(out, pathLine{line, false})
	}
	return out
}

// room is what is left of a line behind so many columns; 0 where lines have no end.
func (p out) room(used int) int {
	if p.Width == 0 {
		return 0
	}
	return p.Columns() - used
}

type pathsJSON struct {
	Problem string     `json:"problem,omitempty"` // why there is nothing
	Paths   []pathJSON `json:"paths"`
}

type pathJSON struct {
	closureJSON
	Root     *string    `json:"root"`
	Count    uint64     `json:"count"`
	Bytes    uint64     `json:"bytes"`
	Retained uint64     `json:"retained_bytes"`
	Steps    []stepJSON `json:"steps"`
}

type stepJSON struct {
	closureJSON
	Times   uint32       `json:"times"`
	Skipped uint32       `json:"skipped"`
	Frame   *closureJSON `json:"frame,omitempty"`
}

// JSON implements printer.Report.
func (r Paths) JSON(w io.Writer, _ printer.Options) error {
	doc := pathsJSON{Paths: []pathJSON{}}
	g := r.Profile.LastGraph()
	if g == nil {
		doc.Problem = diagnosis.NoGraph(r.Profile)
		return printer.JSON(w, doc)
	}
	n := newGraphNames(r.Profile, g)
	for _, i := range r.chosen(n) {
		path := &g.Paths[i]
		j := pathJSON{n.json(path.Closure), printer.Known(n.root(path.Root)), path.Count, path.Bytes, path.Retained, []stepJSON{}}
		for _, s := range path.Steps {
			step := stepJSON{closureJSON: n.json(s.Closure), Times: s.Times, Skipped: s.Skipped}
			if s.Frame != 0 {
				frame := n.json(s.Frame)
				step.Frame = &frame
			}
			j.Steps = append(j.Steps, step)
		}
		doc.Paths = append(doc.Paths, j)
	}
	if len(doc.Paths) == 0 {
		doc.Problem = r.none(n)
	}
	return printer.JSON(w, doc)
}
