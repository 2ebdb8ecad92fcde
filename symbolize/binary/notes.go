package binary

import (
	"bytes"
	"io"

	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
)

// hasNotes reports whether .debug_info has a GHC source note in its beginning.
func hasNotes(f *elffile.File) bool {
	s := f.DebugSection(".debug_info")
	abbrev := f.DebugSection(".debug_abbrev")
	if s == nil || abbrev == nil {
		return false
	}
	table, err := f.Data(abbrev, 8<<20)
	if err != nil {
		return false
	}
	if s.Compressed() {
		data, err := f.Data(s, scanCompressed)
		if err != nil {
			return true // too large to look into: whether notes are in it is not known
		}
		return dwarfindex.HasNotes(bytes.NewReader(data), uint64(len(data)), table, scanInfo)
	}
	r, err := f.Reader(s)
	if err != nil {
		return false
	}
	return dwarfindex.HasNotes(io.ReaderAt(r), s.Size, table, scanInfo)
}

// scanCompressed bounds the decompressed .debug_info that is looked into.
const scanCompressed = 64 << 20
