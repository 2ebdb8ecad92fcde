package symbolize

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/hsname"
)

// block gives a block's id in the log.
func (m *moduleRun) block(id dwarfindex.BlockID) (uint32, error) {
	if n, ok := m.blocks[id]; ok {
		return n, nil
	}
	b := m.x.Block(id)
	out := eventlog.Block{Module: m.mod.ID, Lo: b.Lo, Hi: b.Hi}
	var err error
	if out.Binding, err = m.proc(b.Proc); err != nil {
		return 0, err
	}
	m.enc = m.x.Enclosing(m.enc[:0], id)
	for _, p := range m.enc {
		e, err := m.proc(p)
		if err != nil {
			return 0, err
		}
		out.Enclosing = append(out.Enclosing, e)
	}
	m.causes = m.x.Causes(m.causes[:0], id)
	for _, c := range m.causes {
		s, err := m.span(c.Span)
		if err != nil {
			return 0, err
		}
		out.Causes = append(out.Causes, eventlog.Cause{Span: s, Distance: c.Distance})
	}
	if len(out.Causes) > 0 {
		if err = m.specialised(&out, b.Proc); err != nil {
			return 0, err
		}
	}
	m.r.blockCount++
	m.r.sum.Blocks++
	out.ID = uint32(m.r.blockCount)
	m.blocks[id] = out.ID
	return out.ID, m.r.emit(&out)
}

// specialised adds to a block's causes the imported functions that its code was
// specialised from. They have no notes; the code that uses them has, and is a
// cause as much.
func (m *moduleRun) specialised(out *eventlog.Block, own dwarfindex.ProcID) error {
	procs := append([]dwarfindex.ProcID{own}, m.enc...)
	var first []eventlog.Cause
	for i, id := range procs {
		if !m.x.Proc(id).Adopted {
			continue
		}
		binding := m.r.bindings.roots[m.procs[id]]
		if !strings.HasSuffix(m.r.bindings.named[binding].name, specialisedName) {
			continue
		}
		s, err := m.placeless(binding)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(first, func(c eventlog.Cause) bool { return c.Span == s }) {
			first = append(first, eventlog.Cause{Span: s, Distance: uint32(i)})
		}
	}
	out.Causes = append(first, out.Causes...)
	slices.SortStableFunc(out.Causes, func(a, b eventlog.Cause) int { return cmp.Compare(a.Distance, b.Distance) })
	return nil
}

// placeless is the span of a cause of which only the binding is known.
func (m *moduleRun) placeless(binding uint32) (uint32, error) {
	if id, ok := m.r.placeless[binding]; ok {
		return id, nil
	}
	m.r.spanCount++
	m.r.sum.Spans++
	id := uint32(m.r.spanCount)
	m.r.placeless[binding] = id
	return id, m.r.emit(&eventlog.Span{ID: id, Binding: binding})
}

// span gives a source note's id in the log.
func (m *moduleRun) span(id uint32) (uint32, error) {
	if n, ok := m.spans[id]; ok {
		return n, nil
	}
	s := m.x.Span(id)
	f, err := m.file(s.File)
	if err != nil {
		return 0, err
	}
	out := eventlog.Span{File: f.id, Line: s.Line, Col: s.Col, EndLine: s.EndLine, EndCol: s.EndCol}
	if s.EndLine == s.Line && s.EndCol == s.Col && f.text != nil && s.Col == 1 {
		// Only the beginning is known, and it is a declaration's.
		if first, last, ok := f.text.Extent(int(s.Line)); ok && uint32(first) <= s.Line {
			out.EndLine, out.EndCol = uint32(last)+1, 1
		}
	}
	if out.Binding, err = m.bindingAt(f, s.Line, s.Col); err != nil {
		return 0, err
	}
	m.r.spanCount++
	m.r.sum.Spans++
	out.ID = uint32(m.r.spanCount)
	m.spans[id] = out.ID
	return out.ID, m.r.emit(&out)
}

// bindingAt gives the source binding at a place, 0 if it is unknown.
func (m *moduleRun) bindingAt(f *sourceFile, line, col uint32) (uint32, error) {
	name := f.bindingName(line, col)
	if name == "" {
		return 0, nil
	}
	return m.sourceBinding(f.pkg, f.module, name)
}

// sourceBinding gives a source binding, with its symbol if it has one.
func (m *moduleRun) sourceBinding(pkg, module, name string) (uint32, error) {
	symbol := linkage(pkg, module, name) + "_info"
	if !m.syms.defined[symbol] {
		symbol = ""
	}
	return m.r.bindings.source(pkg, module, name, symbol)
}

func linkage(pkg, module, name string) string {
	s := hsname.Encode(module) + "_" + hsname.Encode(name)
	if pkg != "main" && pkg != "" {
		s = hsname.Encode(pkg) + "_" + s
	}
	return s
}

func (m *moduleRun) position(p dwarfindex.Position) (uint32, error) {
	if p.Line == 0 {
		return 0, nil
	}
	f, err := m.file(p.File)
	if err != nil {
		return 0, err
	}
	return m.bindingAt(f, p.Line, p.Col)
}

// ghcLabel matches the labels that GHC writes for a procedure's name where no
// note has one.
var ghcLabel = regexp.MustCompile(`^[a-zA-Z][0-9][0-9A-Za-z]{1,8}$|^[cu][0-9A-Za-z]{2,8}$|^L[0-9]{6,20}$`)

// proc gives the binding of a procedure.
func (m *moduleRun) proc(id dwarfindex.ProcID) (uint32, error) {
	if n, ok := m.procs[id]; ok {
		return n, nil
	}
	p := m.x.Proc(id)
	n, ok := hsname.Parse(p.Linkage)
	var binding uint32
	var err error
	if ok && !n.Internal {
		binding, err = m.external(p.Linkage, n, &p)
	} else {
		binding, err = m.internal(&p)
	}
	if err == nil {
		m.procs[id] = binding
	}
	return binding, err
}

// internal names a procedure whose linkage name means nothing: by the path of
// declarations that its note has, or by where it is.
func (m *moduleRun) internal(p *dwarfindex.Proc) (uint32, error) {
	pkg, module := m.unitModule(p.Unit)
	parent, err := m.position(p.Pos)
	if err != nil {
		return 0, err
	}
	b := eventlog.Binding{Symbol: p.Linkage, Package: pkg, Module: module, Parent: parent, Category: eventlog.CategoryHaskell, Detail: "local to"}
	path := p.Name
	if p.Pos.Line == 0 && ghcLabel.MatchString(path) {
		path = ""
	}
	if parent == 0 && path == "" {
		if parent, err = m.enclosingSource(p.TickParent); err != nil {
			return 0, err
		}
		b.Parent = parent
	}
	outer := m.r.bindings.named[parent].name
	switch {
	case path != "":
		// The path begins with the top-level binding, an instance's with its
		// method.
		rest := strings.TrimPrefix(path, topOf(path))
		b.Name = path
		if outer != "" {
			b.Name = below(outer, rest)
		}
		if rest == "" && p.Pos.Line != 0 {
			b.Name = below(b.Name, fmt.Sprintf(`.\(%d:%d)`, p.Pos.Line, p.Pos.Col))
			b.Detail = "subexpression of"
		}
	case outer != "":
		b.Name = below(outer, "."+unnamedCode)
		b.Detail = "subexpression of"
		if p.Adopted {
			b.Detail = "used only by"
		}
	default:
		b.Name, b.Detail = unnamedCode, "made by GHC; no source note tells of what"
	}
	if d := m.prov.describe((m.x.Block(p.Root).Lo + 7) &^ 7); d != "" {
		b.Detail = d + ", " + b.Detail
	}
	k := bindingKey{module: m.mod.ID, mod: module, name: p.Linkage + "\x00" + b.Name}
	return m.r.bindings.add(k, b)
}

// enclosingSource gives the source binding of the procedure that a block lies
// in, 0 if it has none.
func (m *moduleRun) enclosingSource(id dwarfindex.BlockID) (uint32, error) {
	for hops := 0; id != dwarfindex.NoBlock && hops < 64; hops++ {
		p := m.x.Proc(m.x.Block(id).Proc)
		if n, ok := hsname.Parse(p.Linkage); ok && !n.Internal {
			b, err := m.external(p.Linkage, n, &p)
			return m.r.bindings.roots[b], err
		}
		if b, err := m.position(p.Pos); b != 0 || err != nil {
			return b, err
		}
		id = p.TickParent
	}
	return 0, nil
}

// unitFile is the source file of a unit, nil if nothing refers to it.
func (m *moduleRun) unitFile(u uint32) (*sourceFile, error) {
	if i, ok := m.fileIndex[dwarfindex.CleanPath(m.x.Unit(u).Name)]; ok {
		return m.file(i)
	}
	return nil, nil
}

// evident reports whether a module has a binding of that name: a symbol of its
// own stands for it.
func (m *moduleRun) evident(n hsname.Name, name string) bool {
	base := linkage(n.Unit, n.Module, name)
	return m.syms.defined[base+"_closure"] || m.syms.defined[base+"_info"]
}
