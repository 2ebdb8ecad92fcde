package symbolize

import (
	"ccagent/eventlog"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/naming"
	"ccagent/symbolize/sources"
	"cmp"
	"context"
	"math"
	"slices"
)

// witness is one kind of evidence of a module, with the log's ids of its blocks, spans
// and procedures.
type witness struct {
	evidence evidence.Evidence
	sourced  evidence.Sourced // the same; nil for evidence without source positions
	files    *sources.Files
	namer    *naming.Namer
	spans    map[evidence.SpanID]uint32
	blocks   map[evidence.BlockID]uint32
}

// resolver resolves the addresses of one module, or of the kernel.
type resolver struct {
	run       *run
	module    uint32 // in the log
	finder    *sources.Finder
	witnesses []*witness          // in the order in which they are asked
	lines     evidence.Lines      // nil without line tables
	debug     *witness            // whose lines these are
	makers    map[uint64][]uint64 // code that makes standard thunks, by their info table
}

// add adds evidence, to be asked after what was added before.
func (s *resolver) add(e evidence.Evidence, symbols evidence.Symbols, closures func(info uint64) string) *witness {
	w := &witness{evidence: e}
	if sourced, ok := e.(evidence.Sourced); ok {
		w.sourced, w.files = sourced, sources.NewFiles(s.finder, s.run.files, sourced.File, symbols.IsClass)
		w.spans, w.blocks = map[evidence.SpanID]uint32{}, map[evidence.BlockID]uint32{}
	}
	w.namer = naming.NewNamer(s.run.bindings, s.module, e, w.files, symbols, closures)
	s.witnesses = append(s.witnesses, w)
	return w
}

// Lookup is the address to look up: of a return address in C, the last byte of its call.
func (a Address) Lookup() uint64 {
	if a.Call && a.Addr > 0 {
		return a.Addr - 1
	}
	return a.Addr
}

// lookups lists the addresses to look up, sorted.
func lookups(addrs []Address) []uint64 {
	var out []uint64
	for _, a := range addrs {
		out = append(out, a.Lookup())
	}
	slices.Sort(out)
	return out
}

// perEvent bounds the locations of one event, to stay below its largest size.
const perEvent = 512

// resolve writes the locations of addresses into the log, each once.
func (s *resolver) resolve(ctx context.Context, addrs []Address) error {
	addrs = slices.Clone(addrs)
	slices.SortFunc(addrs, func(a, b Address) int {
		if c := cmp.Compare(a.Addr, b.Addr); c != 0 || a.Call == b.Call {
			return c
		}
		if b.Call {
			return -1
		}
		return 1
	})
	addrs = slices.CompactFunc(addrs, func(a, b Address) bool { return a.Addr == b.Addr })
	out := eventlog.Locations{Module: s.module}
	for i, a := range addrs {
		if i&1023 == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
		}
		l, err := s.locate(a)
		if err != nil {
			return err
		}
		s.run.count(&l)
		out.Locations = append(out.Locations, l)
		if len(out.Locations) == perEvent || i == len(addrs)-1 {
			if err := s.run.emit(&out); err != nil {
				return err
			}
			out.Locations = out.Locations[:0]
		}
	}
	return nil
}

// locate resolves one address by the first evidence that knows it.
func (s *resolver) locate(a Address) (eventlog.Location, error) {
	addr := a.Lookup()
	l := eventlog.Location{Addr: a.Addr}
	lo, hi := uint64(0), uint64(math.MaxUint64)
	for _, w := range s.witnesses {
		c, ok := w.evidence.At(addr)
		lo, hi = max(lo, c.Lo), min(hi, c.Hi)
		if !ok {
			continue
		}
		if l.Quality, l.Category = c.Quality, c.Category; c.Start != 0 {
			l.Offset = addr - c.Start
		}
		var err error
		if c.Block != 0 {
			if l.Block, err = s.block(w, c.Block); err != nil {
				return l, err
			}
		}
		if c.Proc != 0 {
			if l.Binding, err = w.namer.Procedure(c.Proc); err != nil {
				return l, err
			}
		}
		if s.lines != nil && c.Quality == eventlog.QualityExact {
			l.Lines, err = s.linesAt(addr, &l)
		}
		if made := s.makers[a.Addr]; err == nil && len(made) > 0 && len(l.Lines) == 0 {
			l.Lines, err = s.writtenAt(made)
		}
		if lo < hi && len(l.Lines) == 0 {
			s.run.stretch(Stretch{Module: s.module, Addr: a.Addr, Start: c.Start, Lo: lo, Hi: hi})
		}
		return l, err
	}
	return l, nil
}

// linesAt gives the source lines of an address of C, C++ or Rust code, or of Haskell code
// without source notes.
func (s *resolver) linesAt(addr uint64, l *eventlog.Location) ([]eventlog.Line, error) {
	var out []eventlog.Line
	for _, c := range s.lines.Lines(addr) {
		line := eventlog.Line{Binding: l.Binding, Line: c.Line}
		var err error
		switch haskell := l.Category == eventlog.CategoryHaskell; {
		case haskell != (c.FileID != 0):
			continue
		case haskell:
			var f *sources.File
			if f, err = s.debug.files.File(c.FileID); err == nil {
				line.File = f.ID
			}
		default:
			line.File, err = s.run.files.OfLine(s.finder, c.CompDir, c.File, c.MD5)
		}
		if err != nil {
			return out, err
		}
		if c.Function != "" {
			if line.Binding, err = s.run.bindings.Foreign(s.module, c.Function, l.Category); err != nil {
				return out, err
			}
		}
		out = append(out, line)
	}
	return out, nil
}

// block gives a block's id in the log.
func (s *resolver) block(w *witness, id evidence.BlockID) (uint32, error) {
	if n, ok := w.blocks[id]; ok {
		return n, nil
	}
	b := w.sourced.Block(id)
	out := eventlog.Block{Module: s.module, Lo: b.Lo, Hi: b.Hi}
	var err error
	if out.Binding, err = w.namer.Procedure(b.Proc); err != nil {
		return 0, err
	}
	for _, p := range b.Enclosing {
		e, err := w.namer.Procedure(p)
		if err != nil {
			return 0, err
		}
		out.Enclosing = append(out.Enclosing, e)
	}
	for _, c := range b.Causes {
		span, err := s.span(w, c.Span)
		if err != nil {
			return 0, err
		}
		out.Causes = append(out.Causes, eventlog.Cause{Span: span, Distance: c.Distance})
	}
	if len(out.Causes) > 0 {
		if err = s.specialised(w, &b, &out); err != nil {
			return 0, err
		}
	}
	out.ID = s.run.newBlock()
	w.blocks[id] = out.ID
	return out.ID, s.run.emit(&out)
}

// specialised adds to a block's causes the imported functions that its code was
// specialised from. They have no notes; the code that uses them has, and is a
// cause as much.
func (s *resolver) specialised(w *witness, b *evidence.Block, out *eventlog.Block) error {
	var first []eventlog.Cause
	for i := -1; i < len(b.Enclosing); i++ {
		proc := b.Proc
		if i >= 0 {
			proc = b.Enclosing[i]
		}
		binding := w.namer.SpecialisedFrom(proc)
		if binding == 0 {
			continue
		}
		span, err := s.run.placelessSpan(binding)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(first, func(c eventlog.Cause) bool { return c.Span == span }) {
			first = append(first, eventlog.Cause{Span: span, Distance: uint32(i + 1)})
		}
	}
	out.Causes = append(first, out.Causes...)
	slices.SortStableFunc(out.Causes, func(a, b eventlog.Cause) int { return cmp.Compare(a.Distance, b.Distance) })
	return nil
}

// span gives a source note's id in the log.
func (s *resolver) span(w *witness, id evidence.SpanID) (uint32, error) {
	if n, ok := w.spans[id]; ok {
		return n, nil
	}
	x := w.sourced.Span(id)
	f, err := w.files.File(x.File)
	if err != nil {
		return 0, err
	}
	out := eventlog.Span{File: f.ID, Line: x.Line, Col: x.Col, EndLine: x.EndLine, EndCol: x.EndCol}
	if x.EndLine == x.Line && x.EndCol == x.Col && x.Col == 1 {
		// Only the beginning is known, and it is a declaration's.
		if _, last, ok := f.Declaration(x.Line); ok {
			out.EndLine, out.EndCol = last+1, 1
		}
	}
	if out.Binding, err = w.namer.Source(x.Position); err != nil {
		return 0, err
	}
	out.ID = s.run.newSpan()
	w.spans[id] = out.ID
	return out.ID, s.run.emit(&out)
}
