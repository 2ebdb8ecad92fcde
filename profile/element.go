package profile

import (
	"fmt"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/curry"
)

// levelIndex maps each place to the elements of its cause set at one level.
type levelIndex struct {
	level    Level
	elements []Element
	start    []uint32 // by place; the elements of place i are ids[start[i]:start[i+1]]
	ids      []ElementID
	near     []bool // by place: attributed by a marked guess
	category [eventlog.CategoryKernel + 1]ElementID
	hidden   ElementID
	waiting  ElementID
	search   ElementID // NoElement where the log has no functional-logic program
	// named has the elements of what the run-time system allocates for itself, and of waits.
	named map[string]ElementID
	group *grouping // of the selection that the index is for; nil if nothing is collapsed
	// byKey and homes are used only while the index is built.
	byKey map[elementKey]ElementID
	homes map[[2]string]columns.FileID // the only file of a module, by package and module
}

type elementKey struct {
	kind Kind
	a, b string
	x    columns.Extent
	// program is the log's module that an element belongs to; 0 where the log has only one
	// program of its own modules.
	program uint32
}

func (ix *levelIndex) of(place uint32) []ElementID { return ix.ids[ix.start[place]:ix.start[place+1]] }

// index returns a level's index, which is built once.
func (p *Profile) index(level Level) *levelIndex {
	l := &p.levels[level]
	l.once.Do(func() { l.index = p.buildIndex(level) })
	return l.index
}

// Elements returns all elements of a level, by ElementID.
func (p *Profile) Elements(level Level) []Element { return p.index(level).elements }

func (p *Profile) buildIndex(level Level) *levelIndex {
	ix := &levelIndex{
		level: level, start: make([]uint32, 1, len(p.Places)+1), near: make([]bool, len(p.Places)),
		byKey: make(map[elementKey]ElementID),
	}
	for c := range ix.category {
		ix.category[c] = ix.categoryID(categoryElement(eventlog.Category(c)))
	}
	ix.hidden, ix.waiting = ix.categoryID(hiddenElement), ix.categoryID(waitingElement)
	ix.search = NoElement
	if p.IsCurry() {
		ix.search = ix.categoryID(searchElement)
	}
	ix.named = map[string]ElementID{}
	for _, name := range rtsAllocates {
		ix.named[name] = ix.categoryID(name)
	}
	ix.named[bytecodeElement] = ix.categoryID(bytecodeElement)
	for _, name := range leafElements() {
		ix.named[name] = ix.categoryID(name)
	}
	if level == LevelFile {
		ix.homes = p.homes()
	}
	var scratch elementSet
	for id := range p.Places {
		scratch.reset()
		p.elementsOf(ix, uint32(id), nil, &scratch)
		ix.ids = append(ix.ids, scratch.ids...)
		ix.start = append(ix.start, uint32(len(ix.ids)))
	}
	ix.extents(p)
	ix.groupElements(p)
	ix.byKey, ix.homes = nil, nil
	return ix
}

// elementSet is a small set that keeps the order of insertion.
type elementSet struct {
	ids  []ElementID
	seen map[ElementID]struct{} // used above smallSet elements
}

const smallSet = 16

func (s *elementSet) reset() {
	s.ids = s.ids[:0]
	s.seen = nil
}

func (s *elementSet) add(id ElementID) {
	if s.seen == nil && len(s.ids) < smallSet {
		for _, have := range s.ids {
			if have == id {
				return
			}
		}
		s.ids = append(s.ids, id)
		return
	}
	if s.seen == nil {
		s.seen = make(map[ElementID]struct{})
		for _, have := range s.ids {
			s.seen[have] = struct{}{}
		}
	}
	if _, ok := s.seen[id]; !ok {
		s.seen[id] = struct{}{}
		s.ids = append(s.ids, id)
	}
}

// elementsOf adds the elements of a place to set, except those for which hide returns
// true. A place without code has none.
func (p *Profile) elementsOf(ix *levelIndex, id uint32, hide func(item) bool, set *elementSet) {
	if !p.Places[id].Class.Named() {
		return
	}
	var items []item
	p.items(id, func(it item) {
		if it.kind == KindNear {
			ix.near[id] = true
		}
		if hide == nil || !hide(it) {
			items = append(items, it)
		}
	})
	if ix.level == LevelLine {
		items = p.narrowest(items)
	}
	if len(items) > 0 && items[0].span == 0 && (ix.level == LevelLine || ix.level == LevelFile && items[0].kind != KindCategory) {
		if e, ok := ix.lineElement(p, id); ok {
			set.add(e)
			return
		}
	}
	left := false
	for _, it := range items {
		e, ok := ix.element(p, it)
		if ok {
			set.add(e)
		} else {
			left = true
		}
	}
	// Spans without an element at this level count only if the place has no other
	// elements; they count for the procedure that the code belongs to.
	if left && len(set.ids) == 0 {
		owner := p.Owner(id)
		it := item{binding: p.Symbols.Bindings[owner].Source, category: eventlog.CategoryHaskell, kind: KindSource}
		if owner == 0 {
			it.kind = KindCategory
		}
		if e, ok := ix.element(p, it); ok {
			set.add(e)
		} else {
			set.add(ix.category[eventlog.CategoryHaskell])
		}
	}
}

// narrowest returns the spans that contain no other span of the same file.
func (p *Profile) narrowest(items []item) []item {
	kept := items[:0:0]
	for i, a := range items {
		wide := false
		if a.span != 0 {
			sa := &p.Symbols.Spans[a.span]
			for j, b := range items {
				if i == j || b.span == 0 {
					continue
				}
				sb := &p.Symbols.Spans[b.span]
				if sa.File == sb.File && sa.Extent != sb.Extent && sa.Contains(sb.Extent) {
					wide = true
					break
				}
			}
		}
		if !wide {
			kept = append(kept, a)
		}
	}
	return kept
}

// element returns an item's element at the index's level; false if the item has no known
// element there.
func (ix *levelIndex) element(p *Profile, it item) (ElementID, bool) {
	s := &p.Symbols
	switch {
	case it.waiting:
		return ix.waiting, true
	case it.named != "":
		return ix.named[it.named], true
	case it.search && ix.level != LevelSpan && ix.level != LevelLine:
		return ix.search, true
	}
	if it.kind == KindCategory {
		return ix.category[min(it.category, eventlog.CategoryKernel)], true
	}
	sp := &s.Spans[it.span]
	b := &s.Bindings[it.binding]
	if b.Module == "" && it.span != 0 && (ix.level == LevelModule || ix.level == LevelPackage) {
		b = &s.Bindings[p.ModuleOfFile()[sp.File]]
	}
	file := s.Files[sp.File].Path
	switch ix.level {
	case LevelSpan, LevelLine, LevelFile:
		if it.span == 0 {
			return ix.noFileElement(p, b), true
		}
		if sp.File == 0 {
			return 0, false
		}
		return ix.sourceElement(p, it, sp, file, b), true
	case LevelModule:
		if b.Module == "" {
			return 0, false
		}
		if as := ix.group.of(b); as.pkg {
			return ix.groupElement(b, as), true
		}
		return ix.putOwn(p, b, elementKey{KindSource, b.Package, b.Module, columns.Extent{}, 0}, func() Element {
			return Element{Name: b.Module, Module: b.Module, Package: b.Package}
		}), true
	case LevelPackage:
		if b.Package == "" {
			return 0, false
		}
		return ix.putOwn(p, b, elementKey{KindSource, b.Package, "", columns.Extent{}, 0}, func() Element {
			return Element{Name: b.Package, Package: b.Package}
		}), true
	default:
		if it.binding == 0 {
			return 0, false
		}
		if ix.level == LevelFunction && p.IsCurry() {
			it.binding = p.search.joined[it.binding]
			b = &s.Bindings[it.binding]
		}
		if as := ix.group.of(b); as.module || as.pkg {
			return ix.groupElement(b, as), true
		}
		name := b.QualifiedName()
		if ix.level == LevelFunction {
			name = strings.TrimSuffix(name, curry.NonDeterministicMark)
		}
		if it.kind == KindNear {
			name = b.NearName()
		}
		return ix.putOwn(p, b, elementKey{it.kind, b.Package, name, columns.Extent{}, 0}, func() Element {
			return Element{Kind: it.kind, Name: name, Module: b.Module, Package: b.Package, Binding: it.binding}
		}), true
	}
}

func (ix *levelIndex) sourceElement(p *Profile, it item, sp *columns.Span, file string, b *columns.Binding) ElementID {
	x := sp.Extent
	var name string
	switch ix.level {
	case LevelFile:
		x, name = columns.Extent{}, file
	case LevelLine:
		x, name = columns.Extent{Line: sp.Line}, fmt.Sprintf("%s:%d", file, sp.Line)
	default:
		name = file + ":" + x.String()
	}
	if b.Module == "" {
		b = &p.Symbols.Bindings[p.ModuleOfFile()[sp.File]]
	}
	return ix.putOwn(p, b, elementKey{KindSource, file, "", x, 0}, func() Element {
		return Element{Name: name, File: file, FileID: sp.File, Span: x, Module: b.Module, Package: b.Package, Binding: it.binding}
	})
}

// lineElement returns the line of the line table, for code without notes.
func (ix *levelIndex) lineElement(p *Profile, id uint32) (ElementID, bool) {
	file, line := p.position(id)
	if file == 0 {
		return 0, false
	}
	if ix.level == LevelFile {
		return ix.fileElement(p, &p.Symbols.Bindings[p.Owner(id)], file), true
	}
	path := p.Symbols.Files[file].Path
	x := columns.Extent{Line: line}
	return ix.putOwn(p, &p.Symbols.Bindings[p.Owner(id)], elementKey{KindSource, path, "", x, 0}, func() Element {
		return Element{Name: fmt.Sprintf("%s:%d", path, line), File: path, FileID: file, Span: x}
	}), true
}

// fileElement returns the element of a file, of a binding's program, that is known from evidence
// other than a span.
func (ix *levelIndex) fileElement(p *Profile, own *columns.Binding, file columns.FileID) ElementID {
	path := p.Symbols.Files[file].Path
	return ix.putOwn(p, own, elementKey{KindSource, path, "", columns.Extent{}, 0}, func() Element {
		b := &p.Symbols.Bindings[p.ModuleOfFile()[file]]
		return Element{Name: path, File: path, FileID: file, Module: b.Module, Package: b.Package}
	})
}

// noFileElement returns the element of a procedure without a span: the only file of its
// module in which other bindings have spans; otherwise the module or package.
func (ix *levelIndex) noFileElement(p *Profile, b *columns.Binding) ElementID {
	e := Element{Kind: KindNoFile, Package: b.Package, Module: b.Module}
	switch file := ix.homes[[2]string{b.Package, b.Module}]; {
	case ix.level == LevelLine || b.Package == "" && b.Module == "":
		return ix.category[eventlog.CategoryHaskell]
	case file != 0:
		return ix.fileElement(p, b, file)
	case b.Module != "":
		e.Name = "module " + b.Module
	default:
		e.Name = "package " + b.Package
	}
	return ix.putOwn(p, b, elementKey{KindNoFile, b.Package, b.Module, columns.Extent{}, 0}, func() Element { return e })
}

// homes returns the only file that a module's code lies in, by package and module.
func (p *Profile) homes() map[[2]string]columns.FileID {
	out := make(map[[2]string]columns.FileID)
	many := make(map[[2]string]bool)
	for f, id := range p.ModuleOfFile() {
		if id == 0 {
			continue
		}
		b := &p.Symbols.Bindings[id]
		k := [2]string{b.Package, b.Module}
		many[k] = many[k] || out[k] != 0
		out[k] = columns.FileID(f)
	}
	for k := range many {
		if many[k] {
			delete(out, k)
		}
	}
	return out
}

func (ix *levelIndex) put(k elementKey, make func() Element) ElementID {
	if id, ok := ix.byKey[k]; ok {
		return id
	}
	id := ElementID(len(ix.elements))
	e := make()
	e.ID, e.Level, e.key = id, ix.level, k
	ix.elements = append(ix.elements, e)
	ix.byKey[k] = id
	return id
}

func (ix *levelIndex) categoryID(name string) ElementID {
	return ix.put(elementKey{KindCategory, name, "", columns.Extent{}, 0}, func() Element {
		return Element{Kind: KindCategory, Name: name}
	})
}

// firstLines returns the lowest line that was sampled of each binding whose code has no source notes, by the line table: that
// of GHC's -g1, and of other languages. It is of the file that most of the binding's code comes from, since some may be
// inlined from elsewhere.
func (p *Profile) firstLines() map[columns.BindingID]columns.Line {
	type within struct {
		binding columns.BindingID
		file    columns.FileID
	}
	places, lowest := make(map[within]int), make(map[within]uint32)
	for id := range p.Locations {
		if p.Locations[id].Block != 0 {
			continue
		}
		file, line := p.position(uint32(id))
		of := within{p.Symbols.Bindings[p.Owner(uint32(id))].Source, file}
		if of.binding == 0 || file == 0 {
			continue
		}
		places[of]++
		if n, ok := lowest[of]; !ok || line < n {
			lowest[of] = line
		}
	}
	first, most := make(map[columns.BindingID]columns.Line), make(map[columns.BindingID]int)
	for of, n := range places {
		if best := first[of.binding]; n > most[of.binding] || n == most[of.binding] && of.file < best.File {
			first[of.binding], most[of.binding] = columns.Line{Binding: of.binding, File: of.file, Line: lowest[of]}, n
		}
	}
	return first
}

// extents sets the file of bindings, modules and packages, and the widest span of
// bindings, or their lowest line.
func (ix *levelIndex) extents(p *Profile) {
	s := &p.Symbols
	switch ix.level {
	case LevelBinding, LevelFunction:
		of, lines := s.BindingSpans(), p.firstLines()
		for i := range ix.elements {
			e := &ix.elements[i]
			if e.Kind != KindSource {
				continue
			}
			if sp := &s.Spans[of[e.Binding]]; sp.File != 0 {
				e.File, e.FileID, e.Span = s.Files[sp.File].Path, sp.File, sp.Extent
			} else if l, ok := lines[e.Binding]; ok {
				e.File, e.FileID, e.Span = s.Files[l.File].Path, l.File, columns.Extent{Line: l.Line}
			}
		}
	case LevelModule:
		of := make(map[[2]string]columns.FileID)
		for f, b := range p.ModuleOfFile() {
			if b != 0 {
				bd := &s.Bindings[b]
				if k := [2]string{bd.Package, bd.Module}; of[k] == 0 {
					of[k] = columns.FileID(f)
				}
			}
		}
		for i := range ix.elements {
			e := &ix.elements[i]
			if f := of[[2]string{e.Package, e.Module}]; f != 0 && e.Module != "" {
				e.File, e.FileID = s.Files[f].Path, f
			}
		}
	}
}
