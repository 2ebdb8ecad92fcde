package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"unsafe"
)

// Symbol is one entry of a symbol table that names code or data.
type Symbol struct {
	Name    string
	Addr    uint64
	Size    uint64
	Type    elf.SymType
	Bind    elf.SymBind
	Vis     elf.SymVis
	Section elf.SectionIndex
	// File is the source file named by the STT_FILE symbol before it, for
	// local symbols: "schedule.c".
	File string
}

// Symbols reads .symtab, or .dynsym where there is none. Undefined, section,
// file and mapping symbols are left out. limit bounds the bytes of both tables
// together.
func (f *File) Symbols(limit uint64) ([]Symbol, error) {
	var out []Symbol
	err := f.EachSymbol(limit, func(s *Symbol) {
		if out == nil {
			out = make([]Symbol, 0, f.symbolTable().Size/symbolSize)
		}
		out = append(out, *s)
	})
	return out, err
}

// EachSymbol calls visit for what Symbols would give, and keeps none of it: a
// large program has a million symbols. What visit is given is valid until it
// returns, but for its strings.
func (f *File) EachSymbol(limit uint64, visit func(*Symbol)) error {
	s := f.symbolTable()
	if s == nil {
		return nil
	}
	return f.eachSymbol(s, limit, visit)
}

// EachAddress calls visit for the address of each symbol that EachSymbol visits. Names, which
// lie all over a large table, are not read.
func (f *File) EachAddress(limit uint64, visit func(addr uint64)) error {
	s := f.symbolTable()
	switch {
	case s == nil:
		return nil
	case f.mapped():
		return f.eachSymbol(s, limit, func(s *Symbol) { visit(s.Addr) })
	case s.Size > limit:
		return fmt.Errorf("read %d bytes of symbols: %w of %d", s.Size, ErrTooLarge, limit)
	}
	table, err := f.Data(s, limit)
	if err != nil {
		return err
	}
	for ; len(table) >= symbolSize; table = table[symbolSize:] {
		section := elf.SectionIndex(binary.LittleEndian.Uint16(table[6:]))
		kind := elf.ST_TYPE(table[4])
		if section != elf.SHN_UNDEF && kind != elf.STT_SECTION && kind != elf.STT_FILE && binary.LittleEndian.Uint32(table) != 0 {
			visit(binary.LittleEndian.Uint64(table[8:]))
		}
	}
	return nil
}

// symbolTable is .symtab, or .dynsym, or nil.
func (f *File) symbolTable() *Section {
	if s := f.byType(elf.SHT_SYMTAB); s != nil {
		return s
	}
	return f.byType(elf.SHT_DYNSYM)
}

// HasSymtab reports whether the file has a symbol table beyond the dynamic
// linker's.
func (f *File) HasSymtab() bool { return f.byType(elf.SHT_SYMTAB) != nil }

func (f *File) byType(t elf.SectionType) *Section {
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Type == t && s.Size > 0 {
			return s
		}
	}
	return nil
}

// symbolSize is the size of an entry of a symbol table.
const symbolSize = 24

// parseSymbol reads an entry of a symbol table. start is where its name begins.
func parseSymbol(entry []byte) (s Symbol, start uint32) {
	return Symbol{
		Addr: binary.LittleEndian.Uint64(entry[8:]), Size: binary.LittleEndian.Uint64(entry[16:]),
		Type: elf.ST_TYPE(entry[4]), Bind: elf.ST_BIND(entry[4]), Vis: elf.ST_VISIBILITY(entry[5]),
		Section: elf.SectionIndex(binary.LittleEndian.Uint16(entry[6:])),
	}, binary.LittleEndian.Uint32(entry)
}

func (f *File) eachSymbol(s *Section, limit uint64, visit func(*Symbol)) error {
	str, err := f.namesOf(s)
	if err != nil {
		return err
	}
	if s.Size > limit || str.Size > limit-s.Size {
		return fmt.Errorf("read %d bytes of symbols and %d of names: %w of %d", s.Size, str.Size, ErrTooLarge, limit)
	}
	table, err := f.Data(s, limit)
	if err != nil {
		return err
	}
	raw, err := f.Data(str, limit)
	if err != nil {
		return err
	}
	names := unsafe.String(unsafe.SliceData(raw), len(raw)) // nobody writes to it; symbols' names are slices of it
	var file string
	var sym Symbol
	for ; len(table) >= symbolSize; table = table[symbolSize:] {
		var start uint32
		sym, start = parseSymbol(table)
		name := stringAt(names, uint64(start))
		if sym.Type == elf.STT_FILE {
			file = name
			continue
		}
		if sym.Section == elf.SHN_UNDEF || sym.Type == elf.STT_SECTION || name == "" {
			continue
		}
		if f.isMapping(&sym, name) {
			continue
		}
		sym.Name = name
		if sym.Bind == elf.STB_LOCAL {
			sym.File = file
		}
		visit(&sym)
	}
	return nil
}

// mapped reports whether the file may have mapping symbols.
func (f *File) mapped() bool { return f.Machine == elf.EM_AARCH64 }

// isMapping recognises the symbols by which assemblers distinguish code from data within a
// section: they name nothing, and there is one at every info table. (ELF for the Arm
// 64-bit architecture, 5.7.6.)
func (f *File) isMapping(s *Symbol, name string) bool {
	if !f.mapped() || s.Type != elf.STT_NOTYPE || s.Bind != elf.STB_LOCAL || len(name) < 2 || name[0] != '$' {
		return false
	}
	return (name[1] == 'x' || name[1] == 'd') && (len(name) == 2 || name[2] == '.')
}

func stringAt(table string, off uint64) string {
	if off >= uint64(len(table)) {
		return ""
	}
	s := table[off:]
	n := strings.IndexByte(s[:min(len(s), maxStringSize)], 0)
	return s[:max(n, 0)]
}
