package cfi

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"ccagent/symbolize/elffile"
)

// Limits bound what a file may cost. Time is proportional to the bytes.
type Limits struct {
	Bytes uint64 // of both sections together; of symbols; of code; of data
	Rows  int    // of the finished table
	// Instructions of Haskell code to work rows out of. With 0, there are
	// only the rows that the frame sections have.
	Instructions int
}

// DefaultLimits are far above the needs of the largest Haskell programs: those
// have some tens of megabytes of frame information.
var DefaultLimits = Limits{Bytes: 512 << 20, Rows: 16 << 20, Instructions: 32 << 20}

// ErrNone is returned for a file without call frame information.
var ErrNone = errors.New("no call frame information")

// span is the rows of one FDE.
type span struct {
	lo, hi     uint64
	first, end int // in compiler.rows
	haskell    bool
	debug      bool // from .debug_frame
}

type absRow struct {
	addr uint64
	rule uint32
}

type compiler struct {
	f       *elffile.File
	arch    *arch
	limits  Limits
	machine machine
	rows    []absRow
	spans   []span
	rules   []Rule
	index   map[Rule]uint32
	stats   Stats
	// Of the entry that is being run.
	common *common
	floor  int // its first row
}

// Compile reads .eh_frame, found by its section or by PT_GNU_EH_FRAME, and
// .debug_frame, and works out rows for Haskell code (see the package's
// documentation). Malformed entries are counted and left out. It returns an
// error that wraps ErrNone where there are no entries at all,
// elffile.ErrTooLarge beyond a limit, or an *elffile.UnsupportedError for
// another machine.
func Compile(f *elffile.File, limits Limits) (*Table, error) {
	c, err := newCompiler(f, limits)
	if err != nil {
		return nil, err
	}
	text, code := c.analyse()
	if len(c.spans) == 0 && len(code) == 0 {
		if c.stats.FirstFault != nil {
			return nil, fmt.Errorf("%w that is well-formed: %w", ErrNone, c.stats.FirstFault)
		}
		return nil, ErrNone
	}
	for i := range code {
		if code[i].group == endOfRange {
			c.stats.Code++
		}
	}
	return c.table(c.overlay(c.joined(), text, code))
}

// newCompiler makes a compiler that has read the frame sections.
func newCompiler(f *elffile.File, limits Limits) (*compiler, error) {
	a := archOf(f.Machine)
	if a == nil {
		return nil, &elffile.UnsupportedError{Kind: "call frame information for " + f.Machine.String()}
	}
	c := &compiler{f: f, arch: a, limits: limits, rules: make([]Rule, 1), index: map[Rule]uint32{{}: 0}}
	c.machine.arch = a
	c.machine.row = c.row

	sections, err := c.sections()
	if err != nil {
		return nil, err
	}
	for i := range sections {
		if err := c.read(&sections[i]); err != nil {
			return nil, err
		}
	}
	c.repairStgRun()
	c.extendHaskell()
	return c, nil
}

// sections finds the frame sections and takes their size from the limit.
func (c *compiler) sections() ([]section, error) {
	var out []section
	eh, ok, err := c.ehFrame()
	if err != nil {
		return nil, err
	}
	if ok {
		out = append(out, eh)
	}
	if s := c.f.DebugSection(".debug_frame"); s != nil {
		data, err := c.f.Data(s, c.limits.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, section{name: s.Name, data: data})
		c.limits.Bytes -= uint64(len(data))
	}
	return out, nil
}

// ehFrame finds .eh_frame and takes its size from the limit; false if there is none.
func (c *compiler) ehFrame() (section, bool, error) {
	out := section{name: ".eh_frame", eh: true}
	if s := c.f.Section(".eh_frame"); s != nil {
		data, err := c.f.Data(s, c.limits.Bytes)
		if err != nil {
			return out, false, err
		}
		out.data, out.addr = data, s.Addr
	} else if addr, ok := c.ehFrameByHeader(); ok {
		out.data, out.addr = c.f.ReadAddr(addr, c.limits.Bytes), addr
	} else {
		return out, false, nil
	}
	c.limits.Bytes -= uint64(len(out.data))
	return out, true, nil
}

const ptGNUEHFrame = 0x6474e550

// ehFrameByHeader finds .eh_frame through .eh_frame_hdr's segment, for files
// without section headers.
func (c *compiler) ehFrameByHeader() (addr uint64, ok bool) {
	for _, p := range c.f.Segments {
		if p.Type != ptGNUEHFrame {
			continue
		}
		h := cursor{b: c.f.ReadAddr(p.Addr, 12), base: p.Addr}
		version, enc := h.u8(), h.u8()
		h.u16() // the encodings of the search table
		addr, ok = h.pointer(enc, p.Addr)
		return addr, ok && version == 1 && !h.bad
	}
	return 0, false
}

func (c *compiler) fault(err *EntryError) {
	c.stats.Malformed++
	if c.stats.FirstFault == nil {
		c.stats.FirstFault = err
	}
}

// read runs all entries of a section.
func (c *compiler) read(s *section) error {
	commons := map[int]*common{} // by offset; nil = malformed
	common := func(off int) *common {
		g, ok := commons[off]
		if !ok {
			g = c.readCommon(s, off)
			commons[off] = g
		}
		return g
	}
	last := 0 // the offset of the last common information
	for off := 0; off < len(s.data); {
		h, fault := s.next(off)
		if fault != nil {
			c.fault(fault)
		}
		if h == nil {
			return nil
		}
		off = h.end
		if h.cie {
			last = h.off
		}
		if fault != nil || h.cie {
			continue
		}
		g := common(h.cieOff)
		// GHC's frame descriptions name the start of their object's section, which no relocation moves when it is linked: in
		// a program whose first object is C code that is C's common information.
		if h.cieOff == 0 && last != 0 && !s.eh {
			if own := common(last); own != nil && own.haskell {
				g = own
			}
		}
		if g == nil {
			c.fault(s.fault(h.off, "no usable common information at %#x", h.cieOff))
			continue
		}
		d, fault := s.description(h, g)
		if fault != nil {
			c.fault(fault)
			continue
		}
		c.run(s, h, g, &d)
		if len(c.rows) > c.limits.Rows {
			return fmt.Errorf("read %s: more than %d rows: %w", s.name, c.limits.Rows, elffile.ErrTooLarge)
		}
	}
	return nil
}

func (c *compiler) readCommon(s *section, off int) *common {
	h, fault := s.next(off)
	if fault != nil || h == nil || !h.cie {
		return nil
	}
	g, fault := s.common(h, &c.machine)
	if fault != nil {
		c.fault(fault)
		return nil
	}
	return g
}

// run makes a span of one FDE.
func (c *compiler) run(s *section, h *header, g *common, d *description) {
	if d.lo == d.hi && !g.haskell {
		return
	}
	if !c.f.Executable(d.lo) {
		return // the linker dropped the code
	}
	c.common, c.floor = g, len(c.rows)
	if err := c.machine.runDescription(g, d); err != nil {
		// Rows before the fault are as good as any, but where the last
		// of them ends is not known.
		c.rows = c.rows[:c.floor]
		c.fault(s.fault(h.off, "%v", err))
		return
	}
	if g.haskell {
		c.stats.Haskell++
	}
	c.spans = append(c.spans, span{
		lo: d.lo, hi: d.hi, first: c.floor, end: len(c.rows), haskell: g.haskell, debug: !s.eh,
	})
}

// row takes a row of the current entry from the machine.
func (c *compiler) row(s *state, location uint64) {
	if len(c.rows) > c.limits.Rows {
		return // read gives the error
	}
	rule := c.intern(c.common.ruleOf(c.arch, s))
	if n := len(c.rows); n > c.floor {
		last := &c.rows[n-1]
		if c.common.haskell && c.machine.spChanged {
			rule = last.rule // doc.go, "C calls"
		}
		switch {
		case location == last.addr:
			last.rule = rule
			return
		case rule == last.rule && !c.common.haskell:
			return
		}
	}
	c.rows = append(c.rows, absRow{location, rule})
}

func (c *compiler) intern(r Rule) uint32 {
	if i, ok := c.index[r]; ok {
		return i
	}
	i := uint32(len(c.rules))
	c.rules = append(c.rules, r)
	c.index[r] = i
	return i
}

// How far apart two functions may be for the bytes between to be taken for
// what is never executed: alignment, and info tables between Haskell code.
const (
	maxPadding   = 15
	maxInfoTable = 95
)

// joined returns the rows of all spans in order. Where two spans overlap, the
// later start wins, and of the same start .eh_frame.
func (c *compiler) joined() []absRow {
	sort.SliceStable(c.spans, func(i, j int) bool {
		a, b := &c.spans[i], &c.spans[j]
		if a.lo != b.lo {
			return a.lo < b.lo
		}
		return a.debug && !b.debug
	})
	var out []absRow
	for i := range c.spans {
		s := &c.spans[i]
		end := s.hi
		next, padding := uint64(math.MaxUint64), uint64(maxPadding)
		if i+1 < len(c.spans) {
			next = c.spans[i+1].lo
			end = min(end, next)
			if s.haskell && c.spans[i+1].haskell {
				padding = maxInfoTable
			}
		}
		for _, r := range c.rows[s.first:s.end] {
			if r.addr >= end {
				break
			}
			out = add(out, r)
		}
		if i+1 == len(c.spans) || next-end > padding {
			out = add(out, absRow{end, 0})
		}
	}
	return out
}

// add appends a row that does not lie before the last one.
func add(rows []absRow, r absRow) []absRow {
	if n := len(rows); n > 0 && rows[n-1].addr == r.addr {
		rows = rows[:n-1]
	}
	if n := len(rows); n > 0 && rows[n-1].rule == r.rule {
		return rows
	}
	return append(rows, r)
}

// table makes the finished table.
func (c *compiler) table(rows []absRow) (*Table, error) {
	if len(rows) == 0 {
		return nil, ErrNone
	}
	if len(rows) > c.limits.Rows {
		return nil, fmt.Errorf("%d rows: %w of %d", len(rows), elffile.ErrTooLarge, c.limits.Rows)
	}
	base, last := rows[0].addr, rows[len(rows)-1].addr
	if last-base > math.MaxUint32 {
		return nil, fmt.Errorf("code at %#x and %#x in one module: %w", base, last, elffile.ErrTooLarge)
	}
	t := &Table{Base: base, Rows: make([]Row, len(rows)), Rules: c.rules, Stats: c.stats}
	for i, r := range rows {
		t.Rows[i] = Row{uint32(r.addr - base), r.rule}
	}
	return t, nil
}
