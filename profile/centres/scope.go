package centres

import (
	"slices"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/profile/columns"
)

// scope is the rule by which code belongs to centres.
type scope uint8

const (
	// scopeLexical takes all centres that statically enclose the code, by its source
	// notes, its procedure, and the procedures that it was derived from.
	scopeLexical scope = iota
	// scopeProcedure takes only the centres of its procedure and of the procedure's
	// own notes.
	scopeProcedure
	scopes
)

// chains maps each place to the centres that its code lies in, innermost first. Places
// share chains; chain 0 is empty.
type chains struct {
	of   []uint32 // by place
	list [][]int32
}

func (c *Found) chains(scope scope) *chains {
	m := &c.modes[scope]
	m.once.Do(func() {
		out := &chains{of: make([]uint32, len(c.p.Places)), list: [][]int32{nil}}
		index := map[string]uint32{"": 0}
		var ids []int32
		var key []byte
		for place := range c.p.Places {
			if !c.p.Places[place].Class.Code() {
				continue
			}
			ids = c.enclosing(uint32(place), scope, ids[:0])
			key = key[:0]
			for _, id := range ids {
				key = append(key, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
			}
			id, ok := index[string(key)]
			if !ok {
				id = uint32(len(out.list))
				out.list = append(out.list, slices.Clone(ids))
				index[string(key)] = id
			}
			out.of[place] = id
		}
		m.chains = out
	})
	return m.chains
}

// enclosing appends the centres that a place's code lies in, innermost first.
//
// The cause set is a path from the inside outwards. On this path, a span's centre
// encloses the span. The centre of a binding, module or package encloses the part of the
// path that lies in it, and therefore comes after all centres of that part.
func (c *Found) enclosing(place uint32, scope scope, out []int32) []int32 {
	p := c.p
	s, l := &p.Symbols, &p.Locations[place]
	add := func(id int32) {
		if id != 0 && !slices.Contains(out, id-1) {
			out = append(out, id-1)
		}
	}
	within := func(b columns.BindingID, next columns.BindingID) {
		if b == next {
			return
		}
		add(c.binding[b])
		x, y := &s.Bindings[b], &s.Bindings[next]
		if x.Package != y.Package || x.Module != y.Module || next == 0 {
			add(c.module[b])
		}
		if x.Package != y.Package || next == 0 {
			add(c.pkg[b])
		}
	}
	owner := p.Owner(place)
	near := l.Quality == eventlog.QualityNear
	var home columns.BindingID
	if owner != 0 {
		home = s.Bindings[owner].Source
	}
	if l.Block != 0 && !near {
		bl := &s.Blocks[l.Block]
		causes := s.Causes(bl)
		local := len(s.Enclosing(bl)) > 0
		for i, cause := range causes {
			sp := &s.Spans[cause.Span]
			if scope == scopeProcedure && local && cause.Distance > 0 {
				break // the remaining procedures enclose this one
			}
			if sp.File != 0 && len(c.spans) > 0 {
				for _, sc := range c.spans[sp.File] {
					if sc.x.Contains(sp.Extent) {
						add(sc.centre + 1)
					}
				}
			}
			if scope == scopeProcedure {
				continue
			}
			b := c.spanBinding(sp)
			next := home
			if i+1 < len(causes) {
				next = c.spanBinding(&s.Spans[causes[i+1].Span])
			}
			within(b, next)
		}
	}
	if near {
		// The preceding symbol is only a guess for the binding, but its module is
		// certain.
		add(c.module[home])
		add(c.pkg[home])
		return out
	}
	within(home, 0)
	if l.Block != 0 && scope == scopeLexical {
		bl := &s.Blocks[l.Block]
		for _, e := range s.Enclosing(bl) {
			within(s.Bindings[e].Source, 0)
		}
	}
	return out
}

// spanBinding returns the source binding that a span lies in, or if unknown, one of the
// same module.
func (c *Found) spanBinding(sp *columns.Span) columns.BindingID {
	if sp.Binding != 0 {
		return c.p.Symbols.Bindings[sp.Binding].Source
	}
	return 0
}

// cafs identifies CAFs: constant applicative forms, evaluated once.
type cafs struct {
	// boundary is set, by place, for the update frames on which a CAF's evaluation
	// begins.
	boundary []bool
	code     []bool // by binding: the procedure is the code of a CAF
}

// cafUpdate is the update frame that newCAF pushes. Other update frames get the same info
// pointer when a thread pauses, because threadPaused marks them.
const cafUpdate = ghc.CAFUpdateFrameName

// cafs finds the CAFs whose evaluation was sampled. A procedure counts as a CAF's if it
// was seen directly on a CAF's update frame, and never on anything except update frames
// and itself. A function that a CAF jumps to does not qualify: it is called from
// elsewhere, too.
func (c *Found) cafs() *cafs {
	c.evaluated.once.Do(func() {
		p := c.p
		s := &p.Symbols
		t := &cafs{boundary: make([]bool, len(p.Places)), code: make([]bool, len(s.Bindings))}
		for i := range p.Places {
			if o := p.Owner(uint32(i)); o != 0 {
				name := s.Bindings[o].Name
				t.boundary[i] = name == cafUpdate || s.Bindings[o].Symbol == cafUpdate+ghc.InfoSuffix
			}
		}
		called := make([]bool, len(s.Bindings))
		for n := 1; n < len(p.Nodes.Parent); n++ {
			k := p.Nodes.Kind[n]
			if columns.Structural(k) || k == eventlog.FrameContext || k == eventlog.FrameSkipped {
				continue
			}
			o := p.Owner(p.Nodes.Place[n])
			if o == 0 || p.Locations[p.Nodes.Place[n]].Category != eventlog.CategoryHaskell {
				continue
			}
			up := p.Nodes.Parent[n]
			switch {
			case up != 0 && p.Nodes.Kind[up] == eventlog.FrameUpdate:
				t.code[o] = t.code[o] || t.boundary[p.Nodes.Place[up]]
			case up == 0, p.Nodes.Kind[up] == eventlog.FrameContext, p.Nodes.Kind[up] == eventlog.FrameSkipped:
				// The frame below it is unknown.
			case p.Owner(p.Nodes.Place[up]) == o:
			default:
				called[o] = true
			}
		}
		for i := range t.code {
			t.code[i] = t.code[i] && !called[i]
		}
		c.evaluated.cafs = t
	})
	return c.evaluated.cafs
}
