// Package symtab is the evidence of symbol tables: a module's, and the kernel's.
//
// A symbol names the code that its size covers. GHC's internal labels are in no symbol
// table, so Haskell code without a symbol is common; its module is that
// of the symbols around it. C code without a symbol is known by its unwinding information.
package symtab

import (
	"context"
	"debug/elf"
	"fmt"
	"strings"
	"sync"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/cfi"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/gccode"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/modulecode"
)

// Evidence is a module's symbol table as evidence.
type Evidence struct {
	*Table
	elf    *elffile.File
	info   *binary.Info
	memory uint64 // for reading .eh_frame

	c     cfi.Ranges // what a C compiler made; see isC
	cRead bool
	gc    func() gccode.Collector // the collector's part of it
	homes func() *modulecode.Map  // whose the Haskell code is where no symbol says it

	// Procedures after those of the symbols, which are numbered in the order of the
	// table.
	further []evidence.Procedure
	numbers map[further]evidence.ProcID
}

// further identifies a procedure that no symbol names.
type further struct {
	owner evidence.Owner
	name  string
}

var _ evidence.Evidence = (*Evidence)(nil)

// New makes evidence of a module's symbols. memory bounds, in bytes, what is read of its
// unwinding information. Once ctx is done neither the collector nor modules are looked for.
func New(ctx context.Context, t *Table, f *elffile.File, info *binary.Info, memory uint64) *Evidence {
	e := &Evidence{Table: t, elf: f, info: info, memory: memory, numbers: map[further]evidence.ProcID{}}
	e.gc = sync.OnceValue(func() gccode.Collector { return e.collector(ctx) })
	e.homes = sync.OnceValue(func() *modulecode.Map { return e.modules(ctx) })
	return e
}

// At is evidence.Evidence's: by a symbol that covers the address, else by what lies
// around it.
func (e *Evidence) At(addr uint64) (evidence.Code, bool) {
	covering, next := e.find(addr)
	switch {
	case covering >= 0:
		c := e.code(covering, eventlog.QualityExact)
		if covering == next-1 { // else a shorter symbol lies in it before here
			s := e.order[covering]
			c.Lo, c.Hi = s.addr, s.addr+s.size
			if next < len(e.order) {
				c.Hi = min(c.Hi, e.order[next].addr)
			}
		}
		return c, true
	case !e.elf.Executable(addr):
		return evidence.Code{}, false // not code of this file
	}
	c, ok := e.around(next, addr)
	if len(e.order) == 0 {
		c.Lo, c.Hi = e.nameless(addr)
	}
	return c, ok
}

// nameless gives a stretch around an address where no symbol is in the file: the same compiler's code, and in or out of
// the collector; an empty one outside of sections.
func (e *Evidence) nameless(addr uint64) (lo, hi uint64) {
	for i := range e.elf.Sections {
		if s := &e.elf.Sections[i]; s.Flags&elf.SHF_EXECINSTR != 0 && addr-s.Addr < s.Size {
			lo, hi = s.Addr, s.Addr+s.Size
			break
		}
	}
	gc := e.gc()
	for _, ranges := range []cfi.Ranges{e.functions(), gc.Code, gc.Locks} {
		r := ranges.Around(addr)
		lo, hi = max(lo, r.Lo), min(hi, r.Hi)
	}
	if e.ownHaskell(addr) {
		return e.homes().Around(addr, lo, hi)
	}
	return lo, hi
}

// Procedure is evidence.Evidence's.
func (e *Evidence) Procedure(id evidence.ProcID) evidence.Procedure {
	if i := int(id) - 1 - len(e.order); i >= 0 {
		return e.further[i]
	}
	s := e.symbol(int(id) - 1)
	p := evidence.Procedure{Kind: evidence.Foreign, Symbol: s.Name, Category: s.Category}
	if s.Category == eventlog.CategoryHaskell {
		p.Kind, p.Linkage = evidence.Exported, s.Haskell
	}
	return p
}

// code is what a symbol says of addresses in it.
func (e *Evidence) code(i int, q eventlog.Quality) evidence.Code {
	s := e.symbol(i)
	return evidence.Code{Proc: evidence.ProcID(i + 1), Start: s.Addr, Quality: q, Category: s.Category}
}

// unnamed gives the number of a procedure that no symbol names.
func (e *Evidence) unnamed(k further, p evidence.Procedure) evidence.ProcID {
	id, ok := e.numbers[k]
	if !ok {
		e.further = append(e.further, p)
		id = evidence.ProcID(len(e.order) + len(e.further))
		e.numbers[k] = id
	}
	return id
}

// around describes an address that no symbol covers: its code belongs to the module of its
// neighbours, but has neither's name.
func (e *Evidence) around(next int, addr uint64) (evidence.Code, bool) {
	if gc := e.gc(); gc.Code.Contains(addr) {
		name := NamelessGC
		if gc.Locks.Contains(addr) {
			name = eventlog.NamelessGCLock
		}
		id := e.unnamed(further{name: name}, evidence.Procedure{Kind: evidence.Foreign, Symbol: name, Category: eventlog.CategoryGC})
		return evidence.Code{Proc: id, Quality: eventlog.QualityNear, Category: eventlog.CategoryGC}, true
	}
	before, after := e.symbol(next-1), e.symbol(next)
	haskell := func(s *Symbol) bool { return s != nil && s.Category == eventlog.CategoryHaskell }
	between := haskell(before) && haskell(after)
	var owner *Symbol
	switch {
	case between && before.Haskell.Module == after.Haskell.Module && before.Haskell.Unit == after.Haskell.Unit:
		owner = before
	case between:
		// GHC writes local code before the exported code it belongs to, and a
		// module's constructors last: between two modules lies the second's.
		owner = after
	case e.info.GHC && (haskell(after) || haskell(before)) && e.isHaskell(before, addr):
		// At the edge of a Haskell module's code, of which only one side has symbols: the
		// program's first module follows the C compiler's frame_dummy.
		if owner = after; !haskell(after) {
			owner = before
		}
		if before = owner; after != owner {
			after = owner
		}
	}
	if owner != nil {
		k := further{evidence.Owner{Package: owner.Haskell.Package, Module: owner.Haskell.Module}, unnamedBetween(before, after)}
		id := e.unnamed(k, evidence.Procedure{Kind: evidence.Stretch, Owner: k.owner, Path: k.name, Category: eventlog.CategoryHaskell})
		c := evidence.Code{Proc: id, Quality: eventlog.QualityNear, Category: eventlog.CategoryHaskell}
		if between && len(e.gc().Code) == 0 && e.reach[next-1] <= addr {
			c.Lo, c.Hi = e.reach[next-1], e.order[next].addr
		}
		return c, true
	}
	// C: a function without a size, as assembly code has them, or padding.
	const near = 4096
	switch {
	case before != nil && !haskell(before) && addr-before.Addr < near && (before.Size == 0 || addr-before.Addr-before.Size < 16):
		return e.code(next-1, eventlog.QualityNear), true
	case before != nil && after != nil && before.Category == after.Category:
		return evidence.Code{Category: before.Category}, true
	case !e.info.GHC:
		return evidence.Code{Category: eventlog.CategoryForeign}, true
	case e.ownHaskell(addr):
		owner, q := e.home(addr)
		name := NamelessHaskell
		if owner.Module != "" {
			name = NamelessOf
		}
		id := e.unnamed(further{owner, name}, evidence.Procedure{Kind: evidence.Stretch, Owner: owner, Path: name, Category: eventlog.CategoryHaskell})
		return evidence.Code{Proc: id, Quality: q, Category: eventlog.CategoryHaskell}, true
	case e.isC(addr):
		// The run-time system's, or a library's: without a name its category is
		// unknown.
		name := NamelessC
		if e.info.RTS && e.info.Library {
			name = NamelessRTS
		}
		id := e.unnamed(further{name: name}, evidence.Procedure{Kind: evidence.Foreign, Symbol: name, Category: eventlog.CategoryUnresolved})
		return evidence.Code{Proc: id, Quality: eventlog.QualityNear}, true
	}
	return evidence.Code{}, false
}

// Names that stand for code without a symbol. A shared run-time system has only functions of
// its own. Haskell code includes Cmm code, which looks the same.
const (
	NamelessC       = "(C code without symbols)"
	NamelessGC      = "(garbage collector's C code without symbols)"
	NamelessRTS     = "(run-time system's C code without symbols)"
	NamelessHaskell = "(Haskell code without symbols)"
	NamelessOf      = "(no symbols)" // behind the module that it is known to be of
)

// ownHaskell reports whether an address that no symbol is near, as in stripped programs, is in Haskell code:
// GHC writes no unwinding information that C compilers write.
func (e *Evidence) ownHaskell(addr uint64) bool {
	return e.text(addr) && !e.isC(addr) && !(e.info.RTS && e.info.Library)
}

// home says whose such code is, as far as it is known: of one module, or of one of several that are linked one after the
// other, "Data.Map.Internal to Data.Set".
func (e *Evidence) home(addr uint64) (evidence.Owner, eventlog.Quality) {
	h, ok := e.homes().At(addr)
	if !ok {
		return evidence.Owner{}, eventlog.QualityNear
	}
	owner := evidence.Owner{Package: ghc.PackageOf(h.Unit), Module: h.Last.Name}
	switch {
	case h.First.Name == "":
		owner.Module = "up to " + h.Last.Name
	case !h.Known():
		owner.Module = h.First.Name + " to " + h.Last.Name
	}
	return owner, eventlog.QualityExact
}

// modules finds whose code it is where no symbol says it.
func (e *Evidence) modules(ctx context.Context) *modulecode.Map {
	if known := e.found.modules; known != nil {
		return known
	}
	m, err := modulecode.Find(ctx, e.elf, e.info.Profiled())
	if err != nil {
		return &modulecode.Map{} // a file that ends before its data do, or ctx is done
	}
	e.found.modules, e.found.fresh = m, true
	return m
}

// crtCode is more than what functions without a size that begin a program take: those of the C
// compiler's start files, of which frame_dummy is the last.
const crtCode = 16

// isHaskell reports whether an address next to Haskell code, that no symbol covers, is
// Haskell code as well: no C compiler described it, and it is not of what lies before it.
func (e *Evidence) isHaskell(before *Symbol, addr uint64) bool {
	if !e.text(addr) || e.isC(addr) {
		return false
	}
	if before == nil || before.Category == eventlog.CategoryHaskell {
		return true
	}
	return before.Category != eventlog.CategorySTG && addr-before.Addr >= max(before.Size, crtCode)
}

// text reports whether an address is in a section that compilers write code to, and not in
// one of the linker's.
func (e *Evidence) text(addr uint64) bool {
	for i := range e.elf.Sections {
		if s := &e.elf.Sections[i]; s.Flags&elf.SHF_EXECINSTR != 0 && addr-s.Addr < s.Size {
			return strings.HasPrefix(s.Name, ".text")
		}
	}
	return false
}

// maxFrameSection bounds the .eh_frame that isC reads.
const maxFrameSection = 64 << 20

// isC reports whether a C compiler made the code, by the unwinding information
// that it writes and GHC does not.
func (e *Evidence) isC(addr uint64) bool {
	return e.functions().Contains(addr)
}

func (e *Evidence) functions() cfi.Ranges {
	if !e.cRead {
		e.cRead = true
		e.c = cfi.Functions(e.elf, min(e.memory, maxFrameSection))
	}
	return e.c
}

// collector finds the garbage collector's functions where no symbol names them.
func (e *Evidence) collector(ctx context.Context) gccode.Collector {
	if !e.info.RTS {
		return gccode.Collector{}
	}
	if e.found.named == nil {
		named := e.names("GarbageCollect")
		e.found.named, e.found.fresh = &named, true
	}
	if *e.found.named {
		return gccode.Collector{}
	}
	if known := e.found.collector; known != nil {
		return *known
	}
	c, err := gccode.Find(ctx, e.elf, e.functions())
	if err != nil {
		return gccode.Collector{} // a file that ends before its code does, or ctx is done
	}
	e.found.collector, e.found.fresh = &c, true
	return c
}

// unnamedBetween says where local code lies, by the exported code that follows
// it in its module, or else precedes it. That is a place, not an owner: in
// programs with source notes, half of such code is of the binding that follows.
func unnamedBetween(before, after *Symbol) string {
	const longest = 100
	b, a := before.Haskell, after.Haskell
	same := b.Module == a.Module && b.Unit == a.Unit
	where, n := "before", a
	if a.Kind == hsname.KindConInfo && same {
		where, n = "after", b // constructors lie last, away from what uses them
	}
	if n.Name == "" || n.Kind == hsname.KindConInfo || n.Internal || len(n.Name) > longest {
		return evidence.Unnamed
	}
	return fmt.Sprintf("(local code %s %s)", where, n.Name)
}
