package symtab

import (
	"cmp"
	"debug/elf"
	"math"
	"slices"
	"sort"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/hsname"
)

// Symbol is a symbol of code.
type Symbol struct {
	elffile.Symbol
	Category eventlog.Category
	Haskell  hsname.Name // of a Haskell symbol
}

// Table finds the symbol of an address. What a capture asks for is few of a large program's
// symbols, so names are understood only of those that it has asked for.
type Table struct {
	all   []elffile.Symbol
	order []entry // symbols of code, by address; one an address
	// reach is the largest end of the symbols up to each: it bounds the search
	// for one that covers an address from far before it.
	reach      []uint64
	understood map[int]*Symbol // by position in order
	holdsRTS   bool
	// settled are the categories that follow from neighbours, by position in order.
	settled map[int]eventlog.Category

	// defined holds the names of all symbols, data included; nil until it is asked for.
	defined *names
	// classes are the type classes whose dictionary constructors are seen, likewise.
	classes map[string]bool
}

// entry is a symbol in order of address.
type entry struct {
	addr  uint64
	index int32 // in Table.all
}

// Defines is evidence.Symbols'.
func (t *Table) Defines(name string) bool {
	if t.defined == nil {
		t.defined = newNames(t.all)
	}
	return t.defined.has(name)
}

// Begins is evidence.Symbols'.
func (t *Table) Begins(lo, hi uint64) bool {
	i := sort.Search(len(t.order), func(i int) bool { return t.order[i].addr >= lo })
	return i < len(t.order) && t.order[i].addr < hi
}

// IsClass is evidence.Symbols'.
func (t *Table) IsClass(name string) bool {
	if t.classes == nil {
		t.classes = map[string]bool{}
		for i := range t.all {
			constructor, ok := strings.CutSuffix(t.all[i].Name, "_con_info")
			if !ok {
				continue
			}
			if _, class, ok := strings.Cut(constructor, "_CZC"); ok { // the constructor C:Eq
				if class, ok = hsname.Decode(class); ok {
					t.classes[class] = true
				}
			}
		}
	}
	return t.classes[name]
}

// NewTable makes a table of the symbols that name code in f. all may be a separate debug
// file's; holdsRTS is set where the run-time system's own code is in the file. The table keeps
// all, and changes it.
func NewTable(f *elffile.File, all []elffile.Symbol, holdsRTS bool) *Table {
	t := &Table{all: all, understood: map[int]*Symbol{}, settled: map[int]eventlog.Category{}, holdsRTS: holdsRTS}
	all = all[:min(len(all), math.MaxInt32)]
	for i := range all {
		s := &all[i]
		// A debug file has the run-time system's symbols without its strings.
		t.holdsRTS = t.holdsRTS || s.Name == ghc.UpdateFrameName+ghc.InfoSuffix
		if s.Type == elf.STT_TLS || s.Section >= elf.SHN_LORESERVE {
			continue
		}
		if int(s.Section) < len(f.Sections) {
			if f.Sections[s.Section].Flags&elf.SHF_EXECINSTR == 0 {
				continue
			}
		} else if !f.Executable(s.Addr) {
			continue
		}
		if s.Addr+s.Size < s.Addr {
			s.Size = 0
		}
		t.order = append(t.order, entry{s.Addr, int32(i)})
	}
	slices.SortFunc(t.order, func(a, b entry) int {
		switch {
		case a.addr < b.addr:
			return -1
		case a.addr > b.addr:
			return 1
		}
		return cmp.Or(better(&all[b.index])-better(&all[a.index]), int(a.index)-int(b.index))
	})
	t.order = slices.CompactFunc(t.order, func(a, b entry) bool { return a.addr == b.addr })
	t.reach = make([]uint64, len(t.order))
	end := uint64(0)
	for i, e := range t.order {
		end = max(end, e.addr+all[e.index].Size)
		t.reach[i] = end
	}
	return t
}

// better ranks the symbols of one address: the one that people know.
func better(s *elffile.Symbol) int {
	n := 0
	if s.Size > 0 {
		n += 8
	}
	if s.Type == elf.STT_FUNC || s.Type == elf.STT_OBJECT {
		n += 4
	}
	switch s.Bind {
	case elf.STB_GLOBAL:
		n += 2
	case elf.STB_WEAK:
		n++
	}
	return n
}

// Find returns the symbol whose size covers addr, and the ones next to it on both
// sides; each may be nil.
func (t *Table) Find(addr uint64) (covering, before, after *Symbol) {
	c, next := t.find(addr)
	return t.symbol(c), t.symbol(next - 1), t.symbol(next)
}

// symbol gives a symbol by its position; nil where there is none.
func (t *Table) symbol(i int) *Symbol {
	if i < 0 || i >= len(t.order) {
		return nil
	}
	s := t.understood[i]
	if s == nil {
		s = t.understand(i)
		t.understood[i] = s
	}
	return s
}

// find gives the position of the symbol whose size covers addr, -1 if there is none, and
// of the first symbol after addr.
func (t *Table) find(addr uint64) (covering, next int) {
	next = sort.Search(len(t.order), func(i int) bool { return t.order[i].addr > addr })
	const far = 256
	for j := next - 1; j >= 0 && next-j < far && t.reach[j] > addr; j-- {
		if e := t.order[j]; addr-e.addr < t.all[e.index].Size {
			return j, next
		}
	}
	return -1, next
}
