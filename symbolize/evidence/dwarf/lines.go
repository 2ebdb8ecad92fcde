package dwarf

import (
	"context"
	"io"

	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence"
)

// lines has the positions of addresses in C, C++ and Rust code.
type lines struct {
	places  map[uint64]dwarfindex.Place
	inlined map[uint64][]dwarfindex.Inlined
}

// Lines is evidence.Lines's.
func (e *Evidence) Lines(addr uint64) []evidence.Line {
	if l := e.lines.at(addr); l != nil {
		return l
	}
	return e.haskellLine(addr)
}

// at gives the position of an address in C, C++ or Rust code.
func (l *lines) at(addr uint64) []evidence.Line {
	p, ok := l.places[addr]
	if !ok {
		return nil
	}
	chain := l.inlined[addr]
	if chain == nil {
		return []evidence.Line{{CompDir: p.CompDir, File: p.File, MD5: p.MD5, Line: p.Line}}
	}
	out := make([]evidence.Line, len(chain))
	for i, c := range chain {
		out[i] = evidence.Line{CompDir: p.CompDir, File: c.File, Line: c.Line, Function: c.Name}
		if c.File == p.File {
			out[i].MD5 = p.MD5
		}
	}
	return out
}

func readLines(ctx context.Context, f *elffile.File, s dwarfindex.Sections, x *dwarfindex.Index, opt *Options) lines {
	l := lines{places: dwarfindex.Places(ctx, s, x, opt.Addresses)}
	if len(l.places) > 0 {
		l.readInlined(ctx, f, s, opt.Memory/2, opt.Warn)
	}
	return l
}

// readInlined finds the functions that were inlined at the addresses of C, C++ and
// Rust code. Without them its lines are still known.
func (l *lines) readInlined(ctx context.Context, f *elffile.File, s dwarfindex.Sections, limit uint64, warn func(format string, args ...any)) {
	if s.InfoSize > limit {
		warn("inlined C functions left out: %d bytes of debug information are over the budget (--symbolize-memory)", s.InfoSize)
		return
	}
	info := make([]byte, s.InfoSize)
	if _, err := s.Info.ReadAt(info, 0); err != nil && err != io.EOF {
		return
	}
	limit -= s.InfoSize
	extra := map[string][]byte{}
	for _, name := range []string{".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"} {
		if sec := f.DebugSection(name); sec != nil {
			data, err := f.Data(sec, limit)
			if err != nil {
				return
			}
			extra[name] = data
			limit -= min(limit, uint64(len(data)))
		}
	}
	var err error
	if l.inlined, err = dwarfindex.Inlines(ctx, s, info, extra, l.places); err != nil {
		warn("%v", err)
	}
}
