package symbolize

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/cfi"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/hsname"
)

// moduleRun resolves one module's addresses.
type moduleRun struct {
	r    *run
	mod  *Module
	bin  binary.Info
	elf  *elffile.File
	syms *symbolTable
	x    *dwarfindex.Index // nil without DWARF
	prov *provenance       // nil without an info table map

	unitsOf   map[string][]uint32 // units by their source file
	fileIndex map[string]uint32   // index's files by path
	modules   map[uint32][2]string
	compDirs  []string
	spansOf   map[uint32][]uint32
	procsOf   map[uint32][]dwarfindex.ProcID
	lines     map[uint64]dwarfindex.Place
	inlined   map[uint64][]dwarfindex.Inlined

	files  map[uint32]*sourceFile
	spans  map[uint32]uint32 // index's span to the log's
	blocks map[dwarfindex.BlockID]uint32
	procs  map[dwarfindex.ProcID]uint32 // to bindings
	causes []dwarfindex.Cause
	enc    []dwarfindex.ProcID
	spanAt map[spanPlace]uint32 // index's spans by place; nil until asked for

	c     cfi.Ranges // what a C compiler made; see isC
	cRead bool
}

// module resolves one module.
func (r *run) module(ctx context.Context, mod *Module) error {
	m := &moduleRun{
		r: r, mod: mod, files: map[uint32]*sourceFile{}, spans: map[uint32]uint32{},
		blocks: map[dwarfindex.BlockID]uint32{}, procs: map[dwarfindex.ProcID]uint32{}, modules: map[uint32][2]string{},
	}
	info := eventlog.ModuleSymbols{Module: mod.ID}
	problems := m.open(ctx, &info)
	info.Problem = clean(strings.Join(problems, "; "))
	if info.Problem != "" {
		r.problem("%s: %s", mod.Path, info.Problem)
	}
	if err := r.emit(&info); err != nil {
		return err
	}
	if m.elf == nil {
		return nil
	}
	if err := m.resolve(ctx); err != nil {
		return err
	}
	return m.core(ctx)
}

// open reads the module's tables, as far as they are whole, and tells what is
// missing.
func (m *moduleRun) open(ctx context.Context, info *eventlog.ModuleSymbols) (problems []string) {
	mod := m.mod
	if mod.File == nil {
		if mod.Problem != "" {
			return []string{mod.Problem}
		}
		return []string{"the file could not be opened"}
	}
	if mod.Problem != "" {
		problems = append(problems, mod.Problem)
	}
	f, err := elffile.Open(mod.File, mod.Size)
	if err != nil {
		return append(problems, err.Error())
	}
	m.elf, m.bin = f, binary.IdentifyFile(f)
	info.GHCVersion, info.Way, info.HasIPE = m.bin.GHCVersion, string(m.bin.Way), m.bin.HasIPE
	symbolsFrom, dwarfFrom := f, f
	if mod.Debug != nil && (!m.bin.HasSymtab || !m.bin.HasDWARF) {
		d, err := elffile.Open(mod.Debug, mod.DebugSize)
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("separate debug file: %v", err))
		case m.bin.BuildID != nil && !bytes.Equal(d.BuildID(), m.bin.BuildID):
			problems = append(problems, "separate debug file is of another build")
		default:
			if !m.bin.HasSymtab && d.HasSymtab() {
				symbolsFrom = d
			}
			if !m.bin.HasDWARF && d.DebugSection(".debug_info") != nil {
				dwarfFrom = d
			}
		}
	}
	memory := m.r.memory()
	all, err := symbolsFrom.Symbols(memory / 4)
	if err != nil {
		problems = append(problems, fmt.Sprintf("symbols: %v", err))
	}
	info.HasSymtab = symbolsFrom.HasSymtab() && err == nil
	m.syms = newSymbolTable(f, all, m.bin.RTS)
	info.HasDWARF = dwarfFrom.DebugSection(".debug_info") != nil
	switch {
	case info.HasDWARF && m.r.job.SymbolsOnly:
		info.HasNotes = m.bin.HasNotes
		return append(problems, "debug information left out: reading it went over the budget (--symbolize-memory, --symbolize-time)")
	case info.HasDWARF:
		x, err := m.buildIndex(ctx, dwarfFrom, memory/2)
		switch {
		case errors.Is(err, dwarfindex.ErrMemory):
			problems = append(problems, fmt.Sprintf("debug information: %v (--symbolize-memory); what it did not hold goes by symbols", err))
		case err != nil:
			problems = append(problems, fmt.Sprintf("debug information: %v", err))
		}
		m.x = x
		if x != nil {
			problems = append(problems, x.Problems...)
			m.prepare(info)
			if err := m.adopt(ctx); err != nil {
				problems = append(problems, fmt.Sprintf("references between procedures: %v", err))
			}
		}
	}
	if m.bin.HasIPE {
		if err := m.readProvenance(ctx, all, info.GHCVersion, memory/4); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return append(problems, m.missing(info)...)
}

// missing says what would bring better names.
func (m *moduleRun) missing(info *eventlog.ModuleSymbols) []string {
	switch {
	case !m.bin.GHC:
		return nil
	case !info.HasNotes && m.prov != nil && m.bin.Arch == "arm64":
		return nil // the info table map is all that GHC writes there
	case !info.HasNotes && m.prov != nil:
		return []string{"no source notes, only an info table map, which places whole closures: build with ghc -g3"}
	case !info.HasSymtab && !info.HasDWARF && !m.bin.DynamicHaskell:
		return []string{"stripped: no symbols and no debug information; build with ghc -g3 and do not strip (cabal: --disable-executable-stripping)"}
	case !info.HasDWARF:
		return []string{"no debug information: build with ghc -g3"}
	case !info.HasNotes:
		return []string{"no source notes: build with ghc -g3"}
	}
	return nil
}

func (m *moduleRun) buildIndex(ctx context.Context, f *elffile.File, memory uint64) (*dwarfindex.Index, error) {
	s, err := dwarfSections(f, memory/2)
	if err != nil {
		return nil, err
	}
	x, err := m.r.index(ctx, m.mod.ID, s, m.elf, dwarfindex.Options{Memory: memory, Executable: m.elf.Executable})
	if err != nil && !errors.Is(err, dwarfindex.ErrMemory) && ctx.Err() == nil {
		return x, err
	}
	if err == nil {
		var addrs []uint64
		for _, a := range m.mod.Addresses {
			addrs = append(addrs, a.lookup())
		}
		slices.Sort(addrs)
		m.lines = dwarfindex.Places(ctx, s, x, addrs)
		if len(m.lines) > 0 {
			m.inlines(ctx, f, s, memory/2)
		}
	}
	return x, err
}

// inlines finds the functions that were inlined at the addresses of C, C++ and
// Rust code. Without them its lines still tell where it is.
func (m *moduleRun) inlines(ctx context.Context, f *elffile.File, s dwarfindex.Sections, limit uint64) {
	if s.InfoSize > limit {
		m.r.problem("%s: inlined C functions left out: %d bytes of debug information are over the budget (--symbolize-memory)", m.mod.Path, s.InfoSize)
		return
	}
	info := make([]byte, s.InfoSize)
	if _, err := s.Info.ReadAt(info, 0); err != nil && err != io.EOF {
		return
	}
	limit -= s.InfoSize
	extra := map[string][]byte{}
	for _, name := range []string{".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"} {
		if sec := f.DebugSection(name); sec != nil {
			data, err := f.Data(sec, limit)
			if err != nil {
				return
			}
			extra[name] = data
			limit -= min(limit, uint64(len(data)))
		}
	}
	var err error
	if m.inlined, err = dwarfindex.Inlines(ctx, s, info, extra, m.lines); err != nil {
		m.r.problem("%s: %v", m.mod.Path, err)
	}
}

// dwarfSections opens the sections the index is built from. .debug_info is
// read piece by piece where it is not compressed.
func dwarfSections(f *elffile.File, limit uint64) (dwarfindex.Sections, error) {
	var s dwarfindex.Sections
	info := f.DebugSection(".debug_info")
	if info == nil {
		return s, nil
	}
	if info.Compressed() {
		data, err := f.Data(info, limit)
		if err != nil {
			return s, err
		}
		s.Info, s.InfoSize = bytes.NewReader(data), uint64(len(data))
		limit -= min(limit, uint64(len(data)))
	} else {
		r, err := f.Reader(info)
		if err != nil {
			return s, err
		}
		s.Info, s.InfoSize = io.ReaderAt(r), info.Size
	}
	for _, part := range []struct {
		name string
		to   *[]byte
	}{{".debug_abbrev", &s.Abbrev}, {".debug_line", &s.Line}, {".debug_str", &s.Str}, {".debug_line_str", &s.LineStr}} {
		sec := f.DebugSection(part.name)
		if sec == nil {
			continue
		}
		data, err := f.Data(sec, limit)
		if err != nil {
			return s, err
		}
		*part.to = data
		limit -= min(limit, uint64(len(data)))
	}
	return s, nil
}

// prepare indexes the index by source file.
func (m *moduleRun) prepare(info *eventlog.ModuleSymbols) {
	x := m.x
	m.unitsOf = map[string][]uint32{}
	seen := map[string]bool{}
	for i := 0; i < x.Units(); i++ {
		u := x.Unit(uint32(i))
		if !u.Haskell {
			continue
		}
		name := dwarfindex.CleanPath(u.Name)
		m.unitsOf[name] = append(m.unitsOf[name], uint32(i))
		if !seen[u.CompDir] && len(m.compDirs) < 16 {
			seen[u.CompDir] = true
			m.compDirs = append(m.compDirs, u.CompDir)
		}
		if info.GHCVersion == "" {
			info.GHCVersion = ghc.ProducerVersion(u.Producer)
		}
	}
	m.fileIndex = map[string]uint32{}
	for i := 1; i < x.Files(); i++ {
		m.fileIndex[x.File(uint32(i))] = uint32(i)
	}
	m.spansOf = map[uint32][]uint32{}
	for i := 1; i <= x.Spans(); i++ {
		f := x.Span(uint32(i)).File
		m.spansOf[f] = append(m.spansOf[f], uint32(i))
	}
	info.HasNotes = x.Notated()
	m.procsOf = map[uint32][]dwarfindex.ProcID{}
	for i := 1; i <= x.Procs(); i++ {
		p := x.Proc(dwarfindex.ProcID(i))
		if p.Pos.Line != 0 && p.Name != "" {
			m.procsOf[p.Pos.File] = append(m.procsOf[p.Pos.File], p.ID)
		}
		if _, ok := m.modules[p.Unit]; !ok {
			if n, ok := hsname.Parse(p.Linkage); ok && n.Module != "" {
				m.modules[p.Unit] = [2]string{n.Package, n.Module}
			}
		}
	}
}

// unitModule names a unit's package and module, by its exported procedures.
func (m *moduleRun) unitModule(u uint32) (pkg, module string) {
	n, ok := m.modules[u]
	if !ok {
		n = [2]string{"main", moduleOfPath(dwarfindex.CleanPath(m.x.Unit(u).Name))}
	}
	return n[0], n[1]
}

// lookup is the address whose code is meant.
func (a Address) lookup() uint64 {
	if a.Call && a.Addr > 0 {
		return a.Addr - 1
	}
	return a.Addr
}

// perEvent bounds the locations of one event, to stay below its largest size.
const perEvent = 512

func (m *moduleRun) resolve(ctx context.Context) error {
	addrs := slices.Clone(m.mod.Addresses)
	slices.SortFunc(addrs, func(a, b Address) int {
		if a.Addr != b.Addr {
			if a.Addr < b.Addr {
				return -1
			}
			return 1
		}
		if a.Call == b.Call {
			return 0
		}
		if b.Call {
			return -1
		}
		return 1
	})
	addrs = slices.CompactFunc(addrs, func(a, b Address) bool { return a.Addr == b.Addr })
	out := eventlog.Locations{Module: m.mod.ID}
	for i, a := range addrs {
		if i&1023 == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
		}
		l, err := m.locate(a)
		if err != nil {
			return err
		}
		m.r.count(&l)
		out.Locations = append(out.Locations, l)
		if len(out.Locations) == perEvent || i == len(addrs)-1 {
			if err := m.r.emit(&out); err != nil {
				return err
			}
			out.Locations = out.Locations[:0]
		}
	}
	return nil
}

// locate resolves one address: by block, else by a symbol that covers it, else
// by what lies around it.
func (m *moduleRun) locate(a Address) (eventlog.Location, error) {
	addr := a.lookup()
	l := eventlog.Location{Addr: a.Addr}
	if m.x != nil {
		if id := m.x.Lookup(addr); id != dwarfindex.NoBlock {
			var err error
			b := m.x.Block(id)
			if l.Block, err = m.block(id); err != nil {
				return l, err
			}
			if l.Binding, err = m.proc(b.Proc); err != nil {
				return l, err
			}
			l.Quality, l.Category = eventlog.QualityExact, eventlog.CategoryHaskell
			root := m.x.Block(m.x.Proc(b.Proc).Root)
			if root.Lo <= addr {
				l.Offset = addr - root.Lo
			}
			return l, nil
		}
	}
	block, binding, start, err := m.provenanceBlock(addr)
	if binding != 0 || err != nil {
		l.Block, l.Binding, l.Offset = block, binding, addr-start
		l.Quality, l.Category = eventlog.QualityExact, eventlog.CategoryHaskell
		return l, err
	}
	covering, before, after := m.syms.at(addr)
	switch {
	case covering != nil:
		return m.covered(l, covering, addr)
	case !m.elf.Executable(addr):
		return l, nil // not code of this file: unresolved
	}
	return m.around(l, before, after, addr)
}

// covered resolves an address in a symbol's code.
func (m *moduleRun) covered(l eventlog.Location, s *symbol, addr uint64) (eventlog.Location, error) {
	l.Quality, l.Category, l.Offset = eventlog.QualityExact, s.category, addr-s.Addr
	var err error
	if s.category == eventlog.CategoryHaskell {
		l.Binding, err = m.external(s.Name, s.haskell, nil)
		return l, err
	}
	if l.Binding, err = m.r.bindings.foreign(m.mod.ID, s.Name, s.category); err != nil {
		return l, err
	}
	p, ok := m.lines[addr]
	if !ok {
		return l, nil
	}
	chain := m.inlined[addr]
	if chain == nil {
		chain = []dwarfindex.Inlined{{File: p.File, Line: p.Line}}
	}
	for _, c := range chain {
		line := eventlog.Line{Binding: l.Binding, Line: c.Line}
		if line.File, err = m.lineFile(dwarfindex.Place{CompDir: p.CompDir, File: c.File}); err != nil {
			return l, err
		}
		if c.Name != "" {
			if line.Binding, err = m.r.bindings.foreign(m.mod.ID, c.Name, s.category); err != nil {
				return l, err
			}
		}
		l.Lines = append(l.Lines, line)
	}
	return l, nil
}

// around resolves an address that no symbol covers. GHC's internal labels are
// in no symbol table, so code without a symbol is common; which module it
// belongs to is told by its neighbours, whose name it is not.
func (m *moduleRun) around(l eventlog.Location, before, after *symbol, addr uint64) (eventlog.Location, error) {
	haskell := func(s *symbol) bool { return s != nil && s.category == eventlog.CategoryHaskell }
	var owner *symbol
	switch {
	case haskell(before) && haskell(after) && before.haskell.Module == after.haskell.Module && before.haskell.Unit == after.haskell.Unit:
		owner = before
	case haskell(before) && haskell(after):
		// GHC writes local code before the exported code it belongs to, and a
		// module's constructors last: between two modules lies the second's.
		owner = after
	}
	var err error
	if owner != nil {
		l.Category, l.Quality = eventlog.CategoryHaskell, eventlog.QualityNear
		n := owner.haskell
		name := unnamedBetween(before, after)
		k := bindingKey{pkg: n.Package, mod: n.Module, name: name}
		l.Binding, err = m.r.bindings.add(k, eventlog.Binding{
			Package: n.Package, Module: n.Module, Name: name,
			Detail: "code of this module that no symbol covers", Category: eventlog.CategoryHaskell,
		})
		return l, err
	}
	// C: a function without a size, as assembly code has them, or padding.
	const near = 4096
	switch {
	case before != nil && !haskell(before) && addr-before.Addr < near && (before.Size == 0 || addr-before.Addr-before.Size < 16):
		l.Category, l.Quality, l.Offset = before.category, eventlog.QualityNear, addr-before.Addr
		l.Binding, err = m.r.bindings.foreign(m.mod.ID, before.Name, before.category)
	case before != nil && after != nil && before.category == after.category:
		l.Category = before.category
	case !m.bin.GHC:
		l.Category = eventlog.CategoryForeign
	case m.isC(addr):
		// The run-time system's, or a library's: which, and so what category it
		// is, its name would tell.
		l.Quality = eventlog.QualityNear
		name := namelessC
		if m.bin.RTS && m.bin.Library {
			name = namelessRTS
		}
		l.Binding, err = m.r.bindings.foreign(m.mod.ID, name, eventlog.CategoryUnresolved)
	}
	return l, err
}

// What stands for C functions that no symbol names; a shared run-time system's are
// all its own.
const (
	namelessC   = "(C code without symbols)"
	namelessRTS = "(run-time system's C code without symbols)"
)

// maxFrameSection bounds the .eh_frame that isC reads.
const maxFrameSection = 64 << 20

// isC reports whether a C compiler made the code, by the unwinding information
// that it writes and GHC does not.
func (m *moduleRun) isC(addr uint64) bool {
	if !m.cRead {
		m.cRead = true
		m.c = cfi.Functions(m.elf, min(m.r.memory()/4, maxFrameSection))
	}
	return m.c.Contains(addr)
}

// unnamedBetween says where local code lies, by the exported code that follows
// it in its module, or else precedes it. That is a place, not an owner: in
// programs whose notes tell, half of such code is of the binding that follows.
func unnamedBetween(before, after *symbol) string {
	const longest = 100
	b, a := before.haskell, after.haskell
	same := b.Module == a.Module && b.Unit == a.Unit
	where, n := "before", a
	if a.Kind == hsname.KindConInfo && same {
		where, n = "after", b // constructors lie last, away from what uses them
	}
	if n.Name == "" || n.Kind == hsname.KindConInfo || n.Internal || len(n.Name) > longest {
		return unnamedCode
	}
	return fmt.Sprintf("(local code %s %s)", where, n.Name)
}

// unnamedCode stands for code of a known module and an unknown binding.
const unnamedCode = "(local code)"
