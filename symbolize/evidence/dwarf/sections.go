package dwarf

import (
	"bytes"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"io"
)

// openSections opens the sections the index is built from. .debug_info is
// read piece by piece where it is not compressed.
func openSections(f *elffile.File, limit uint64) (dwarfindex.Sections, error) {
	var s dwarfindex.Sections
	info := f.DebugSection(".debug_info")
	if info == nil {
		return s, nil
	}
	if info.Compressed() {
		data, err := f.Data(info, limit)
		if err != nil {
			return s, err
		}
		s.Info, s.InfoSize = bytes.NewReader(data), uint64(len(data))
		limit -= min(limit, uint64(len(data)))
	} else {
		r, err := f.Reader(info)
		if err != nil {
			return s, err
		}
		s.Info, s.InfoSize = io.ReaderAt(r), info.Size
	}
	for _, part := range []struct {
		name string
		to   *[]byte
	}{{".debug_abbrev", &s.Abbrev}, {".debug_line", &s.Line}, {".debug_str", &s.Str}, {".debug_line_str", &s.LineStr}} {
		sec := f.DebugSection(part.name)
		if sec == nil {
			continue
		}
		data, err := f.Data(sec, limit)
		if err != nil {
			return s, err
		}
		*part.to = data
		limit -= min(limit, uint64(len(data)))
	}
	return s, nil
}
