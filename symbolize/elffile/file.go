package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits on what a file may declare. They are far above what linkers make of
// the largest Haskell programs.
const (
	maxSections   = 1 << 18
	maxSegments   = 1 << 12
	maxNameTable  = 16 << 20 // section names
	maxStringSize = 1 << 16  // one name
)

// ErrNotELF is returned for a file that is no ELF file at all.
var ErrNotELF = errors.New("not an ELF file")

// ErrTooLarge is wrapped by errors about data beyond a limit.
var ErrTooLarge = errors.New("larger than the limit")

// FormatError reports a malformed file.
type FormatError struct {
	Offset uint64 // in the file
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("malformed ELF at offset %#x: %s", e.Offset, e.Reason)
}

// UnsupportedError reports a well-formed ELF file of a kind not read here.
type UnsupportedError struct{ Kind string }

func (e *UnsupportedError) Error() string { return "unsupported ELF file: " + e.Kind }

// Section is a section header.
type Section struct {
	Name    string
	Type    elf.SectionType
	Flags   elf.SectionFlag
	Addr    uint64
	Offset  uint64
	Size    uint64 // in the file; of a compressed section, compressed
	Link    uint32
	Entsize uint64
}

// Segment is a program header.
type Segment struct {
	Type   elf.ProgType
	Flags  elf.ProgFlag
	Offset uint64
	Addr   uint64
	Filesz uint64
	Memsz  uint64
	Align  uint64
}

// File is an opened ELF file.
type File struct {
	Type     elf.Type
	Machine  elf.Machine
	Sections []Section
	Segments []Segment

	r    io.ReaderAt
	size uint64
}

// Open reads the headers. It returns ErrNotELF, an *UnsupportedError, a
// *FormatError or a read error.
func Open(r io.ReaderAt, size int64) (*File, error) {
	if size < 0 {
		return nil, fmt.Errorf("open ELF file: negative size %d", size)
	}
	f := &File{r: r, size: uint64(size)}
	var ident [64]byte
	n, err := r.ReadAt(ident[:min(int64(len(ident)), size)], 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read ELF header: %w", err)
	}
	if n < 4 || !bytes.Equal(ident[:4], []byte(elf.ELFMAG)) {
		return nil, ErrNotELF
	}
	if n < 64 {
		return nil, &FormatError{uint64(n), "header is cut off"}
	}
	le := binary.LittleEndian
	f.Type = elf.Type(le.Uint16(ident[16:]))
	f.Machine = elf.Machine(le.Uint16(ident[18:]))
	if elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return nil, &UnsupportedError{"32-bit"}
	}
	if elf.Data(ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, &UnsupportedError{"big-endian"}
	}
	if err := f.readSegments(le.Uint64(ident[32:]), le.Uint16(ident[54:]), le.Uint16(ident[56:])); err != nil {
		return nil, err
	}
	err = f.readSections(le.Uint64(ident[40:]), le.Uint16(ident[58:]), le.Uint16(ident[60:]), le.Uint16(ident[62:]))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Arch names the machine as Go does ("amd64", "arm64"), or as ELF does where
// Go has no name for it.
func (f *File) Arch() string {
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64"
	case elf.EM_AARCH64:
		return "arm64"
	case elf.EM_RISCV:
		return "riscv64"
	case elf.EM_PPC64:
		return "ppc64le"
	case elf.EM_LOONGARCH:
		return "loong64"
	}
	return f.Machine.String()
}

// Size is the file's size in bytes.
func (f *File) Size() uint64 { return f.size }

// inFile reports whether n bytes at off lie in the file.
func (f *File) inFile(off, n uint64) bool { return off <= f.size && n <= f.size-off }

func (f *File) readAt(off, n uint64) ([]byte, error) {
	if !f.inFile(off, n) {
		return nil, &FormatError{off, fmt.Sprintf("%d bytes reach beyond the file", n)}
	}
	b := make([]byte, n)
	if m, err := f.r.ReadAt(b, int64(off)); m < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read ELF file at %#x: %w", off, err)
	}
	return b, nil
}

func (f *File) readSegments(off uint64, entsize, count uint16) error {
	if count == 0 {
		return nil
	}
	if entsize < 56 || count > maxSegments {
		return &FormatError{54, fmt.Sprintf("%d program headers of %d bytes", count, entsize)}
	}
	b, err := f.readAt(off, uint64(entsize)*uint64(count))
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	f.Segments = make([]Segment, count)
	for i := range f.Segments {
		h := b[i*int(entsize):]
		f.Segments[i] = Segment{
			Type: elf.ProgType(le.Uint32(h)), Flags: elf.ProgFlag(le.Uint32(h[4:])),
			Offset: le.Uint64(h[8:]), Addr: le.Uint64(h[16:]),
			Filesz: le.Uint64(h[32:]), Memsz: le.Uint64(h[40:]), Align: le.Uint64(h[48:]),
		}
	}
	return nil
}

func (f *File) readSections(off uint64, entsize, count16, strndx16 uint16) error {
	if off == 0 {
		return nil // stripped of section headers: lawful
	}
	if entsize < 64 {
		return &FormatError{58, fmt.Sprintf("section headers of %d bytes", entsize)}
	}
	count, strndx := uint64(count16), uint64(strndx16)
	le := binary.LittleEndian
	if count == 0 || strndx16 == uint16(elf.SHN_XINDEX) {
		first, err := f.readAt(off, 64)
		if err != nil {
			return err
		}
		if count == 0 {
			count = le.Uint64(first[32:])
		}
		if strndx16 == uint16(elf.SHN_XINDEX) {
			strndx = uint64(le.Uint32(first[40:]))
		}
	}
	if count > maxSections {
		return &FormatError{60, fmt.Sprintf("%d section headers: %v", count, ErrTooLarge)}
	}
	b, err := f.readAt(off, uint64(entsize)*count)
	if err != nil {
		return err
	}
	f.Sections = make([]Section, count)
	names := make([]uint32, count)
	for i := range f.Sections {
		h := b[i*int(entsize):]
		names[i] = le.Uint32(h)
		f.Sections[i] = Section{
			Type: elf.SectionType(le.Uint32(h[4:])), Flags: elf.SectionFlag(le.Uint64(h[8:])),
			Addr: le.Uint64(h[16:]), Offset: le.Uint64(h[24:]), Size: le.Uint64(h[32:]),
			Link: le.Uint32(h[40:]), Entsize: le.Uint64(h[56:]),
		}
	}
	if strndx == 0 || strndx >= count {
		return nil // sections without names
	}
	str := f.Sections[strndx]
	if str.Type != elf.SHT_STRTAB || str.Size > maxNameTable {
		return &FormatError{str.Offset, fmt.Sprintf("section name table of %d bytes", str.Size)}
	}
	table, err := f.readAt(str.Offset, str.Size)
	if err != nil {
		return err
	}
	for i := range f.Sections {
		f.Sections[i].Name = cString(table, uint64(names[i]))
	}
	return nil
}

// cString is the NUL-terminated string at off, empty where there is none.
func cString(table []byte, off uint64) string {
	if off >= uint64(len(table)) {
		return ""
	}
	s := table[off:]
	if len(s) > maxStringSize {
		s = s[:maxStringSize]
	}
	n := bytes.IndexByte(s, 0)
	if n < 0 {
		return ""
	}
	return string(s[:n])
}

// Section returns the first section of that name with contents, or nil.
func (f *File) Section(name string) *Section {
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Name == name && s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL && s.Size > 0 {
			return s
		}
	}
	return nil
}

// Executable reports whether addr lies in code that is loaded.
func (f *File) Executable(addr uint64) bool {
	for _, p := range f.Segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr >= p.Addr && addr-p.Addr < p.Memsz {
			return true
		}
	}
	return false
}
