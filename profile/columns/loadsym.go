package columns

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
)

// maxText bounds the source text held in memory.
const maxText = 512 << 20

// symbolTable collects the symbol tables: modules, and what is known of their code.
type symbolTable struct {
	p         *Log
	modules   map[uint32]int // id → position in Log.Modules
	bindings  ids
	spans     ids
	files     ids
	blocks    ids
	cores     ids
	text      uint64 // bytes of text held
	locations []rawLocation
}

// rawLocation is a location with the log's ids, before they are resolved.
type rawLocation struct {
	at       Place
	block    uint32
	binding  uint32
	offset   uint64
	lines    [2]uint32
	quality  eventlog.Quality
	category eventlog.Category
}

func (t *symbolTable) module(ev *eventlog.Module) {
	if _, ok := t.modules[ev.ID]; ok {
		t.p.Accounting.Redefined++
		return
	}
	m := Module{Module: *ev}
	m.BuildID = append([]byte(nil), ev.BuildID...)
	t.modules[ev.ID] = len(t.p.Modules)
	t.p.Modules = append(t.p.Modules, m)
}

// symbol adds one event of the symbol tables. finish resolves the ids in it, because a
// table may refer to later ones.
func (t *symbolTable) symbol(ev eventlog.Event) {
	s, a := &t.p.Symbols, &t.p.Accounting
	switch ev := ev.(type) {
	case *eventlog.ModuleSymbols:
		i, ok := t.modules[ev.Module]
		if !ok || t.p.Modules[i].HaveSymbols {
			a.Redefined++
			return
		}
		t.p.Modules[i].Symbols, t.p.Modules[i].HaveSymbols = *ev, true
	case *eventlog.File:
		if _, ok := t.files.add(ev.ID); !ok {
			a.Redefined++
			return
		}
		s.Files = append(s.Files, File{Path: ev.Path, Problem: ev.Problem, size: ev.TextSize})
	case *eventlog.FileText:
		t.fileText(ev)
	case *eventlog.Binding:
		if _, ok := t.bindings.add(ev.ID); !ok {
			a.Redefined++
			return
		}
		s.Bindings = append(s.Bindings, Binding{
			Symbol: ev.Symbol, Package: ev.Package, Module: ev.Module, Name: ev.Name,
			Detail: ev.Detail, Parent: BindingID(ev.Parent), Category: ev.Category, Program: ev.Program,
		})
	case *eventlog.Span:
		if _, ok := t.spans.add(ev.ID); !ok {
			a.Redefined++
			return
		}
		s.Spans = append(s.Spans, Span{
			File: FileID(ev.File), Binding: BindingID(ev.Binding),
			Extent: Extent{ev.Line, ev.Col, ev.EndLine, ev.EndCol},
		})
	case *eventlog.Block:
		t.block(ev)
	case *eventlog.Core:
		t.core(ev)
	case *eventlog.CoreText:
		t.coreText(ev)
	case *eventlog.Locations:
		for i := range ev.Locations {
			t.location(ev.Module, &ev.Locations[i])
		}
	}
}

// fileText appends a chunk of text. It drops chunks that do not continue the text so far,
// because a text with a hole would show wrong lines.
func (t *symbolTable) fileText(ev *eventlog.FileText) {
	a := &t.p.Accounting
	id, ok := t.files.find(ev.File)
	if !ok {
		a.Undefined.Files++
		return
	}
	f := &t.p.Symbols.Files[id]
	t.appendText(&f.Text, f.size, ev.Offset, ev.Text)
}

// appendText appends a chunk to a text whose size the log has stated.
func (t *symbolTable) appendText(to *[]byte, size, offset uint64, chunk []byte) {
	a := &t.p.Accounting
	n := uint64(len(chunk))
	switch have := uint64(len(*to)); {
	case offset != have || have+n > size:
		a.Redefined++
	case t.text+n > maxText:
		a.DroppedText += n
	default:
		t.text += n
		*to = append(*to, chunk...)
	}
}

func (t *symbolTable) block(ev *eventlog.Block) {
	s := &t.p.Symbols
	if _, ok := t.blocks.add(ev.ID); !ok {
		t.p.Accounting.Redefined++
		return
	}
	bl := Block{Module: ev.Module, Lo: ev.Lo, Hi: ev.Hi, Binding: BindingID(ev.Binding)}
	bl.causes[0] = uint32(len(s.causes))
	for _, c := range ev.Causes {
		s.causes = append(s.causes, Cause{SpanID(c.Span), c.Distance})
	}
	bl.causes[1] = uint32(len(s.causes))
	bl.enclosing[0] = uint32(len(s.enclosing))
	for _, e := range ev.Enclosing {
		s.enclosing = append(s.enclosing, BindingID(e))
	}
	bl.enclosing[1] = uint32(len(s.enclosing))
	s.Blocks = append(s.Blocks, bl)
}

func (t *symbolTable) location(module uint32, l *eventlog.Location) {
	s := &t.p.Symbols
	raw := rawLocation{
		at: Place{Class: PlaceUser, Module: module, Addr: l.Addr}, block: l.Block, binding: l.Binding,
		offset: l.Offset, quality: l.Quality, category: l.Category,
	}
	raw.lines[0] = uint32(len(s.lines))
	for _, ln := range l.Lines {
		s.lines = append(s.lines, Line{BindingID(ln.Binding), FileID(ln.File), ln.Line})
	}
	raw.lines[1] = uint32(len(s.lines))
	t.locations = append(t.locations, raw)
}

// finish resolves all references between tables and returns the Log.
func (b *builder) finish() *Log {
	p := b.p
	b.rts.finish(b.last)
	b.finishProfile()
	p.Duration = b.last
	slices.SortFunc(p.Gaps, func(x, y Gap) int { return cmp.Compare(x.From, y.From) })
	p.Nodes, p.Places = b.stacks.nodes.Nodes, b.stacks.nodes.places
	p.Sites, p.SkippedWords, p.FoldedFrames = b.stacks.sites.sites, b.stacks.sites.words, b.stacks.sites.folded
	b.columns.finish(len(p.Sites))
	b.symbols.finish(&b.stacks.nodes)
	b.stacks.finishExact()
	for i := 1; i < len(p.Symbols.Files); i++ {
		f := &p.Symbols.Files[i]
		f.Cut = uint64(len(f.Text)) < f.size
	}
	return p
}

// finish resolves the references between the tables, and finds the locations of places.
func (t *symbolTable) finish(nodes *nodeTable) {
	t.resolveSymbols()
	t.resolveCores()
	t.resolveLocations(nodes)
}

func (t *symbolTable) resolveSymbols() {
	s, u := &t.p.Symbols, &t.p.Accounting.Undefined
	for i := range s.Bindings {
		s.Bindings[i].Parent = resolve(&t.bindings, s.Bindings[i].Parent, &u.Bindings)
	}
	resolveSources(s.Bindings)
	for i := range s.Spans {
		s.Spans[i].File = resolve(&t.files, s.Spans[i].File, &u.Files)
		s.Spans[i].Binding = resolve(&t.bindings, s.Spans[i].Binding, &u.Bindings)
	}
	for i := range s.Blocks {
		s.Blocks[i].Binding = resolve(&t.bindings, s.Blocks[i].Binding, &u.Bindings)
	}
	for i := range s.causes {
		s.causes[i].Span = resolve(&t.spans, s.causes[i].Span, &u.Spans)
	}
	for i := range s.enclosing {
		s.enclosing[i] = resolve(&t.bindings, s.enclosing[i], &u.Bindings)
	}
	for i := range s.lines {
		s.lines[i].Binding = resolve(&t.bindings, s.lines[i].Binding, &u.Bindings)
		s.lines[i].File = resolve(&t.files, s.lines[i].File, &u.Files)
	}
}

func resolve[ID ~uint32](t *ids, id ID, undefined *uint64) ID {
	if id == 0 {
		return 0
	}
	d, ok := t.find(uint32(id))
	if !ok {
		*undefined++
		return 0
	}
	return ID(d)
}

// resolveSources finds the source binding at the end of each chain of parents. A circular
// chain has no end: each of its members is its own source binding.
func resolveSources(bs []Binding) {
	const (
		unknown = BindingID(0)
		onPath  = ^BindingID(0)
	)
	var path []BindingID
	for i := 1; i < len(bs); i++ {
		path = path[:0]
		id := BindingID(i)
		for bs[id].Source == unknown && bs[id].Parent != 0 {
			bs[id].Source = onPath
			path = append(path, id)
			id = bs[id].Parent
		}
		source := bs[id].Source
		if source == unknown {
			source = id
			bs[id].Source = id
		}
		for _, m := range path {
			if source == onPath {
				bs[m].Source, bs[m].Parent = m, 0
			} else {
				bs[m].Source = source
			}
		}
	}
}

func (t *symbolTable) resolveLocations(nodes *nodeTable) {
	p := t.p
	u := &p.Accounting.Undefined
	p.Locations = make([]Location, len(p.Places))
	for i := range t.locations {
		raw := &t.locations[i]
		id, ok := nodes.placeIDs[raw.at]
		if !ok && raw.at.Module == 0 {
			raw.at.Class = PlaceKernel
			id, ok = nodes.placeIDs[raw.at]
		}
		if !ok || p.Locations[id].found {
			continue
		}
		l := Location{
			Binding: resolve(&t.bindings, BindingID(raw.binding), &u.Bindings),
			Offset:  raw.offset, lines: raw.lines, Quality: raw.quality, Category: raw.category, found: true,
		}
		l.Block = resolve(&t.blocks, raw.block, &u.Blocks)
		p.Locations[id] = l
	}
	for i := range p.Locations {
		switch p.Places[i].Class {
		case PlaceKernel:
			p.Locations[i].Category = eventlog.CategoryKernel
		case PlaceLeaf: // no code; the scheduler has put the thread aside, or the run-time system has ended an attempt
			p.Locations[i].Category, p.Locations[i].found = eventlog.CategoryRTS, true
		}
	}
}
