package columns

import (
	"ccagent/eventlog"
)

// maxText bounds the source text held in memory.
const maxText = 512 << 20

// symbol adds one event of the symbol tables. finish resolves the ids in it, because a
// table may refer to later ones.
func (b *builder) symbol(ev eventlog.Event) {
	s, a := &b.p.Symbols, &b.p.Accounting
	switch ev := ev.(type) {
	case *eventlog.ModuleSymbols:
		i, ok := b.modules[ev.Module]
		if !ok || b.p.Modules[i].HaveSymbols {
			a.Redefined++
			return
		}
		b.p.Modules[i].Symbols, b.p.Modules[i].HaveSymbols = *ev, true
	case *eventlog.File:
		if _, ok := b.files.add(ev.ID); !ok {
			a.Redefined++
			return
		}
		s.Files = append(s.Files, File{Path: ev.Path, Problem: ev.Problem, size: ev.TextSize})
	case *eventlog.FileText:
		b.fileText(ev)
	case *eventlog.Binding:
		if _, ok := b.bindings.add(ev.ID); !ok {
			a.Redefined++
			return
		}
		s.Bindings = append(s.Bindings, Binding{
			Symbol: ev.Symbol, Package: ev.Package, Module: ev.Module, Name: ev.Name,
			Detail: ev.Detail, Parent: BindingID(ev.Parent), Category: ev.Category, Program: ev.Program,
		})
	case *eventlog.Span:
		if _, ok := b.spans.add(ev.ID); !ok {
			a.Redefined++
			return
		}
		s.Spans = append(s.Spans, Span{
			File: FileID(ev.File), Binding: BindingID(ev.Binding),
			Extent: Extent{ev.Line, ev.Col, ev.EndLine, ev.EndCol},
		})
	case *eventlog.Block:
		b.block(ev)
	case *eventlog.Core:
		b.core(ev)
	case *eventlog.CoreText:
		b.coreText(ev)
	case *eventlog.Locations:
		for i := range ev.Locations {
			b.location(ev.Module, &ev.Locations[i])
		}
	}
}

// fileText appends a chunk of text. It drops chunks that do not continue the text so far,
// because a text with a hole would show wrong lines.
func (b *builder) fileText(ev *eventlog.FileText) {
	a := &b.p.Accounting
	id, ok := b.files.find(ev.File)
	if !ok {
		a.Undefined.Files++
		return
	}
	f := &b.p.Symbols.Files[id]
	b.appendText(&f.Text, f.size, ev.Offset, ev.Text)
}

// appendText appends a chunk to a text whose size the log has stated.
func (b *builder) appendText(to *[]byte, size, offset uint64, chunk []byte) {
	a := &b.p.Accounting
	n := uint64(len(chunk))
	switch have := uint64(len(*to)); {
	case offset != have || have+n > size:
		a.Redefined++
	case b.text+n > maxText:
		a.DroppedText += n
	default:
		b.text += n
		*to = append(*to, chunk...)
	}
}

func (b *builder) block(ev *eventlog.Block) {
	s := &b.p.Symbols
	if _, ok := b.blocks.add(ev.ID); !ok {
		b.p.Accounting.Redefined++
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

func (b *builder) location(module uint32, l *eventlog.Location) {
	s := &b.p.Symbols
	raw := rawLocation{
		at: Place{Class: PlaceUser, Module: module, Addr: l.Addr}, block: l.Block, binding: l.Binding,
		offset: l.Offset, quality: l.Quality, category: l.Category,
	}
	raw.lines[0] = uint32(len(s.lines))
	for _, ln := range l.Lines {
		s.lines = append(s.lines, Line{BindingID(ln.Binding), FileID(ln.File), ln.Line})
	}
	raw.lines[1] = uint32(len(s.lines))
	b.locations = append(b.locations, raw)
}

// finish resolves all references between tables and returns the Log.
func (b *builder) finish() *Log {
	p := b.p
	b.finishRTS()
	if b.sums != nil {
		p.Totals = b.sums.totals(p.Events, len(b.sites.sites))
	}
	p.Duration = b.last
	p.Nodes, p.Places = b.nodes.Nodes, b.nodes.places
	p.Contexts = b.contexts.list
	p.Sites, p.SkippedWords = b.sites.sites, b.sites.words
	for i := range p.Threads {
		t := &p.Threads[i]
		if name, ok := b.names[thread{t.PID, t.TSO}]; ok {
			t.Label = name
		} else {
			t.Label = b.labels[t.TSO]
		}
	}
	b.resolveSymbols()
	b.resolveCores()
	b.resolveLocations()
	b.finishExact()
	for i := 1; i < len(p.Symbols.Files); i++ {
		f := &p.Symbols.Files[i]
		f.Cut = uint64(len(f.Text)) < f.size
	}
	return p
}

func (b *builder) resolveSymbols() {
	s, u := &b.p.Symbols, &b.p.Accounting.Undefined
	for i := range s.Bindings {
		s.Bindings[i].Parent = resolve(&b.bindings, s.Bindings[i].Parent, &u.Bindings)
	}
	resolveSources(s.Bindings)
	for i := range s.Spans {
		s.Spans[i].File = resolve(&b.files, s.Spans[i].File, &u.Files)
		s.Spans[i].Binding = resolve(&b.bindings, s.Spans[i].Binding, &u.Bindings)
	}
	for i := range s.Blocks {
		s.Blocks[i].Binding = resolve(&b.bindings, s.Blocks[i].Binding, &u.Bindings)
	}
	for i := range s.causes {
		s.causes[i].Span = resolve(&b.spans, s.causes[i].Span, &u.Spans)
	}
	for i := range s.enclosing {
		s.enclosing[i] = resolve(&b.bindings, s.enclosing[i], &u.Bindings)
	}
	for i := range s.lines {
		s.lines[i].Binding = resolve(&b.bindings, s.lines[i].Binding, &u.Bindings)
		s.lines[i].File = resolve(&b.files, s.lines[i].File, &u.Files)
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

func (b *builder) resolveLocations() {
	p := b.p
	u := &p.Accounting.Undefined
	p.Locations = make([]Location, len(p.Places))
	for i := range b.locations {
		raw := &b.locations[i]
		id, ok := b.nodes.placeIDs[raw.at]
		if !ok && raw.at.Module == 0 {
			raw.at.Class = PlaceKernel
			id, ok = b.nodes.placeIDs[raw.at]
		}
		if !ok || p.Locations[id].found {
			continue
		}
		l := Location{
			Binding: resolve(&b.bindings, BindingID(raw.binding), &u.Bindings),
			Offset:  raw.offset, lines: raw.lines, Quality: raw.quality, Category: raw.category, found: true,
		}
		l.Block = resolve(&b.blocks, raw.block, &u.Blocks)
		p.Locations[id] = l
	}
	for i := range p.Locations {
		if p.Places[i].Class == PlaceKernel {
			p.Locations[i].Category = eventlog.CategoryKernel
		}
	}
}
