// Package dwarf is the evidence of DWARF: GHC's blocks and source notes, and the line
// tables of other compilers.
package dwarf

import (
	"context"
	"errors"
	"fmt"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/sources"
)

// Evidence is a module's debug information as evidence. Blocks, procedures and spans have
// the numbers of the index; files those of the index and 1.
type Evidence struct {
	x       *dwarfindex.Index
	symbols evidence.Symbols
	lines   lines

	unitsOf map[string][]uint32 // units by their source file
	files   map[string]uint32   // the index's files by path
	owners  map[uint32]evidence.Owner
	dirs    []string            // where the compiler ran
	spansOf map[uint32][]uint32 // by file
	procsOf map[uint32][]dwarfindex.ProcID
	version string
	spanAt  map[place]evidence.SpanID // nil until asked for
	more    []string                  // paths of files that the index does not have; they follow its own
	extent  []extent                  // nil until asked for
	causes  []dwarfindex.Cause        // of one block, for hasNotes

	hasCLines bool // of a unit that is not GHC's

	rows, firstRows map[uint64]dwarfindex.Row // see procedures.go
}

// place is a span's place in a file of the index.
type place struct {
	file uint32
	sources.Extent
}

var (
	_ evidence.Sourced = (*Evidence)(nil)
	_ evidence.Lines   = (*Evidence)(nil)
)

// Options of Open.
type Options struct {
	Memory uint64 // bytes that may be held
	// Cache keeps indices between runs; nil keeps none. Module is the module's number
	// there.
	Cache  Cache
	Module uint32
	// Addresses are the addresses that Lines will be asked of, sorted.
	Addresses []uint64
	// Only is set if nothing else of the module will be asked of.
	Only bool
	// Warn is called with what is left out without harm to the rest.
	Warn func(format string, args ...any)
}

// Open reads the debug information of a file, which may be a separate debug file, about
// the code of a module whose symbols are given. It is nil where nothing can be read; the
// problems say, in words, what was left out.
func Open(ctx context.Context, f, code *elffile.File, symbols evidence.Symbols, opt Options) (e *Evidence, problems []string) {
	e = &Evidence{symbols: symbols}
	sections, err := e.open(ctx, f, code, &opt)
	switch {
	case errors.Is(err, dwarfindex.ErrMemory):
		problems = append(problems, fmt.Sprintf("debug information: %v (--symbolize-memory); what it did not hold goes by symbols", err))
	case err != nil:
		problems = append(problems, fmt.Sprintf("debug information: %v", err))
	}
	if e.x == nil {
		return nil, problems
	}
	problems = append(problems, e.x.Problems...)
	e.prepare()
	if err := e.adopt(ctx, code, &opt); err != nil {
		problems = append(problems, fmt.Sprintf("references between procedures: %v", err))
	}
	e.readHaskellLines(ctx, sections, opt.Addresses)
	return e, problems
}

func (e *Evidence) open(ctx context.Context, f, code *elffile.File, opt *Options) (dwarfindex.Sections, error) {
	r := newReader(f, opt.Memory/2, opt)
	r.load()
	s, err := r.sections()
	if err != nil {
		return s, err
	}
	e.x, err = index(ctx, s, code, opt)
	if err == nil {
		e.lines = readLines(ctx, s, r, e.x, opt)
		r.keep()
	}
	return s, err
}

// maxDirs bounds the folders that are remembered as the compiler's.
const maxDirs = 16

// prepare finds the units, spans and procedures of each source file.
func (e *Evidence) prepare() {
	x := e.x
	e.unitsOf, e.files, e.owners = map[string][]uint32{}, map[string]uint32{}, map[uint32]evidence.Owner{}
	e.spansOf, e.procsOf = map[uint32][]uint32{}, map[uint32][]dwarfindex.ProcID{}
	seen := map[string]bool{}
	for i := 0; i < x.Units(); i++ {
		u := x.Unit(uint32(i))
		if !u.Haskell {
			e.hasCLines = e.hasCLines || u.HasLines
			continue
		}
		name := dwarfindex.CleanPath(u.Name)
		e.unitsOf[name] = append(e.unitsOf[name], uint32(i))
		if !seen[u.CompDir] && len(e.dirs) < maxDirs {
			seen[u.CompDir] = true
			e.dirs = append(e.dirs, u.CompDir)
		}
		if e.version == "" {
			e.version = ghc.ProducerVersion(u.Producer)
		}
	}
	for i := 1; i < x.Files(); i++ {
		e.files[x.File(uint32(i))] = uint32(i)
	}
	for name := range e.unitsOf { // without notes, the index need not know them
		e.fileID(name)
	}
	for i := 1; i <= x.Spans(); i++ {
		f := x.Span(uint32(i)).File
		e.spansOf[f] = append(e.spansOf[f], uint32(i))
	}
	for i := 1; i <= x.Procs(); i++ {
		p := x.Proc(dwarfindex.ProcID(i))
		if p.Pos.Line != 0 && p.Name != "" {
			e.procsOf[p.Pos.File] = append(e.procsOf[p.Pos.File], p.ID)
		}
		if _, ok := e.owners[p.Unit]; !ok {
			if n, ok := hsname.Parse(p.Linkage); ok && n.Module != "" {
				e.owners[p.Unit] = evidence.Owner{Package: n.Package, Module: n.Module}
			}
		}
	}
}

// GHCVersion is the version of the GHC that compiled the module; empty if unknown.
func (e *Evidence) GHCVersion() string { return e.version }

// HasNotes reports whether there are source notes, not only positions.
func (e *Evidence) HasNotes() bool { return e.x.Notated() }

// Dirs are folders that GHC ran in.
func (e *Evidence) Dirs() []string {
	if e == nil {
		return nil
	}
	return e.dirs
}

// Index gives the index that the evidence is made of.
func (e *Evidence) Index() *dwarfindex.Index { return e.x }

// fileID gives the number of a source file by its path as CleanPath gives it.
func (e *Evidence) fileID(path string) sources.FileID {
	f, ok := e.files[path]
	if !ok {
		f = uint32(e.x.Files() + len(e.more))
		e.files[path] = f
		e.more = append(e.more, path)
	}
	return sources.FileID(f + 1)
}

// pathOf gives the path of a file by its number.
func (e *Evidence) pathOf(f uint32) string {
	if n := uint32(e.x.Files()); f >= n {
		return e.more[f-n]
	}
	return e.x.File(f)
}

// FileOf gives the index's number of a source file, by its path as compiled.
func (e *Evidence) FileOf(path string) (uint32, bool) {
	f, ok := e.files[dwarfindex.CleanPath(path)]
	return f, ok
}

// SpanAt gives the span at a place in a file of the index, 0 if there is none.
func (e *Evidence) SpanAt(file uint32, x sources.Extent) evidence.SpanID {
	if e.spanAt == nil {
		e.spanAt = make(map[place]evidence.SpanID, e.x.Spans())
		for i := 1; i <= e.x.Spans(); i++ {
			s := e.x.Span(uint32(i))
			e.spanAt[place{s.File, sources.Extent{Line: s.Line, Col: s.Col, EndLine: s.EndLine, EndCol: s.EndCol}}] = evidence.SpanID(i)
		}
	}
	return e.spanAt[place{file, x}]
}

// Owner names a unit's package and module, by its exported procedures.
func (e *Evidence) Owner(unit uint32) evidence.Owner {
	o, ok := e.owners[unit]
	if !ok {
		o = evidence.Owner{Package: "main", Module: sources.ModuleOfPath(dwarfindex.CleanPath(e.x.Unit(unit).Name))}
	}
	return o
}

// At is evidence.Evidence's.
func (e *Evidence) At(addr uint64) (evidence.Code, bool) {
	id := e.x.Lookup(addr)
	if id == dwarfindex.NoBlock {
		p := e.procAt(addr)
		if p == dwarfindex.NoProc {
			unknown := e.unknown(addr)
			return evidence.Code{Lo: unknown.Lo, Hi: unknown.Hi}, false
		}
		return evidence.Code{
			Proc: evidence.ProcID(p), Start: e.x.Start(p), Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell,
		}, true
	}
	p := e.x.Block(id).Proc
	c := evidence.Code{
		Block: evidence.BlockID(id), Proc: evidence.ProcID(p), Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell,
	}
	start := e.x.Start(p)
	if start <= addr {
		c.Start = start
	}
	if e.hasNotes(id) { // else lines of a line table are its places
		r := e.x.Around(addr)
		if c.Lo, c.Hi = r.Lo, r.Hi; c.Start != 0 {
			c.Lo = max(c.Lo, start)
		} else {
			c.Hi = min(c.Hi, start)
		}
	}
	return c, true
}

// Block is evidence.Sourced's.
func (e *Evidence) Block(id evidence.BlockID) evidence.Block {
	b := e.x.Block(dwarfindex.BlockID(id))
	out := evidence.Block{Lo: b.Lo, Hi: b.Hi, Proc: evidence.ProcID(b.Proc)}
	for _, p := range e.x.Enclosing(nil, b.ID) {
		out.Enclosing = append(out.Enclosing, evidence.ProcID(p))
	}
	for _, c := range e.x.Causes(nil, b.ID) {
		out.Causes = append(out.Causes, evidence.Cause{Span: evidence.SpanID(c.Span), Distance: c.Distance})
	}
	return out
}

// Span is evidence.Sourced's.
func (e *Evidence) Span(id evidence.SpanID) evidence.Span {
	s := e.x.Span(uint32(id))
	return evidence.Span{Position: evidence.Position{File: sources.FileID(s.File + 1), Line: s.Line, Col: s.Col}, EndLine: s.EndLine, EndCol: s.EndCol}
}

// Procedure is evidence.Evidence's.
func (e *Evidence) Procedure(id evidence.ProcID) evidence.Procedure {
	p := e.x.Proc(dwarfindex.ProcID(id))
	out := evidence.Procedure{
		Kind: evidence.Noted, Symbol: p.Linkage, Category: eventlog.CategoryHaskell, Owner: e.Owner(p.Unit), Path: p.Name,
		Adopted: p.Adopted, Info: entryOf(e.x.Start(p.ID)),
	}
	if n, ok := hsname.Parse(p.Linkage); ok && !n.Internal {
		out.Kind, out.Linkage = evidence.Exported, n
	}
	if p.Pos.Line != 0 {
		out.Position = evidence.Position{File: sources.FileID(p.Pos.File + 1), Line: p.Pos.Line, Col: p.Pos.Col}
	} else {
		out.Near = e.near(p.ID)
	}
	if f, ok := e.FileOf(e.x.Unit(p.Unit).Name); ok {
		out.File = sources.FileID(f + 1)
	}
	if p.TickParent != dwarfindex.NoBlock {
		out.Context = evidence.ProcID(e.x.Block(p.TickParent).Proc)
	}
	return out
}

// entryOf is where a procedure's code begins whose low_pc is given: from GHC 9.2 on that
// is one byte before the label, which is aligned.
func entryOf(lowPC uint64) uint64 { return (lowPC + 7) &^ 7 }

// File is evidence.Sourced's.
func (e *Evidence) File(id sources.FileID) sources.Description {
	index := uint32(id) - 1
	d := sources.Description{Path: e.pathOf(index)}
	own := map[string]bool{}
	for _, u := range e.unitsOf[d.Path] {
		dir := e.x.Unit(u).CompDir
		d.Dirs = append(d.Dirs, dir)
		own[dir] = true
		if d.Module == "" {
			o := e.Owner(u)
			d.Package, d.Module = o.Package, o.Module
		}
	}
	for _, dir := range e.dirs {
		if !own[dir] {
			d.Dirs = append(d.Dirs, dir)
		}
	}
	var notes []sources.Extent
	for _, s := range e.spansOf[index] {
		s := e.x.Span(s)
		notes = append(notes, sources.Extent{Line: s.Line, Col: s.Col, EndLine: s.EndLine, EndCol: s.EndCol})
	}
	var procs []sources.Name
	for _, id := range e.procsOf[index] {
		p := e.x.Proc(id)
		n := sources.Name{Line: p.Pos.Line, Col: p.Pos.Col, Name: p.Name}
		if l, ok := hsname.Parse(p.Linkage); ok && !l.Internal {
			// Code of a method that needs no newtype's wrapper has its instance's name with a number. Top-level bindings,
			// which may be inlined there, begin in the first column.
			if o := hsname.Explain(l.Name); o.Source == sources.Top(p.Name) || o.Source == "" && p.Pos.Col > 1 {
				n.Instance = o.Instance
			}
		}
		procs = append(procs, n)
	}
	d.Outline = sources.NewOutline(notes, procs)
	return d
}
