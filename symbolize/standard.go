package symbolize

import (
	"context"
	"strings"

	"ccagent/eventlog"
	"ccagent/symbolize/coderefs"
	"ccagent/symbolize/evidence"
)

// standardThunk reports whether a symbol is of an info table of the run-time system's that GHC uses for thunks which only apply a
// variable to others, or take a field out of a record (rts/StgStdThunks.cmm), in place of one with source notes.
func standardThunk(symbol string) bool {
	name, ok := strings.CutSuffix(symbol, "_info")
	if !ok {
		return false
	}
	for _, end := range []string{"_upd", "_noupd"} {
		if rest, is := strings.CutSuffix(name, end); is {
			name = rest
			break
		}
	}
	n, ap := strings.CutPrefix(name, "stg_ap_")
	if !ap {
		if n, ok = strings.CutPrefix(name, "stg_sel_"); !ok {
			return false
		}
	} else if !strings.HasSuffix(symbol, "_upd_info") {
		return false // applies on the stack
	}
	return n != "" && strings.Trim(n, "0123456789") == ""
}

// findWriters finds the code that refers to the standard thunks among the module's addresses: where such thunks are made.
func (m *opened) findWriters(ctx context.Context) error {
	var thunks []uint64
	for _, a := range m.mod.Addresses {
		if standardThunk(m.symbols.NameAt(a.Addr)) {
			thunks = append(thunks, a.Addr)
		}
	}
	if len(thunks) == 0 {
		return nil
	}
	refs, err := coderefs.Within(ctx, m.elf, 0, ^uint64(0), thunks)
	if err != nil {
		return err
	}
	m.writers = map[uint64][]uint64{}
	for _, r := range refs {
		m.writers[thunks[r.Target]] = append(m.writers[thunks[r.Target]], r.From)
	}
	return nil
}

// maxWriters bounds the places that are compared: thunks that are made in more have no one line.
const maxWriters = 64

// writtenAt is the one line on which code lies; none where that is on several, or not known of some.
func (s *resolver) writtenAt(code []uint64) ([]eventlog.Line, error) {
	if s.debug == nil || len(code) == 0 || len(code) > maxWriters {
		return nil, nil
	}
	var at eventlog.Line
	for i, addr := range code {
		c, ok := s.debug.evidence.At(addr)
		if !ok || c.Block == 0 {
			return nil, nil
		}
		line, err := s.nearest(c.Block)
		if err != nil || line.Line == 0 || i > 0 && line != at {
			return nil, err
		}
		at = line
	}
	return []eventlog.Line{at}, nil
}

// nearest is the line of a block's nearest source note.
func (s *resolver) nearest(id evidence.BlockID) (eventlog.Line, error) {
	b := s.debug.sourced.Block(id)
	for _, c := range b.Causes {
		x := s.debug.sourced.Span(c.Span)
		if x.File == 0 || x.Line == 0 {
			continue
		}
		f, err := s.debug.files.File(x.File)
		if err != nil {
			return eventlog.Line{}, err
		}
		of, err := s.debug.namer.Source(x.Position)
		return eventlog.Line{Binding: of, File: f.ID, Line: x.Line}, err
	}
	return eventlog.Line{}, nil
}
