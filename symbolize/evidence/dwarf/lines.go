package dwarf

import (
	"context"

	"ccagent/symbolize/dwarfindex"
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

func readLines(ctx context.Context, s dwarfindex.Sections, r *reader, x *dwarfindex.Index, opt *Options) lines {
	l := lines{places: dwarfindex.Places(ctx, s, x, opt.Addresses)}
	if len(l.places) > 0 {
		l.readInlined(ctx, s, r, opt)
	}
	return l
}

// readInlined finds the functions that were inlined at the addresses of C, C++ and
// Rust code. Without them its lines are still known.
func (l *lines) readInlined(ctx context.Context, s dwarfindex.Sections, r *reader, opt *Options) {
	extra := map[string][]byte{}
	for _, name := range []string{".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"} {
		data, err := r.data(name)
		if err != nil {
			return
		}
		if data != nil {
			extra[name] = data
		}
	}
	var err error
	if l.inlined, err = dwarfindex.Inlines(ctx, s, extra, l.places, r.limit); err != nil {
		opt.Warn("inlined C functions left out: %v", err)
	}
}
