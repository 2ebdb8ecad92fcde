package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// NameHash finds a dynamic linker's symbols by their names, through the hash table that linkers
// write for it (SHT_GNU_HASH). Each look-up reads some dozen bytes, where reading the symbols of a
// large program takes a tenth of a second.
type NameHash struct {
	f       *File
	symbols *Section
	names   *Section

	buckets, chains uint64 // offsets in the file
	end             uint64 // of the table
	count           uint32 // of buckets
	first           uint32 // the first symbol that has a chain
}

// maxChain bounds the symbols of one bucket. Linkers make buckets for one to four symbols.
const maxChain = 4096

// NameHash returns the file's table; nil if it has none, or if it has symbols beyond those of
// the dynamic linker.
func (f *File) NameHash() (*NameHash, error) {
	s := f.byType(elf.SHT_GNU_HASH)
	if s == nil || f.HasSymtab() {
		return nil, nil
	}
	h := &NameHash{f: f, end: s.Offset + s.Size}
	if uint64(s.Link) < uint64(len(f.Sections)) {
		h.symbols = &f.Sections[s.Link]
	}
	if h.symbols == nil || h.symbols.Type != elf.SHT_DYNSYM || uint64(h.symbols.Link) >= uint64(len(f.Sections)) {
		return nil, &FormatError{s.Offset, fmt.Sprintf("section %q is not of a symbol table", s.Name)}
	}
	h.names = &f.Sections[h.symbols.Link]
	for _, part := range []*Section{s, h.symbols, h.names} {
		if !f.inFile(part.Offset, part.Size) {
			return nil, &FormatError{part.Offset, fmt.Sprintf("section %q of %d bytes reaches beyond the file", part.Name, part.Size)}
		}
	}
	head, err := f.readAt(s.Offset, min(s.Size, 16))
	if err != nil {
		return nil, err
	}
	if len(head) < 16 {
		return nil, &FormatError{s.Offset, fmt.Sprintf("section %q is cut off", s.Name)}
	}
	h.count, h.first = binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	filter := binary.LittleEndian.Uint32(head[8:]) // a Bloom filter, which is passed over
	h.buckets = s.Offset + 16 + 8*uint64(filter)
	h.chains = h.buckets + 4*uint64(h.count)
	if h.count == 0 || h.chains > h.end {
		return nil, &FormatError{s.Offset, fmt.Sprintf("section %q has %d buckets in %d bytes", s.Name, h.count, s.Size)}
	}
	return h, nil
}

// Find returns the defined symbol of a name.
func (h *NameHash) Find(name string) (s Symbol, found bool, err error) {
	hash := uint32(5381)
	for i := range len(name) {
		hash = hash*33 + uint32(name[i])
	}
	index, err := h.word(h.buckets + 4*uint64(hash%h.count))
	if err != nil || index < h.first {
		return s, false, err
	}
	for range maxChain {
		of, err := h.word(h.chains + 4*uint64(index-h.first))
		if err != nil {
			return s, false, err
		}
		if of|1 == hash|1 { // the lowest bit ends a chain
			if s, found, err = h.symbol(index, name); found || err != nil {
				return s, found, err
			}
		}
		if of&1 != 0 {
			return s, false, nil
		}
		index++
	}
	return s, false, &FormatError{h.chains, fmt.Sprintf("more than %d names in one bucket", maxChain)}
}

func (h *NameHash) word(at uint64) (uint32, error) {
	if at+4 > h.end {
		return 0, &FormatError{at, "the hash table of names is cut off"}
	}
	b, err := h.f.readAt(at, 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

// symbol returns a symbol, if that is its name.
func (h *NameHash) symbol(index uint32, name string) (s Symbol, found bool, err error) {
	at := uint64(index) * symbolSize
	if at+symbolSize > h.symbols.Size {
		return s, false, &FormatError{h.symbols.Offset, fmt.Sprintf("symbol %d is beyond the table", index)}
	}
	entry, err := h.f.readAt(h.symbols.Offset+at, symbolSize)
	if err != nil {
		return s, false, err
	}
	s, start := parseSymbol(entry)
	if s.Section == elf.SHN_UNDEF || uint64(start)+uint64(len(name))+1 > h.names.Size {
		return s, false, nil
	}
	text, err := h.f.readAt(h.names.Offset+uint64(start), uint64(len(name))+1)
	if err != nil {
		return s, false, err
	}
	s.Name = name
	return s, string(text) == name+"\x00", nil
}
