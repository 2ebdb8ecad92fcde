package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
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
	symbols, err := f.Data(dynsym, limit)
	if err != nil {
		return fmt.Errorf("read imported symbols: %w", err)
	}
	raw, err := f.Data(&f.Sections[dynsym.Link], limit)
	if err != nil {
		return fmt.Errorf("read names of imported symbols: %w", err)
	}
	names := string(raw)
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
			info := binary.LittleEndian.Uint64(table[8:])
			at := info >> 32 * 24
			if uint32(info) != kind || at+24 > uint64(len(symbols)) {
				continue
			}
			visit(binary.LittleEndian.Uint64(table), stringAt(names, uint64(binary.LittleEndian.Uint32(symbols[at:]))))
		}
	}
	return nil
}
