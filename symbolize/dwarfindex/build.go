package dwarfindex

import (
	"bytes"
	"context"
	"debug/dwarf"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
)

// Sections are the DWARF sections of a file, as readers over their
// decompressed bytes. Info and Abbrev are needed; the others may be empty.
type Sections struct {
	Info     io.ReaderAt
	InfoSize uint64
	Abbrev   []byte
	Str      []byte
	LineStr  []byte
	Line     []byte
}

// Options bound a Build.
type Options struct {
	// Memory is the most that the index and one unit may hold, in bytes; 0
	// stands for 256 MB.
	Memory uint64
	// Executable reports whether code lies at an address. Procedures that do
	// not begin in code were dropped by the linker. Nil accepts all but 0.
	Executable func(addr uint64) bool
}

// ErrMemory is wrapped by Build's error when the budget is spent; the index it
// returns holds the units read so far.
var ErrMemory = errors.New("memory budget spent")

const (
	defaultMemory = 256 << 20
	maxDepth      = 1 << 12
	maxAbbrevMemo = 1 << 10
)

// Build reads the debugging information of GHC's units, and the headers of
// others. It returns what could be read together with the first error that
// ended the reading; malformed units are left out and reported in Index.Problems.
func Build(ctx context.Context, s Sections, opt Options) (*Index, error) {
	if opt.Memory == 0 {
		opt.Memory = defaultMemory
	}
	if opt.Executable == nil {
		opt.Executable = func(addr uint64) bool { return addr != 0 }
	}
	b := newBuilder(s, opt)
	b.reserve()
	err := b.units(ctx)
	b.finish()
	return b.x, err
}

func newBuilder(s Sections, opt Options) *builder {
	return &builder{
		x:       &Index{procs: make([]proc, 1), blocks: make([]block, 1), notes: make([]note, 1), spans: make([]Span, 1), files: []string{""}},
		s:       s,
		opt:     opt,
		files:   map[string]uint32{"": 0},
		spanIDs: map[Span]uint32{},
		dies:    make([]uint64, 1),
		memo:    map[abbrevKey]*abbrevTable{},
		noted:   map[uint32]bool{},
	}
}

type abbrevKey struct {
	off                  uint64
	addrSize, offsetSize int
	version              uint16
}

type builder struct {
	x       *Index
	s       Sections
	opt     Options
	files   map[string]uint32
	spanIDs map[Span]uint32
	dies    []uint64 // offset of each block's entry; sorted, for tick parents
	links   []link
	memo    map[abbrevKey]*abbrevTable
	lines   lineTable
	noted   map[uint32]bool // units that have source notes

	recent   [1 << 13]uint32 // span ids
	lastPath []byte
	lastFile uint32
}

// link is a tick parent that is still an offset.
type link struct {
	proc ProcID
	die  uint64
}

func (b *builder) units(ctx context.Context) error {
	us := units{r: b.s.Info, size: b.s.InfoSize, limit: b.opt.Memory / 2}
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read .debug_info: %w", context.Cause(ctx))
		}
		u, err := us.next()
		var skip *UnitError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &skip):
			b.x.problem("%v", skip)
			continue
		case err != nil:
			return err
		}
		if err := b.unit(&u); err != nil {
			b.x.problem("%v", err)
		}
		if used := b.used() + uint64(cap(us.buf)); used > b.opt.Memory {
			return fmt.Errorf("read .debug_info up to %#x of %#x: %w", us.off, us.size, ErrMemory)
		}
	}
}

// reserve makes room for what GHC's .debug_info of that size usually holds, a
// block in about 60 bytes, so that arrays are not copied as they grow.
func (b *builder) reserve() {
	n := int(min(b.s.InfoSize/60, b.opt.Memory/1024))
	b.x.blocks = append(make([]block, 0, n+1), b.x.blocks...)
	b.dies = append(make([]uint64, 0, n+1), b.dies...)
	b.x.notes = append(make([]note, 0, n+1), b.x.notes...)
	b.x.procs = append(make([]proc, 0, n/5+1), b.x.procs...)
}

// used estimates what the index takes, its construction included.
func (b *builder) used() uint64 {
	return uint64(b.x.Bytes()) + uint64(len(b.dies))*8 + uint64(len(b.spanIDs))*48 + uint64(len(b.x.blocks))*28
}

func (b *builder) abbrevs(u *unit) (*abbrevTable, bool) {
	k := abbrevKey{u.abbrevOff, u.addrSize, u.offsetSize, u.version}
	if t, ok := b.memo[k]; ok {
		return t, t != nil
	}
	t, ok := parseAbbrevs(b.s.Abbrev, u.abbrevOff, u.addrSize, u.offsetSize, u.version)
	if len(b.memo) >= maxAbbrevMemo {
		clear(b.memo)
	}
	b.memo[k] = t
	return t, ok
}

// unit reads one unit.
func (b *builder) unit(u *unit) error {
	table, ok := b.abbrevs(u)
	if !ok {
		return &UnitError{u.offset, fmt.Sprintf("malformed abbreviations at %#x", u.abbrevOff)}
	}
	c := u.body
	root := table.get(c.uleb())
	if c.bad || root == nil || root.tag != dwarf.TagCompileUnit && root.tag != dwarf.TagPartialUnit && root.tag != dwarf.TagSkeletonUnit {
		return &UnitError{u.offset, "does not begin with a compilation unit"}
	}
	info := b.unitEntry(u, &c, root)
	b.x.Entries++
	if c.bad {
		return &UnitError{u.offset, "compilation unit's entry is cut off"}
	}
	b.x.units = append(b.x.units, info)
	if !info.Haskell || !root.children {
		return nil
	}
	firstBlock, firstProc, notes := len(b.x.blocks), len(b.x.procs), len(b.x.notes)
	err := b.haskell(u, &c, table, uint32(len(b.x.units)-1))
	if len(b.x.notes) > notes {
		b.noted[uint32(len(b.x.units)-1)] = true
	}
	b.markDead(&info, firstBlock)
	b.positions(&info, firstProc)
	return err
}

func (b *builder) unitEntry(u *unit, c *cursor, a *abbrev) Unit {
	info := Unit{Offset: u.offset}
	var lowForm, highForm uint32
	for _, s := range a.specs {
		switch s.attr {
		case dwarf.AttrName:
			info.Name = string(u.text(c, s, b.s.Str, b.s.LineStr))
		case dwarf.AttrCompDir:
			info.CompDir = string(u.text(c, s, b.s.Str, b.s.LineStr))
		case dwarf.AttrProducer:
			info.Producer = string(u.text(c, s, b.s.Str, b.s.LineStr))
		case dwarf.AttrLanguage:
			info.Haskell = u.number(c, s) == languageHaskell
		case dwarf.AttrLowpc:
			info.Lo, lowForm = u.number(c, s), s.form
		case dwarf.AttrHighpc:
			info.Hi, highForm = u.number(c, s), s.form
		case dwarf.AttrStmtList:
			info.StmtList, info.HasLines = u.number(c, s), true
		default:
			u.skipForm(c, s.form)
		}
	}
	if highForm != 0 && highForm != formAddr {
		info.Hi += info.Lo
	}
	if lowForm == formAddrx || lowForm >= formAddrx1 && lowForm <= formAddrx4 {
		info.Lo, info.Hi = 0, 0 // an index into a table that is not read here
	}
	return info
}

// scope is an open entry of the tree.
type scope struct {
	block BlockID // the innermost block around, or NoBlock
	last  uint32  // last note of that block, to keep their order
}

// haskell reads the entries below a GHC compilation unit.
func (b *builder) haskell(u *unit, c *cursor, table *abbrevTable, unitIndex uint32) error {
	x := b.x
	stack := make([]scope, 1, 64)
	for len(stack) > 0 {
		start := c.off
		if start >= len(c.b) {
			return nil // ends without its closing null entries: all of it is read
		}
		code := c.uleb()
		if code == 0 {
			if c.bad {
				return &UnitError{u.offset, fmt.Sprintf("cut off at %#x", start)}
			}
			stack = stack[:len(stack)-1]
			continue
		}
		a := table.get(code)
		if a == nil {
			return &UnitError{u.offset, fmt.Sprintf("undeclared abbreviation %d at %#x", code, start)}
		}
		x.Entries++
		top := &stack[len(stack)-1]
		inner := scope{block: top.block}
		switch a.tag {
		case dwarf.TagSubprogram:
			inner = scope{block: b.subprogram(u, c, a, unitIndex, start)}
		case dwarf.TagLexDwarfBlock:
			if top.block != NoBlock {
				inner = scope{block: b.lexicalBlock(u, c, a, top.block, len(stack), start)}
				break
			}
			b.skipEntry(u, c, a)
		case tagGHCSrcNote:
			if top.block != NoBlock {
				b.sourceNote(u, c, a, top)
				break
			}
			b.skipEntry(u, c, a)
		default:
			b.skipEntry(u, c, a)
		}
		if c.bad {
			return &UnitError{u.offset, fmt.Sprintf("entry at %#x is cut off", start)}
		}
		if a.children {
			if len(stack) >= maxDepth {
				return &UnitError{u.offset, fmt.Sprintf("nested deeper than %d at %#x", maxDepth, start)}
			}
			stack = append(stack, inner)
		}
		if x.Entries&0xfff == 0 && b.used() > b.opt.Memory {
			return &UnitError{u.offset, fmt.Sprintf("cut short at %#x: %v", start, ErrMemory)}
		}
	}
	return nil
}

func (b *builder) skipEntry(u *unit, c *cursor, a *abbrev) {
	if a.fixed >= 0 {
		c.skip(uint64(a.fixed))
		return
	}
	for _, s := range a.specs {
		u.skipForm(c, s.form)
	}
}

func (b *builder) newBlock(blk block, die uint64) BlockID {
	b.x.blocks = append(b.x.blocks, blk)
	b.dies = append(b.dies, die)
	return BlockID(len(b.x.blocks) - 1)
}

func (b *builder) subprogram(u *unit, c *cursor, a *abbrev, unitIndex uint32, start int) BlockID {
	var p proc
	var blk block
	var highForm uint32
	id := ProcID(len(b.x.procs))
	p.unit = unitIndex
	for _, s := range a.specs {
		switch s.attr {
		case dwarf.AttrName:
			p.name = b.x.intern(u.text(c, s, b.s.Str, b.s.LineStr))
		case dwarf.AttrLinkageName, attrMIPSLinkage:
			p.linkage = b.x.intern(u.text(c, s, b.s.Str, b.s.LineStr))
		case dwarf.AttrLowpc:
			blk.lo = u.number(c, s)
		case dwarf.AttrHighpc:
			blk.hi, highForm = u.number(c, s), s.form
		case attrGHCTickPar:
			die := u.number(c, s)
			if s.form != formRefAddr {
				die += u.offset
			}
			b.links = append(b.links, link{id, die})
		default:
			u.skipForm(c, s.form)
		}
	}
	if highForm != 0 && highForm != formAddr {
		blk.hi += blk.lo
	}
	blk.proc = id
	p.root = b.newBlock(blk, u.offset+uint64(start))
	b.x.procs = append(b.x.procs, p)
	return p.root
}

func (b *builder) lexicalBlock(u *unit, c *cursor, a *abbrev, parent BlockID, depth, start int) BlockID {
	blk := block{parent: parent, proc: b.x.blocks[parent].proc, depth: uint16(depth)}
	if a.shape == shapeBlock {
		c.cstring()
		blk.lo, blk.hi = c.u64(), c.u64()
		return b.newBlock(blk, u.offset+uint64(start))
	}
	var highForm uint32
	for _, s := range a.specs {
		switch s.attr {
		case dwarf.AttrLowpc:
			blk.lo = u.number(c, s)
		case dwarf.AttrHighpc:
			blk.hi, highForm = u.number(c, s), s.form
		default:
			u.skipForm(c, s.form)
		}
	}
	if highForm != 0 && highForm != formAddr {
		blk.hi += blk.lo
	}
	return b.newBlock(blk, u.offset+uint64(start))
}

func (b *builder) sourceNote(u *unit, c *cursor, a *abbrev, in *scope) {
	var s Span
	if a.shape == shapeNote {
		s.File = b.file(c.cstring())
		s.Line, s.Col, s.EndLine, s.EndCol = c.u32(), uint32(c.u16()), c.u32(), uint32(c.u16())
		b.addNote(c, s, in)
		return
	}
	for _, spec := range a.specs {
		switch spec.attr {
		case attrGHCSpanFile:
			s.File = b.file(u.text(c, spec, b.s.Str, b.s.LineStr))
		case attrGHCSpanLine:
			s.Line = uint32(u.number(c, spec))
		case attrGHCSpanCol:
			s.Col = uint32(u.number(c, spec))
		case attrGHCSpanELine:
			s.EndLine = uint32(u.number(c, spec))
		case attrGHCSpanECol:
			s.EndCol = uint32(u.number(c, spec))
		default:
			u.skipForm(c, spec.form)
		}
	}
	b.addNote(c, s, in)
}

// addNote adds a note to the block around it.
func (b *builder) addNote(c *cursor, s Span, in *scope) {
	if c.bad || s.File == 0 || s.Line == 0 {
		return
	}
	id := b.span(s)
	b.x.notated = true
	b.x.notes = append(b.x.notes, note{span: id})
	n := uint32(len(b.x.notes) - 1)
	if in.last == 0 {
		b.x.blocks[in.block].note = n
	} else {
		b.x.notes[in.last].next = n
	}
	in.last = n
}

// span interns a span. Neighbouring blocks have notes in common, so a small
// cache answers most.
func (b *builder) span(s Span) uint32 {
	slot := &b.recent[(s.Line*31+s.Col*7+s.EndLine*13+s.EndCol)%uint32(len(b.recent))]
	if *slot != 0 && b.x.spans[*slot] == s {
		return *slot
	}
	id, ok := b.spanIDs[s]
	if !ok {
		id = uint32(len(b.x.spans))
		b.x.spans = append(b.x.spans, s)
		b.spanIDs[s] = id
	}
	*slot = id
	return id
}

// file interns a path, without a leading "./".
func (b *builder) file(p []byte) uint32 {
	if bytes.Equal(p, b.lastPath) {
		return b.lastFile
	}
	id := b.internFile(p)
	b.lastPath, b.lastFile = append(b.lastPath[:0], p...), id
	return id
}

func (b *builder) internFile(p []byte) uint32 {
	for bytes.HasPrefix(p, []byte("./")) {
		p = p[2:]
	}
	if id, ok := b.files[string(p)]; ok {
		return id
	}
	const maxPath = 4096
	if len(p) > maxPath {
		return 0
	}
	name := string(p)
	id, ok := b.files[path.Clean(name)]
	if !ok {
		id = uint32(len(b.x.files))
		b.x.files = append(b.x.files, path.Clean(name))
		b.files[path.Clean(name)] = id
	}
	b.files[name] = id
	return id
}

// markDead marks blocks without code, and all of a procedure that the linker
// dropped. A dropped procedure lies at the addresses it had in its object
// file's section, near 0, and its blocks may reach into the program's own: so
// its beginning decides for all. Where a unit is one section (no
// -split-sections), the unit's beginning does.
func (b *builder) markDead(info *Unit, firstBlock int) {
	x := b.x
	wholeUnit := info.Lo != info.Hi && !b.opt.Executable(info.Lo) && b.oneSection(firstBlock)
	for i := firstBlock; i < len(x.blocks); i++ {
		blk := &x.blocks[i]
		root := &x.blocks[x.procs[blk.proc].root]
		switch {
		case blk.lo >= blk.hi, wholeUnit, !b.opt.Executable(blk.lo):
			blk.flags |= flagDead
		case root.lo < root.hi && root.flags&flagDead != 0:
			blk.flags |= flagDead
		}
	}
}

// oneSection reports whether the unit's code lies together: each procedure
// begins where the code before it ends, but for its info table and alignment.
// (With -split-sections the linker may have dropped the unit's beginning alone.)
func (b *builder) oneSection(firstBlock int) bool {
	const between = 512
	end := uint64(0)
	for i := firstBlock; i < len(b.x.blocks); i++ {
		blk := &b.x.blocks[i]
		if blk.lo >= blk.hi {
			if blk.parent == NoBlock { // dropped, and its addresses zeroed
				return false
			}
			continue
		}
		if blk.parent == NoBlock && end != 0 && (blk.lo+between < end || blk.lo > end+between) {
			return false
		}
		end = max(end, blk.hi)
	}
	return true
}

// finish resolves links and sorts the ranges.
func (b *builder) finish() {
	x := b.x
	for _, l := range b.links {
		if int(l.proc) >= len(x.procs) {
			continue
		}
		if i, ok := slices.BinarySearch(b.dies[1:], l.die); ok {
			if id := BlockID(i + 1); x.blocks[id].proc != l.proc {
				x.procs[l.proc].tickParent = id
			}
		}
	}
	b.entryNotes()
	x.segs = buildSegments(x.blocks)
	x.blocks, x.procs, x.notes = slices.Clip(x.blocks), slices.Clip(x.procs), slices.Clip(x.notes)
	x.spans, x.arena = slices.Clip(x.spans), slices.Clip(x.arena)
}
