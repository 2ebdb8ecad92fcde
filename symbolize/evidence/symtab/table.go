package symtab

import (
	"debug/elf"
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

func (s *Symbol) local() bool  { return s.Bind == elf.STB_LOCAL }
func (s *Symbol) hidden() bool { return s.Vis == elf.STV_HIDDEN || s.Vis == elf.STV_INTERNAL }

// Table finds the symbol of an address.
type Table struct {
	symbols []Symbol // by address; one an address
	// reach is the largest end of the symbols up to each: it bounds the search
	// for one that covers an address from far before it.
	reach []uint64
	// defined holds the names of all symbols, data included.
	defined map[string]bool
	// classes are the type classes whose dictionary constructors are seen.
	classes map[string]bool
}

// Defines is evidence.Symbols'.
func (t *Table) Defines(name string) bool { return t.defined[name] }

// Begins is evidence.Symbols'.
func (t *Table) Begins(lo, hi uint64) bool {
	i := sort.Search(len(t.symbols), func(i int) bool { return t.symbols[i].Addr >= lo })
	return i < len(t.symbols) && t.symbols[i].Addr < hi
}

// IsClass is evidence.Symbols'.
func (t *Table) IsClass(name string) bool { return t.classes[name] }

// NewTable makes a table of the symbols that name code in f. all may be a separate debug
// file's; holdsRTS is set where the run-time system's own code is in the file.
func NewTable(f *elffile.File, all []elffile.Symbol, holdsRTS bool) *Table {
	t := &Table{defined: make(map[string]bool, len(all)), classes: map[string]bool{}}
	for _, s := range all {
		t.defined[s.Name] = true
		if _, class, ok := strings.Cut(s.Name, "_CZC"); ok { // the constructor C:Eq
			if class, ok = strings.CutSuffix(class, "_con_info"); ok {
				if class, ok = hsname.Decode(class); ok {
					t.classes[class] = true
				}
			}
		}
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
		t.symbols = append(t.symbols, Symbol{Symbol: s})
	}
	slices.SortStableFunc(t.symbols, func(a, b Symbol) int {
		switch {
		case a.Addr < b.Addr:
			return -1
		case a.Addr > b.Addr:
			return 1
		}
		return better(&b) - better(&a)
	})
	t.symbols = slices.CompactFunc(t.symbols, func(a, b Symbol) bool { return a.Addr == b.Addr })
	// A debug file has the run-time system's symbols without its strings.
	classify(t.symbols, holdsRTS || t.defined[ghc.UpdateFrameName+ghc.InfoSuffix])
	t.reach = make([]uint64, len(t.symbols))
	end := uint64(0)
	for i := range t.symbols {
		end = max(end, t.symbols[i].Addr+t.symbols[i].Size)
		t.reach[i] = end
	}
	return t
}

// better ranks the symbols of one address: the one that people know.
func better(s *Symbol) int {
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
	if i < 0 || i >= len(t.symbols) {
		return nil
	}
	return &t.symbols[i]
}

// find gives the position of the symbol whose size covers addr, -1 if there is none, and
// of the first symbol after addr.
func (t *Table) find(addr uint64) (covering, next int) {
	next = sort.Search(len(t.symbols), func(i int) bool { return t.symbols[i].Addr > addr })
	const far = 256
	for j := next - 1; j >= 0 && next-j < far && t.reach[j] > addr; j-- {
		if s := &t.symbols[j]; addr-s.Addr < s.Size {
			return j, next
		}
	}
	return -1, next
}
