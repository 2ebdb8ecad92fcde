package columns

import (
	"ccagent/eventlog"
)

// CoreID is the id of a Core, dense from 1 in the order of the log; 0 is none.
type CoreID uint32

// Core is the output of GHC's optimiser for a top-level binding, as -ddump-simpl printed
// it during the build.
type Core struct {
	Binding BindingID // the procedure
	File    FileID    // the source file of its module; 0 if unknown
	Name    string    // the binder as printed: "$wgo_r1H6"
	Dump    string    // the dump file
	Line    uint32    // 1-based line of the dump at which Text begins
	Text    []byte
	Problem string      // why it is cut, or may differ from what was compiled
	Also    []BindingID // procedures lifted out of it
	notes   [2]uint32
	size    uint64 // size stated by the log
}

// CoreNote is a source note in a Core's text. At is the region of the text that the note
// applies to, in 1-based lines and columns.
type CoreNote struct {
	Span SpanID
	At   Extent
}

// Cores returns one more than the highest CoreID: 1 for a log without Core.
func (p *Log) Cores() int { return len(p.Symbols.Cores) }

// Core returns the Core with an id; the zero Core for 0.
func (p *Log) Core(id CoreID) *Core { return &p.Symbols.Cores[id] }

// CoreNotes returns a Core's notes, in the order of its text.
func (p *Log) CoreNotes(id CoreID) []CoreNote {
	c := &p.Symbols.Cores[id]
	return p.Symbols.coreNotes[c.notes[0]:c.notes[1]]
}

func (t *symbolTable) core(ev *eventlog.Core) {
	s := &t.p.Symbols
	if _, ok := t.cores.add(ev.ID); !ok {
		t.p.Accounting.Redefined++
		return
	}
	c := Core{Binding: BindingID(ev.Binding), File: FileID(ev.File), Name: ev.Name, Dump: ev.Dump, Line: ev.Line, Problem: ev.Problem, size: ev.TextSize}
	c.notes[0] = uint32(len(s.coreNotes))
	for _, n := range ev.Notes {
		s.coreNotes = append(s.coreNotes, CoreNote{SpanID(n.Span), Extent{n.Line, n.Col, n.EndLine, n.EndCol}})
	}
	c.notes[1] = uint32(len(s.coreNotes))
	for _, b := range ev.Also {
		c.Also = append(c.Also, BindingID(b))
	}
	s.Cores = append(s.Cores, c)
}

// coreText appends a chunk of text, as fileText does.
func (t *symbolTable) coreText(ev *eventlog.CoreText) {
	a := &t.p.Accounting
	id, ok := t.cores.find(ev.Core)
	if !ok {
		a.Undefined.Cores++
		return
	}
	c := &t.p.Symbols.Cores[id]
	t.appendText(&c.Text, c.size, ev.Offset, ev.Text)
}

func (t *symbolTable) resolveCores() {
	s, u := &t.p.Symbols, &t.p.Accounting.Undefined
	for i := 1; i < len(s.Cores); i++ {
		c := &s.Cores[i]
		c.Binding = resolve(&t.bindings, c.Binding, &u.Bindings)
		c.File = resolve(&t.files, c.File, &u.Files)
		for j := range c.Also {
			c.Also[j] = resolve(&t.bindings, c.Also[j], &u.Bindings)
		}
		if uint64(len(c.Text)) < c.size && c.Problem == "" {
			c.Problem = "the log holds only a part of this text"
		}
	}
	for i := range s.coreNotes {
		s.coreNotes[i].Span = resolve(&t.spans, s.coreNotes[i].Span, &u.Spans)
	}
}
