package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Relocation is an entry of a table with addends.
type Relocation struct {
	Offset uint64 // address of what is relocated
	Addend int64
}

// Relocations lists the entries of one type in the tables that the dynamic
// linker applies. limit bounds the bytes of all tables together.
func (f *File) Relocations(kind uint32, limit uint64) ([]Relocation, error) {
	var out []Relocation
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		table, err := f.Data(s, limit)
		if err != nil {
			return out, err
		}
		limit -= uint64(len(table))
		for ; len(table) >= 24; table = table[24:] {
			if uint32(binary.LittleEndian.Uint64(table[8:])) == kind {
				out = append(out, Relocation{binary.LittleEndian.Uint64(table), int64(binary.LittleEndian.Uint64(table[16:]))})
			}
		}
	}
	return out, nil
}

// EachImport calls visit for every place that the dynamic linker fills with the address
// of a symbol, by a relocation of that type. limit bounds the bytes of relocations,
// symbols and names, each.
func (f *File) EachImport(kind uint32, limit uint64, visit func(slot uint64, name string)) error {
	dynsym := f.byType(elf.SHT_DYNSYM)
	if dynsym == nil || uint64(dynsym.Link) >= uint64(len(f.Sections)) {
		return nil
	}
	var slots []uint64
	var indices []uint32
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		table, err := f.Data(s, limit)
		if err != nil {
			return fmt.Errorf("read relocations: %w", err)
		}
		limit -= uint64(len(table))
		for ; len(table) >= 24; table = table[24:] {
			if info := binary.LittleEndian.Uint64(table[8:]); uint32(info) == kind {
				slots, indices = append(slots, binary.LittleEndian.Uint64(table)), append(indices, uint32(info>>32))
			}
		}
	}
	names, err := f.importedNames(dynsym, indices, limit)
	if err != nil {
		return err
	}
	for i, slot := range slots {
		if uint64(indices[i])*symbolSize+symbolSize <= dynsym.Size {
			visit(slot, names(indices[i]))
		}
	}
	return nil
}

// importedNames returns what gives the name of a symbol of the dynamic linker's table. Of few
// symbols each is read where it lies: a large program exports all that it has.
func (f *File) importedNames(dynsym *Section, wanted []uint32, limit uint64) (func(index uint32) string, error) {
	str := &f.Sections[dynsym.Link]
	const few = 1000
	if len(wanted) < few {
		t := &SymbolTable{f: f, str: str}
		return func(index uint32) string {
			entry, err := f.readAt(dynsym.Offset+uint64(index)*symbolSize, symbolSize)
			if err != nil {
				return ""
			}
			_, start := parseSymbol(entry)
			return t.name(start)
		}, nil
	}
	symbols, err := f.Data(dynsym, limit)
	if err != nil {
		return nil, fmt.Errorf("read imported symbols: %w", err)
	}
	raw, err := f.Data(str, limit)
	if err != nil {
		return nil, fmt.Errorf("read names of imported symbols: %w", err)
	}
	names := unsafe.String(unsafe.SliceData(raw), len(raw)) // nobody writes to it
	return func(index uint32) string {
		_, start := parseSymbol(symbols[index*symbolSize:])
		return stringAt(names, uint64(start))
	}, nil
}
