package symtab

import (
	"encoding/binary"
	"math"

	"ccagent/eventlog"
	"ccagent/symbolize/elffile"
)

// filed are symbols that know which source files they are of; an elffile.SymbolTable.
type filed interface{ Files() []elffile.FileSymbol }

// The order of a table is kept as varints: the number of all symbols, whether they are those of a file that holds the
// run-time system, the number of STT_FILE symbols and of each its distance from the one before and its name's place, and
// for each symbol in order the distance of its address from the one before, its size, and the distance of its number, signed.

// encodeOrder gives what KnownTable makes the table of.
func (t *Table) encodeOrder(files []elffile.FileSymbol) []byte {
	b := binary.AppendUvarint(nil, uint64(t.all.Len()))
	holds := uint64(0)
	if t.holdsRTS {
		holds = 1
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, holds), uint64(len(files)))
	last := 0
	for _, f := range files {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(f.Index-last)), uint64(f.Start))
		last = f.Index
	}
	var before entry
	for _, e := range t.order {
		b = binary.AppendUvarint(binary.AppendUvarint(b, e.addr-before.addr), e.size)
		b = binary.AppendVarint(b, int64(e.index)-int64(before.index))
		before = e
	}
	return b
}

// Known is a table's order that was kept.
type Known struct {
	symbols  uint64
	holdsRTS bool
	files    []elffile.FileSymbol
	order    []entry
}

// KnownOrder reads an order of what Found has given, of at most so many symbols; nil where there is none, or a malformed one.
func KnownOrder(parts map[string][]byte, most uint64) *Known {
	b := parts[partOrder]
	failed := len(b) == 0
	next := func() uint64 {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			failed = true
			return 0
		}
		b = b[n:]
		return x
	}
	k := &Known{symbols: next(), holdsRTS: next() != 0}
	files := next()
	if failed || k.symbols > min(most, math.MaxInt32) || files > k.symbols || files > uint64(len(b)) {
		return nil
	}
	k.files = make([]elffile.FileSymbol, files)
	for i, last := 0, uint64(0); i < len(k.files); i++ {
		index, start := next(), next()
		if index > k.symbols || start > math.MaxUint32 {
			return nil
		}
		if last += index; last >= k.symbols {
			return nil
		}
		k.files[i] = elffile.FileSymbol{Index: int(last), Start: uint32(start)}
	}
	const least = 3 // bytes of a symbol
	k.order = make([]entry, 0, min(uint64(len(b)/least+1), k.symbols))
	for before := (entry{}); len(b) > 0 && !failed; {
		e := entry{addr: before.addr + next(), size: next()}
		index, n := binary.Varint(b)
		if failed || n <= 0 {
			return nil
		}
		b = b[n:]
		number := int64(before.index) + index
		if e.addr < before.addr || e.addr == before.addr && len(k.order) > 0 || e.addr+e.size < e.addr || index > math.MaxInt32 || number < 0 || uint64(number) >= k.symbols {
			return nil
		}
		e.index = int32(number)
		k.order = append(k.order, e)
		before = e
	}
	if failed || uint64(len(k.order)) > k.symbols {
		return nil
	}
	return k
}

// Files lists the table's STT_FILE symbols.
func (k *Known) Files() []elffile.FileSymbol { return k.files }

// Table makes the table, of the same symbols; nil where they are others.
func (k *Known) Table(all Symbols) *Table {
	if uint64(all.Len()) != k.symbols {
		return nil
	}
	t := &Table{all: all, understood: map[int]*Symbol{}, settled: map[int]eventlog.Category{}, holdsRTS: k.holdsRTS, order: k.order}
	t.measure()
	return t
}
