package elffile

import (
	"debug/elf"
	"encoding/binary"
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
