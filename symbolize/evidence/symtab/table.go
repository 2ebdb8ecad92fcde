package symtab

import (
	"debug/elf"
	"math"
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

// Symbols are a file's, by their numbers; an elffile.SymbolTable.
type Symbols interface {
	Len() int
	// Entry gives a symbol without its name and file; false for what is to be left out.
	Entry(i int) (elffile.Symbol, bool)
	Symbol(i int) elffile.Symbol
	// Find reports whether a name is defined, and whether that is known without reading all names.
	Find(name string) (defined, known bool)
	// EachNamed calls visit for those whose names contain a part and end in a suffix.
	EachNamed(part, suffix string, visit func(i int, name string))
}

// Table finds the symbol of an address. What a capture asks for is few of a large program's
// symbols, so names are read and understood only of those that it has asked for.
type Table struct {
	all   Symbols
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
	// found.classes are the type classes whose dictionary constructors are seen, likewise.
	found found
}

// entry is a symbol in order of address. It has what the order needs, since the symbols of
// neighbouring addresses lie all over a large file's table.
type entry struct {
	addr, size uint64
	index      int32 // in Table.all
	rank       int8  // among the symbols of its address
}

// Defines is evidence.Symbols'.
func (t *Table) Defines(name string) bool {
	if defined, known := t.all.Find(name); known {
		return defined
	}
	if t.found.defined != nil {
		return t.found.defined.has(name)
	}
	if t.defined == nil {
		t.defined, t.found.fresh = newNames(t.all), true
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
	if t.found.classes == nil {
		t.found.classes, t.found.fresh = map[string]bool{}, true
		const begin, end = "_CZC", "_con_info" // of the constructor C:Eq
		t.all.EachNamed(begin, end, func(_ int, name string) {
			_, class, ok := strings.Cut(strings.TrimSuffix(name, end), begin)
			if !ok {
				return
			}
			if class, ok = hsname.Decode(class); ok {
				t.found.classes[class] = true
			}
		})
	}
	return t.found.classes[name]
}

// NewTable makes a table of the symbols that name code in f. all may be a separate debug
// file's; holdsRTS is set where the run-time system's own code is in the file.
func NewTable(f *elffile.File, all Symbols, holdsRTS bool) *Table {
	t := &Table{all: all, understood: map[int]*Symbol{}, settled: map[int]eventlog.Category{}, holdsRTS: holdsRTS, found: found{fresh: true}}
	n := min(all.Len(), math.MaxInt32)
	t.order = make([]entry, 0, n)
	for i := range n {
		s, ok := all.Entry(i)
		if !ok || s.Type == elf.STT_TLS || s.Section >= elf.SHN_LORESERVE {
			continue
		}
		if int(s.Section) < len(f.Sections) {
			if f.Sections[s.Section].Flags&elf.SHF_EXECINSTR == 0 {
				continue
			}
		} else if !f.Executable(s.Addr) {
			continue
		}
		if s.Addr+s.Size < s.Addr { // it would reach beyond the address space
			s.Size = 0
		}
		t.order = append(t.order, entry{s.Addr, s.Size, int32(i), better(&s)})
	}
	if !t.holdsRTS { // a debug file has the run-time system's symbols without its strings
		t.holdsRTS = t.names(ghc.UpdateFrameName + ghc.InfoSuffix)
	}
	t.order = best(sortEntries(t.order))
	t.measure()
	return t
}

// measure sets reach.
func (t *Table) measure() {
	t.reach = make([]uint64, len(t.order))
	end := uint64(0)
	for i, e := range t.order {
		end = max(end, e.addr+e.size)
		t.reach[i] = end
	}
}

// names reports whether a symbol has a name, without reading all names into a set.
func (t *Table) names(name string) bool {
	defined, known := t.all.Find(name)
	if !known {
		t.all.EachNamed(name, name, func(_ int, s string) { defined = defined || s == name })
	}
	return defined
}

// sortEntries sorts entries by address, and those of an address as they were. It is a radix
// sort: a large program has some hundred thousand.
func sortEntries(es []entry) []entry {
	const digit = 11
	lo, hi := uint64(math.MaxUint64), uint64(0)
	for _, e := range es {
		lo, hi = min(lo, e.addr), max(hi, e.addr)
	}
	spare := make([]entry, len(es))
	for shift := 0; shift < 64 && len(es) > 0 && (hi-lo)>>shift > 0; shift += digit {
		var from [1 << digit]int
		for _, e := range es {
			from[(e.addr-lo)>>shift&(1<<digit-1)]++
		}
		next := 0
		for i, n := range from {
			from[i], next = next, next+n
		}
		for _, e := range es {
			to := &from[(e.addr-lo)>>shift&(1<<digit-1)]
			spare[*to] = e
			*to++
		}
		es, spare = spare, es
	}
	return es
}

// best keeps one entry of each address: of the best, the first in the table.
func best(es []entry) []entry {
	out := es[:0]
	for _, e := range es {
		last := len(out) - 1
		switch {
		case last < 0 || out[last].addr != e.addr:
			out = append(out, e)
		case e.rank > out[last].rank:
			out[last] = e
		}
	}
	return out
}

// better ranks the symbols of one address: the one that people know.
func better(s *elffile.Symbol) int8 {
	n := int8(0)
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

// NameAt is the name of the symbol that begins at addr and covers it, empty if there is none. Whose code it is, which may take
// looking at thousands of others, is not found out.
func (t *Table) NameAt(addr uint64) string {
	c, _ := t.find(addr)
	if c < 0 || t.order[c].addr != addr {
		return ""
	}
	return t.full(c).Name
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
		if e := t.order[j]; addr-e.addr < e.size {
			return j, next
		}
	}
	return -1, next
}
