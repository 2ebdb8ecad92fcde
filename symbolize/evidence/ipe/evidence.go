package ipe

import (
	"cmp"
	"context"
	"debug/elf"
	"math"
	"path"
	"slices"
	"sort"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/evidence/symtab"
	"ccagent/symbolize/sources"
)

// Evidence is a module's info table map as evidence: it places whole closures. Blocks and
// procedures have the numbers of their entries, counted from 1.
type Evidence struct {
	entries []Entry // by address
	symbols *symtab.Table
	dirs    []string // where the compiler may have run

	files  []sources.Description // numbered from 1
	byPath map[string]sources.FileID
	spans  map[placed]evidence.SpanID
}

// placed is a span in its file.
type placed struct {
	file sources.FileID
	sources.Extent
}

var _ evidence.Sourced = (*Evidence)(nil)

// Open reads the map of a file that a GHC of a version compiled. It is nil where there is
// none; the error lists what was left out of it. all are the file's symbols, and symbols
// those of its code; dirs are folders that the compiler ran in, as far as they are known.
// limit bounds the bytes held.
func Open(ctx context.Context, f *elffile.File, program string, all symtab.Symbols, symbols *symtab.Table, version string, dirs []string, limit uint64) (*Evidence, error) {
	var buffers []Buffer
	for _, suffix := range []string{ghc.ProvenanceSuffix, ghc.ProvenanceSuffix92} {
		all.EachNamed("", suffix, func(i int, name string) {
			if s, _ := all.Entry(i); s.Type != elf.STT_FUNC {
				buffers = append(buffers, Buffer{Addr: s.Addr, Name: name})
			}
		})
	}
	if len(buffers) == 0 {
		return nil, nil
	}
	img, err := newLoaded(f, limit/2)
	if err != nil {
		return nil, err
	}
	entries, err := Read(ctx, img, buffers, version, limit/2)
	if len(entries) == 0 {
		return nil, err
	}
	// The map does not say where the compiler ran: often above the executable.
	dirs = slices.Clone(dirs)
	for d, n := path.Dir(program), 0; path.IsAbs(d) && d != "/" && n < 8; d, n = path.Dir(d), n+1 {
		dirs = append(dirs, d)
	}
	return &Evidence{entries: entries, symbols: symbols, dirs: dirs, byPath: map[string]sources.FileID{}, spans: map[placed]evidence.SpanID{}}, err
}

// Closures says what closures the info table before an address is of, if the map has it:
// "thunk of type [Int]".
func (v *Evidence) Closures(info uint64) string {
	i, ok := slices.BinarySearchFunc(v.entries, info, func(e Entry, a uint64) int { return cmp.Compare(e.Info, a) })
	if !ok {
		return ""
	}
	return v.entries[i].closures()
}

func (e *Entry) closures() string {
	kind := ghc.ClosureType(e.Closure).Kind()
	const long = 120
	if kind == "" || kind == "constructor" || e.Type == "" || len(e.Type) > long {
		return kind
	}
	return kind + " of type " + e.Type
}

// continuation reports whether the table is that of a return address.
func (e *Entry) continuation() bool { return strings.HasPrefix(e.Table, "block_") }

// find gives the table whose code an address is in, and the one of the
// procedure that it belongs to: continuations follow their procedure. Code that
// a symbol without an entry begins is nobody's.
func (v *Evidence) find(addr uint64) (own, proc int, end uint64, ok bool) {
	i := sort.Search(len(v.entries), func(i int) bool { return v.entries[i].Info > addr }) - 1
	if i < 0 {
		return 0, 0, 0, false
	}
	_, before, after := v.symbols.Find(addr)
	if before != nil && before.Addr > v.entries[i].Info {
		return 0, 0, 0, false
	}
	switch {
	case i+1 < len(v.entries) && (after == nil || v.entries[i+1].Info <= after.Addr):
		end = v.entries[i+1].Info
	case after != nil:
		end = after.Addr
	case i+1 == len(v.entries):
		return 0, 0, 0, false // its end is unknown
	}
	proc = i
	for proc > 0 && v.entries[proc].continuation() && v.entries[proc-1].Module == v.entries[i].Module {
		proc--
	}
	if v.entries[proc].continuation() {
		proc = i
	}
	return i, proc, end, true
}

// unknown gives a stretch of addresses around one that is nobody's, of which all are: up to the next table.
func (v *Evidence) unknown(addr uint64) (lo, hi uint64) {
	next := sort.Search(len(v.entries), func(i int) bool { return v.entries[i].Info > addr })
	hi = math.MaxUint64
	if next < len(v.entries) {
		hi = v.entries[next].Info
	}
	if next == 0 {
		return 0, hi
	}
	if _, before, _ := v.symbols.Find(addr); before != nil && before.Addr > v.entries[next-1].Info {
		return before.Addr, hi // nor is what follows a symbol that no table is of
	}
	return addr, hi
}

// At is evidence.Evidence's.
func (v *Evidence) At(addr uint64) (evidence.Code, bool) {
	own, proc, end, ok := v.find(addr)
	if !ok {
		lo, hi := v.unknown(addr)
		return evidence.Code{Lo: lo, Hi: hi}, false
	}
	c := evidence.Code{
		Lo: v.entries[own].Info, Hi: end,
		Proc: evidence.ProcID(proc + 1), Start: v.entries[proc].Info,
		Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell,
	}
	if v.entries[own].placed() || v.entries[proc].placed() {
		c.Block = evidence.BlockID(own + 1)
	}
	return c, true
}

// placed reports whether the entry has a span.
func (e *Entry) placed() bool { return e.Span != (sources.Extent{}) && e.File != "" }

// Block is evidence.Sourced's: the causes of a table's code are its span and, of a
// continuation, its procedure's.
func (v *Evidence) Block(id evidence.BlockID) evidence.Block {
	own, proc, end, _ := v.find(v.entries[id-1].Info)
	b := evidence.Block{Lo: v.entries[own].Info, Hi: end, Proc: evidence.ProcID(proc + 1)}
	for distance, i := range []int{own, proc} {
		if distance > 0 && own == proc || !v.entries[i].placed() {
			continue
		}
		if s := v.span(i); len(b.Causes) == 0 || b.Causes[0].Span != s {
			b.Causes = append(b.Causes, evidence.Cause{Span: s, Distance: uint32(distance)})
		}
	}
	return b
}

// span gives the number of an entry's span: that of the first entry that has it.
func (v *Evidence) span(i int) evidence.SpanID {
	k := placed{v.file(&v.entries[i]), v.entries[i].Span}
	id, ok := v.spans[k]
	if !ok {
		id = evidence.SpanID(i + 1)
		v.spans[k] = id
	}
	return id
}

// Span is evidence.Sourced's.
func (v *Evidence) Span(id evidence.SpanID) evidence.Span {
	e := &v.entries[id-1]
	return evidence.Span{Position: v.position(e), EndLine: e.Span.EndLine, EndCol: e.Span.EndCol}
}

func (v *Evidence) position(e *Entry) evidence.Position {
	return evidence.Position{File: v.file(e), Line: e.Span.Line, Col: e.Span.Col, Label: e.Label, Owner: e.owner()}
}

func (e *Entry) owner() *evidence.Owner {
	o := &evidence.Owner{Package: "main", Module: e.Module}
	if e.Unit != "" { // before GHC 9.10 the map has no units
		o.Package = ghc.PackageOf(e.Unit)
	}
	return o
}

// file gives the number of an entry's file, 0 if it has none.
func (v *Evidence) file(e *Entry) sources.FileID {
	if e.File == "" {
		return 0
	}
	name := path.Clean(e.File)
	id, ok := v.byPath[name]
	if !ok {
		v.files = append(v.files, sources.Description{Path: name, Dirs: v.dirs, Package: e.owner().Package, Module: e.Module, Checked: true})
		id = sources.FileID(len(v.files))
		v.byPath[name] = id
	}
	return id
}

// File is evidence.Sourced's.
func (v *Evidence) File(id sources.FileID) sources.Description { return v.files[id-1] }

// Procedure is evidence.Evidence's.
func (v *Evidence) Procedure(id evidence.ProcID) evidence.Procedure {
	e := &v.entries[id-1]
	p := evidence.Procedure{
		Kind: evidence.Tabled, Symbol: e.Table, Category: eventlog.CategoryHaskell, Owner: *e.owner(), Path: e.Label,
		Position: v.position(e), Info: e.Info, Closures: e.closures(),
	}
	p.File = p.Position.File
	if s, _, _ := v.symbols.Find(e.Info); s != nil && s.Addr == e.Info && s.Category == eventlog.CategoryHaskell && !s.Haskell.Internal {
		p.Kind, p.Symbol, p.Linkage = evidence.Exported, s.Name, s.Haskell
	}
	return p
}
