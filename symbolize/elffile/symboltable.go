package elffile

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// SymbolTable gives a file's symbols by their numbers, and reads the names only of those that are
// asked for. A large program has some hundred thousand, of which a capture asks for hundreds; most
// of what Symbols takes are the names. It is for one goroutine.
type SymbolTable struct {
	f     *File
	table *Section // nil where there is none
	raw   []byte   // entries; nil where they are read one by one
	str   *Section
	files []FileSymbol
	names string    // all of them; empty where they are read one by one
	limit uint64    // of what is held, in bytes
	hash  *NameHash // nil where there is none
	alone int       // entries that were read one by one
}

// manyAlone is after how many entries that were read one by one all are: a file's whole table takes as long as some
// thousand of them.
const manyAlone = 200

// FileSymbol is an STT_FILE symbol, which names the source file of the local symbols after it.
type FileSymbol struct {
	Index int
	Start uint32 // of its name
}

// manyNames is the size of a string table from which on names are read one by one.
const manyNames = 8 << 20

// SymbolTable opens the table that Symbols reads; an empty one where there is none. limit bounds
// the bytes that are held.
func (f *File) SymbolTable(limit uint64) (*SymbolTable, error) {
	t := &SymbolTable{f: f}
	s := f.symbolTable()
	if s == nil {
		return t, nil
	}
	str, err := f.namesOf(s)
	if err != nil {
		return t, err
	}
	found := &SymbolTable{f: f, table: s, str: str, limit: limit}
	if err := found.read(); err != nil {
		return t, err
	}
	for i := range found.Len() {
		if e := found.raw[i*symbolSize:]; elf.ST_TYPE(e[4]) == elf.STT_FILE {
			_, start := parseSymbol(e)
			found.files = append(found.files, FileSymbol{i, start})
		}
	}
	return found, nil
}

// KnownSymbolTable opens a table of which Files has given files before: nothing is read until it is asked for. It is nil where
// that cannot be done: SymbolTable opens it then.
func (f *File) KnownSymbolTable(files []FileSymbol, limit uint64) *SymbolTable {
	s := f.symbolTable()
	if s == nil || s.Compressed() {
		return nil
	}
	str, err := f.namesOf(s)
	if err != nil || str.Compressed() {
		return nil
	}
	t := &SymbolTable{f: f, table: s, str: str, files: files, limit: limit}
	t.hash, _ = f.NameHash()
	return t
}

// read reads all entries and, unless they are many, names.
func (t *SymbolTable) read() error {
	s, str, f := t.table, t.str, t.f
	if s.Size > t.limit {
		return fmt.Errorf("read %d bytes of symbols: %w of %d", s.Size, ErrTooLarge, t.limit)
	}
	raw, err := f.Data(s, t.limit)
	if err != nil {
		return err
	}
	left := t.limit - s.Size
	names := ""
	if str.Size < manyNames || str.Compressed() || s.Compressed() {
		all, err := f.Data(str, left)
		if err != nil {
			return err
		}
		names = unsafe.String(unsafe.SliceData(all), len(all)) // nobody writes to it
	}
	if t.hash == nil {
		t.hash, _ = f.NameHash() // without it all names are looked at
	}
	if names == "" && t.hash == nil && str.Size > left {
		return fmt.Errorf("read %d bytes of symbols and %d of names: %w of %d", s.Size, str.Size, ErrTooLarge, t.limit)
	}
	t.raw, t.names, t.limit = raw, names, left
	return nil
}

// Files lists the table's STT_FILE symbols, in order.
func (t *SymbolTable) Files() []FileSymbol { return t.files }

// namesOf returns the string table of a symbol table.
func (f *File) namesOf(s *Section) (*Section, error) {
	if uint64(s.Link) >= uint64(len(f.Sections)) {
		return nil, &FormatError{s.Offset, fmt.Sprintf("section %q links to section %d", s.Name, s.Link)}
	}
	str := &f.Sections[s.Link]
	if str.Type != elf.SHT_STRTAB {
		return nil, &FormatError{s.Offset, fmt.Sprintf("section %q links to a section that is no string table", s.Name)}
	}
	return str, nil
}

// Len is the number of entries, with those that Symbols leaves out.
func (t *SymbolTable) Len() int {
	switch {
	case t.raw != nil:
		return len(t.raw) / symbolSize
	case t.table == nil:
		return 0
	}
	return int(min(t.table.Size/symbolSize, math.MaxInt32))
}

// entry gives the bytes of a symbol; zeros, which are none, where they cannot be read.
func (t *SymbolTable) entry(i int) []byte {
	if t.raw == nil {
		if t.alone++; t.alone == manyAlone {
			_ = t.read() // what fails now did not when the table was not known yet
		}
	}
	if t.raw != nil {
		return t.raw[i*symbolSize:]
	}
	if e, err := t.f.readAt(t.table.Offset+uint64(i)*symbolSize, symbolSize); err == nil {
		return e
	}
	return make([]byte, symbolSize)
}

// Entry gives a symbol without its name and file; false for those that Symbols leaves out.
func (t *SymbolTable) Entry(i int) (s Symbol, ok bool) {
	s, start := parseSymbol(t.entry(i))
	if s.Section == elf.SHN_UNDEF || s.Type == elf.STT_SECTION || s.Type == elf.STT_FILE || start == 0 {
		return s, false
	}
	return s, !t.f.mapped() || !t.f.isMapping(&s, t.name(start))
}

// Symbol gives a symbol with its name and file. A name that cannot be read is empty.
func (t *SymbolTable) Symbol(i int) Symbol {
	s, start := parseSymbol(t.entry(i))
	s.Name = t.name(start)
	if s.Bind == elf.STB_LOCAL {
		n, _ := slices.BinarySearchFunc(t.files, i, func(f FileSymbol, i int) int { return cmp.Compare(f.Index, i) })
		if n > 0 {
			s.File = t.name(t.files[n-1].Start)
		}
	}
	return s
}

func (t *SymbolTable) name(start uint32) string {
	if t.names != "" {
		return stringAt(t.names, uint64(start))
	}
	const usual = 256
	for _, size := range []uint64{usual, maxStringSize} {
		if uint64(start) >= t.str.Size {
			return ""
		}
		b, err := t.f.readAt(t.str.Offset+uint64(start), min(size, t.str.Size-uint64(start)))
		if err != nil {
			return ""
		}
		if n := bytes.IndexByte(b, 0); n >= 0 {
			return string(b[:n])
		}
	}
	return ""
}

// Find reports whether a name is defined, and true for known, where the file has a hash table of
// its names.
func (t *SymbolTable) Find(name string) (defined, known bool) {
	if t.hash == nil {
		return false, false
	}
	_, defined, err := t.hash.Find(name)
	return defined, err == nil
}

// EachNamed calls visit for the symbols whose names contain a part and end in a suffix.
func (t *SymbolTable) EachNamed(part, suffix string, visit func(i int, name string)) {
	if t.table != nil && t.raw == nil && t.read() != nil {
		return // it was read when it was not known yet
	}
	if t.names != "" {
		for i := range t.Len() {
			if _, ok := t.Entry(i); !ok {
				continue
			}
			_, start := parseSymbol(t.raw[i*symbolSize:])
			if name := stringAt(t.names, uint64(start)); strings.HasSuffix(name, suffix) && strings.Contains(name, part) {
				visit(i, name)
			}
		}
		return
	}
	if t.str == nil {
		return
	}
	// A symbol's name may be the end of another string.
	found := t.strings(part, suffix)
	for i := range t.Len() {
		if _, ok := t.Entry(i); !ok {
			continue
		}
		_, start := parseSymbol(t.raw[i*symbolSize:])
		n, exact := slices.BinarySearchFunc(found, uint64(start), func(s tableString, at uint64) int { return cmp.Compare(s.at, at) })
		if !exact {
			n--
		}
		if n < 0 || uint64(start)-found[n].at >= uint64(len(found[n].text)) {
			continue
		}
		if name := found[n].text[uint64(start)-found[n].at:]; strings.HasSuffix(name, suffix) && strings.Contains(name, part) {
			visit(i, name)
		}
	}
}

// tableString is a string of the string table, and where it begins there.
type tableString struct {
	at   uint64
	text string
}

// strings finds the strings of the table that contain a part and end in a suffix, in order.
func (t *SymbolTable) strings(part, suffix string) (found []tableString) {
	end := []byte(suffix + "\x00")
	var at uint64 // of the chunk
	seen, left := uint64(0), int64(t.limit)
	_ = t.f.Scan(t.str.Offset, t.str.Size, t.str.Size, maxStringSize, func(chunk []byte) bool {
		for from := 0; ; {
			n := bytes.Index(chunk[from:], end)
			if n < 0 {
				break
			}
			n += from
			from = n + len(end)
			if at+uint64(n) < seen {
				continue // it was in the chunk before
			}
			begin := bytes.LastIndexByte(chunk[:n], 0) + 1
			if text := chunk[begin : n+len(suffix)]; bytes.Contains(text, []byte(part)) {
				const header = 24
				if left -= int64(header + len(text)); left < 0 {
					return false
				}
				found = append(found, tableString{at + uint64(begin), string(text)})
			}
		}
		seen = at + uint64(max(len(chunk)-len(end)+1, 0))
		at += uint64(len(chunk) - min(len(chunk), maxStringSize))
		return true
	})
	return found
}
