package symbolize

import (
	"context"
	"strings"

	"ccagent/symbolize/coderefs"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/hsname"
)

// adopt finds where the procedures came from of which GHC's notes tell nothing,
// by what refers to them.
func (m *moduleRun) adopt(ctx context.Context) error {
	var orphans []dwarfindex.ProcID
	var entries []uint64
	for i := 1; i <= m.x.Procs(); i++ {
		p := m.x.Proc(dwarfindex.ProcID(i))
		if !p.Live || p.TickParent != dwarfindex.NoBlock || p.Pos.Line != 0 || !m.orphan(p.Linkage) {
			continue
		}
		orphans = append(orphans, p.ID)
		// From GHC 9.2 on low_pc is one byte before the label, which is aligned.
		entries = append(entries, (m.x.Block(p.Root).Lo+7)&^7)
	}
	found, err := coderefs.Find(ctx, m.elf, entries)
	if err != nil {
		return err
	}
	refs := make([]dwarfindex.Reference, 0, len(found.Code))
	for _, r := range found.Code {
		if ref := (dwarfindex.Reference{From: r.From, To: orphans[r.Target]}); !found.Escapes[r.Target] && m.refers(&ref) {
			refs = append(refs, ref)
		}
	}
	m.x.Adopt(orphans, refs)
	return nil
}

// refers reports whether a reference tells where a procedure came from: it lies
// in a block of the procedure's own module, or right before one, where a static
// reference table's offset is. What other modules refer to they have inlined.
func (m *moduleRun) refers(r *dwarfindex.Reference) bool {
	id := m.x.Lookup(r.From)
	if id == dwarfindex.NoBlock {
		const offset = 4
		r.From += offset
		if id = m.x.Lookup(r.From); id == dwarfindex.NoBlock {
			return false
		}
		if lo := m.x.Block(id).Lo; lo != r.From && lo+1 != r.From {
			return false
		}
	}
	return m.x.Proc(m.x.Block(id).Proc).Unit == m.x.Proc(r.To).Unit
}

// orphan reports whether a procedure without notes may be part of what refers
// to it: code that GHC made out of other code. A binding in its own right that
// has no notes (derived instances, constructors, wrappers) is not.
func (m *moduleRun) orphan(linkage string) bool {
	n, ok := hsname.Parse(linkage)
	if !ok || n.Internal {
		return true
	}
	if n.Kind == hsname.KindConInfo || m.syms.defined[made(n, "$w"+n.Name)] {
		return false
	}
	o := hsname.Explain(n.Name)
	if o.Instance != "" {
		return false
	}
	for _, w := range []string{"constructor", "run-time", "dictionary", "class", "instance", "pattern"} {
		if strings.Contains(o.Words, w) {
			return false
		}
	}
	return o.Words != "" || strings.TrimRight(n.Name, "0123456789") != n.Name
}

// made is the symbol that a binding made beside n would have.
func made(n hsname.Name, name string) string {
	return linkage(n.Unit, n.Module, name) + "_info"
}
