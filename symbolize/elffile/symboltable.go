package elffile

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// SymbolTable gives a file's symbols by their numbers, and reads the names only of those that are
// asked for. A large program has some hundred thousand, of which a capture asks for hundreds; most
// of what Symbols takes are the names. It is for one goroutine.
type SymbolTable struct {
	f     *File
	raw   []byte // entries
	str   *Section
	files []fileSymbol
	names string    // all of them; empty where they are read one by one
	limit uint64    // of names that are held, in bytes
	hash  *NameHash // nil where there is none
}

// fileSymbol is an STT_FILE symbol, which names the source file of the local symbols after it.
type fileSymbol struct {
	index int
	start uint32
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
	if s.Size > limit {
		return t, fmt.Errorf("read %d bytes of symbols: %w of %d", s.Size, ErrTooLarge, limit)
	}
	raw, err := f.Data(s, limit)
	if err != nil {
		return t, err
	}
	if str.Size < manyNames || str.Compressed() || s.Compressed() {
		names, err := f.Data(str, limit-s.Size)
		if err != nil {
			return t, err
		}
		t.names = unsafe.String(unsafe.SliceData(names), len(names)) // nobody writes to it
	}
	t.hash, _ = f.NameHash() // without it all names are looked at
	if t.names == "" && t.hash == nil && str.Size > limit-s.Size {
		return t, fmt.Errorf("read %d bytes of symbols and %d of names: %w of %d", s.Size, str.Size, ErrTooLarge, limit)
	}
	t.raw, t.str, t.limit = raw, str, limit-s.Size
	for i := range t.Len() {
		if e := t.raw[i*symbolSize:]; elf.ST_TYPE(e[4]) == elf.STT_FILE {
			_, start := parseSymbol(e)
			t.files = append(t.files, fileSymbol{i, start})
		}
	}
	return t, nil
}

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
func (t *SymbolTable) Len() int { return len(t.raw) / symbolSize }

// Entry gives a symbol without its name and file; false for those that Symbols leaves out.
func (t *SymbolTable) Entry(i int) (s Symbol, ok bool) {
	s, start := parseSymbol(t.raw[i*symbolSize:])
	if s.Section == elf.SHN_UNDEF || s.Type == elf.STT_SECTION || s.Type == elf.STT_FILE || start == 0 {
		return s, false
	}
	return s, !t.f.mapped() || !t.f.isMapping(&s, t.name(start))
}

// Symbol gives a symbol with its name and file. A name that cannot be read is empty.
func (t *SymbolTable) Symbol(i int) Symbol {
	s, start := parseSymbol(t.raw[i*symbolSize:])
	s.Name = t.name(start)
	if s.Bind == elf.STB_LOCAL {
		n, _ := slices.BinarySearchFunc(t.files, i, func(f fileSymbol, i int) int { return cmp.Compare(f.index, i) })
		if n > 0 {
			s.File = t.name(t.files[n-1].start)
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
