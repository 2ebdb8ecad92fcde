package symbolize

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

// symbol is a symbol of code.
type symbol struct {
	elffile.Symbol
	category eventlog.Category
	haskell  hsname.Name // of a Haskell symbol
}

func (s *symbol) local() bool  { return s.Bind == elf.STB_LOCAL }
func (s *symbol) hidden() bool { return s.Vis == elf.STV_HIDDEN || s.Vis == elf.STV_INTERNAL }

// symbolTable finds the symbol of an address.
type symbolTable struct {
	symbols []symbol // by address; one an address
	// reach is the largest end of the symbols up to each: it bounds the search
	// for one that covers an address from far before it.
	reach []uint64
	// defined holds the names of all symbols, data included.
	defined map[string]bool
	// classes are the type classes whose dictionary constructors are seen.
	classes map[string]bool
}

// isClass reports whether the module has a class of that name.
func (t *symbolTable) isClass(name string) bool { return t.classes[name] }

// newSymbolTable keeps the symbols that name code.
func newSymbolTable(f *elffile.File, all []elffile.Symbol, holdsRTS bool) *symbolTable {
	t := &symbolTable{defined: make(map[string]bool, len(all)), classes: map[string]bool{}}
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
		t.symbols = append(t.symbols, symbol{Symbol: s})
	}
	slices.SortStableFunc(t.symbols, func(a, b symbol) int {
		switch {
		case a.Addr < b.Addr:
			return -1
		case a.Addr > b.Addr:
			return 1
		}
		return better(&b) - better(&a)
	})
	t.symbols = slices.CompactFunc(t.symbols, func(a, b symbol) bool { return a.Addr == b.Addr })
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
func better(s *symbol) int {
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

// at returns the symbol whose size covers addr, and the ones next to it on both
// sides; each may be nil.
func (t *symbolTable) at(addr uint64) (covering, before, after *symbol) {
	if t == nil {
		return nil, nil, nil
	}
	i := sort.Search(len(t.symbols), func(i int) bool { return t.symbols[i].Addr > addr })
	if i < len(t.symbols) {
		after = &t.symbols[i]
	}
	if i == 0 {
		return nil, nil, after
	}
	before = &t.symbols[i-1]
	const far = 256
	for j := i - 1; j >= 0 && i-j < far && t.reach[j] > addr; j-- {
		if s := &t.symbols[j]; addr-s.Addr < s.Size {
			return s, before, after
		}
	}
	return nil, before, after
}
