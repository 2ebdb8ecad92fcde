package symbolize

import (
	"context"
	"slices"

	"ccagent/eventlog"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/evidence/symtab"
)

// findMakers finds the code that makes the standard thunks among the module's addresses.
func (m *opened) findMakers(ctx context.Context) error {
	thunks := slices.DeleteFunc(lookups(m.mod.Addresses), func(addr uint64) bool { return !symtab.StandardThunk(m.symbols.NameAt(addr)) })
	if len(thunks) == 0 {
		return nil
	}
	all, err := m.symbols.ThunkMakers(ctx, m.elf)
	if err != nil {
		return err
	}
	m.makers = map[uint64][]uint64{}
	for _, addr := range thunks {
		m.makers[addr] = all[addr]
	}
	return nil
}

// writtenAt is the one line on which code lies; none where that is on several, or not known of some.
func (s *resolver) writtenAt(code []uint64) ([]eventlog.Line, error) {
	if s.debug == nil || len(code) == 0 {
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
