package symbolize

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/hssource"
	"ccagent/symbolize/ipe"
)

// provenance is a module's info table map, sorted by address.
type provenance struct {
	entries []ipe.Entry
	files   map[string]*sourceFile
	blocks  map[uint64]uint32 // by info table, to the log's
	procs   map[uint64]uint32 // by info table, to bindings
	spans   map[placedSpan]uint32
}

type placedSpan struct {
	file uint32
	ipe.Span
}

// readProvenance reads the info table map, if the module has one.
func (m *moduleRun) readProvenance(ctx context.Context, all []elffile.Symbol, version string, limit uint64) error {
	var buffers []ipe.Buffer
	for _, s := range all {
		if s.Type != elf.STT_FUNC && (strings.HasSuffix(s.Name, ghc.ProvenanceSuffix) || strings.HasSuffix(s.Name, ghc.ProvenanceSuffix92)) {
			buffers = append(buffers, ipe.Buffer{Addr: s.Addr, Name: s.Name})
		}
	}
	if len(buffers) == 0 {
		return nil
	}
	img, err := newImage(m.elf, limit/2)
	if err != nil {
		return err
	}
	entries, err := ipe.Read(ctx, img, buffers, version, limit/2)
	if len(entries) > 0 {
		m.prov = &provenance{entries, map[string]*sourceFile{}, map[uint64]uint32{}, map[uint64]uint32{}, map[placedSpan]uint32{}}
	}
	return err
}

// describe says in words what closures a table is of: "thunk of type [Int]".
func describe(e *ipe.Entry) string {
	kind := ghc.ClosureType(e.Closure).Kind()
	const long = 120
	if kind == "" || kind == "constructor" || e.Type == "" || len(e.Type) > long {
		return kind
	}
	return kind + " of type " + e.Type
}

// describe says what the closures of the table before an entry are, if the map
// has it.
func (v *provenance) describe(entry uint64) string {
	if v == nil {
		return ""
	}
	i, ok := slices.BinarySearchFunc(v.entries, entry, func(e ipe.Entry, a uint64) int { return cmp.Compare(e.Info, a) })
	if !ok {
		return ""
	}
	return describe(&v.entries[i])
}

// find gives the table whose code an address is in, and the one of the
// procedure that it belongs to: continuations follow their procedure. Code that
// a symbol without an entry begins is nobody's.
func (v *provenance) find(syms *symbolTable, addr uint64) (own, proc int, end uint64, ok bool) {
	i := sort.Search(len(v.entries), func(i int) bool { return v.entries[i].Info > addr }) - 1
	if i < 0 {
		return 0, 0, 0, false
	}
	_, before, after := syms.at(addr)
	if before != nil && before.Addr > v.entries[i].Info {
		return 0, 0, 0, false
	}
	end = addr + 1
	switch {
	case i+1 < len(v.entries) && (after == nil || v.entries[i+1].Info <= after.Addr):
		end = v.entries[i+1].Info
	case after != nil:
		end = after.Addr
	case i+1 == len(v.entries):
		return 0, 0, 0, false // nothing tells where it ends
	}
	proc = i
	for proc > 0 && continuation(&v.entries[proc]) && v.entries[proc-1].Module == v.entries[i].Module {
		proc--
	}
	if continuation(&v.entries[proc]) {
		proc = i
	}
	return i, proc, end, true
}

func continuation(e *ipe.Entry) bool { return strings.HasPrefix(e.Table, "block_") }

// provenanceBlock gives a block of the log for the code of an info table: its
// causes are the table's span and, of a continuation, its procedure's.
func (m *moduleRun) provenanceBlock(addr uint64) (block, binding uint32, start uint64, err error) {
	if m.prov == nil {
		return 0, 0, 0, nil
	}
	own, proc, end, ok := m.prov.find(m.syms, addr)
	if !ok {
		return 0, 0, 0, nil
	}
	e, p := &m.prov.entries[own], &m.prov.entries[proc]
	start = p.Info
	if binding, err = m.provenanceBinding(p); err != nil {
		return 0, 0, 0, err
	}
	if id, ok := m.prov.blocks[e.Info]; ok {
		return id, binding, start, nil
	}
	out := eventlog.Block{Module: m.mod.ID, Lo: e.Info, Hi: end, Binding: binding}
	for d, x := range []*ipe.Entry{e, p} {
		if d > 0 && own == proc || x.Span == (ipe.Span{}) || x.File == "" {
			continue
		}
		s, err := m.provenanceSpan(x)
		if err != nil {
			return 0, 0, 0, err
		}
		if !slices.ContainsFunc(out.Causes, func(c eventlog.Cause) bool { return c.Span == s }) {
			out.Causes = append(out.Causes, eventlog.Cause{Span: s, Distance: uint32(d)})
		}
	}
	if len(out.Causes) == 0 {
		return 0, binding, start, nil
	}
	m.r.blockCount++
	m.r.sum.Blocks++
	out.ID = uint32(m.r.blockCount)
	m.prov.blocks[e.Info] = out.ID
	return out.ID, binding, start, m.r.emit(&out)
}

func (m *moduleRun) provenanceSpan(e *ipe.Entry) (uint32, error) {
	f, err := m.provenanceFile(e)
	if err != nil {
		return 0, err
	}
	k := placedSpan{f.id, e.Span}
	if id, ok := m.prov.spans[k]; ok {
		return id, nil
	}
	out := eventlog.Span{File: f.id, Line: e.Span.Line, Col: e.Span.Col, EndLine: e.Span.EndLine, EndCol: e.Span.EndCol}
	if out.Binding, err = m.provenanceSource(f, e); err != nil {
		return 0, err
	}
	m.r.spanCount++
	m.r.sum.Spans++
	out.ID = uint32(m.r.spanCount)
	m.prov.spans[k] = out.ID
	return out.ID, m.r.emit(&out)
}

// provenanceSource is the source binding of an entry: by the text, else by its
// label. 0 if neither tells.
func (m *moduleRun) provenanceSource(f *sourceFile, e *ipe.Entry) (uint32, error) {
	name := ""
	if f != nil && f.text != nil && e.Span.Line != 0 {
		name, _ = f.text.At(int(e.Span.Line))
	}
	if name == "" {
		name = topOf(e.Label)
	}
	if name == "" {
		return 0, nil
	}
	return m.sourceBinding(provenancePackage(e), e.Module, name)
}

func provenancePackage(e *ipe.Entry) string {
	if e.Unit == "" {
		return "main" // before GHC 9.10 the map does not tell
	}
	return hsname.PackageOf(e.Unit)
}

// provenanceFile is an entry's source file.
func (m *moduleRun) provenanceFile(e *ipe.Entry) (*sourceFile, error) {
	name := path.Clean(e.File)
	if f := m.prov.files[name]; f != nil {
		return f, nil
	}
	f := &sourceFile{path: name, pkg: provenancePackage(e), module: e.Module}
	// The map does not tell where the compiler ran: often above the executable.
	dirs := slices.Clone(m.compDirs)
	for d, n := path.Dir(m.mod.Path), 0; path.IsAbs(d) && d != "/" && n < 8; d, n = path.Dir(d), n+1 {
		dirs = append(dirs, d)
	}
	src, problem := m.readSource(name, dirs)
	if src.Text != nil && problem == "" {
		if parsed := hssource.Parse(string(src.Text), name); parsed.Name == "" || parsed.Name == e.Module {
			f.text = &parsed
		}
	}
	var err error
	f.id, err = m.r.emitFile(name, src.Text, problem)
	m.prov.files[name] = f
	return f, err
}

// tableName matches an internal table's label: what it is of, and a unique.
var tableName = regexp.MustCompile(`^(.+)_[a-zA-Z][0-9a-zA-Z]{1,12}_info$`)

// provenanceBinding names the procedure of an info table.
func (m *moduleRun) provenanceBinding(e *ipe.Entry) (uint32, error) {
	if id, ok := m.prov.procs[e.Info]; ok {
		return id, nil
	}
	var f *sourceFile
	var err error
	if e.File != "" {
		if f, err = m.provenanceFile(e); err != nil {
			return 0, err
		}
	}
	at, err := m.provenanceSource(f, e)
	if err != nil {
		return 0, err
	}
	var id uint32
	if s, _, _ := m.syms.at(e.Info); s != nil && s.Addr == e.Info && s.category == eventlog.CategoryHaskell && !s.haskell.Internal {
		id, err = m.externalAt(s.Name, s.haskell, nil, f, at)
	} else {
		id, err = m.provenanceLocal(e, at)
	}
	if err == nil {
		m.prov.procs[e.Info] = id
	}
	return id, err
}

func (m *moduleRun) provenanceLocal(e *ipe.Entry, at uint32) (uint32, error) {
	b := eventlog.Binding{
		Symbol: e.Table, Package: provenancePackage(e), Module: e.Module, Name: e.Label, Parent: at,
		Category: eventlog.CategoryHaskell, Detail: "local to",
	}
	local := ""
	if t := tableName.FindStringSubmatch(e.Table); t != nil {
		o := hsname.Explain(t[1])
		local = cmp.Or(o.Path, o.Source)
	}
	last := e.Label[strings.LastIndexByte(e.Label, '.')+1:]
	switch {
	case e.Label == "":
		b.Name, b.Detail = cmp.Or(local, unnamedCode), "made by GHC"
	case local == "":
		b.Name, b.Detail = below(e.Label, "."+unnamedCode), "subexpression of"
	case local != last:
		b.Name = below(e.Label, "."+local)
	}
	if d := describe(e); d != "" {
		b.Detail = d + ", " + b.Detail
	}
	return m.r.bindings.add(bindingKey{module: m.mod.ID, mod: e.Module, name: e.Table + "\x00" + b.Name}, b)
}

// image is a file as it is loaded, for package ipe. Neighbouring reads are
// served from one page.
type image struct {
	f      *elffile.File
	relocs []elffile.Relocation // by address
	pages  [64]struct {
		addr  uint64
		bytes []byte
	}
}

const pageSize = 64 << 10

func newImage(f *elffile.File, limit uint64) (*image, error) {
	kinds := map[elf.Machine]uint32{elf.EM_X86_64: uint32(elf.R_X86_64_RELATIVE), elf.EM_AARCH64: uint32(elf.R_AARCH64_RELATIVE)}
	kind, ok := kinds[f.Machine]
	if !ok {
		return nil, errors.New("its pointers on this machine are not known")
	}
	relocs, err := f.Relocations(kind, limit)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(relocs, func(a, b elffile.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
	return &image{f: f, relocs: relocs}, nil
}

// Bytes is ipe.Memory's.
func (g *image) Bytes(addr, n uint64) []byte {
	base := addr &^ (pageSize - 1)
	if n > pageSize || addr+n > base+pageSize || addr+n < addr {
		return g.f.ReadAddr(addr, n)
	}
	p := &g.pages[base/pageSize%uint64(len(g.pages))]
	if p.bytes == nil || p.addr != addr&^(pageSize-1) {
		b := g.f.ReadAddr(base, pageSize)
		if len(b) == 0 { // the segment begins within the page
			return g.f.ReadAddr(addr, n)
		}
		p.addr, p.bytes = base, b
	}
	off := addr - base
	if off+n > uint64(len(p.bytes)) {
		return g.f.ReadAddr(addr, n)
	}
	return p.bytes[off : off+n]
}

// Pointer is ipe.Memory's.
func (g *image) Pointer(addr uint64) (uint64, bool) {
	i := sort.Search(len(g.relocs), func(i int) bool { return g.relocs[i].Offset >= addr })
	if i < len(g.relocs) && g.relocs[i].Offset == addr {
		return uint64(g.relocs[i].Addend), true
	}
	b := g.Bytes(addr, 8)
	if len(b) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}
