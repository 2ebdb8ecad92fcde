package dwarf

import (
	"context"
	"slices"
	"strings"

	"ccagent/symbolize/coderefs"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/hsname"
)

// adopt finds where procedures without source notes came from, by the code that refers
// to them.
// If only is set no code is asked about but addresses: without an orphan
// around one of them nothing is looked for, which takes reading all code.
func (e *Evidence) adopt(ctx context.Context, code *elffile.File, only bool, addresses []uint64) error {
	var orphans []dwarfindex.ProcID
	var entries []uint64
	for i := 1; i <= e.x.Procs(); i++ {
		p := e.x.Proc(dwarfindex.ProcID(i))
		if !p.Live || p.TickParent != dwarfindex.NoBlock || p.Pos.Line != 0 || !e.orphan(p.Linkage) {
			continue
		}
		orphans = append(orphans, p.ID)
		entries = append(entries, entryOf(e.x.Start(p.ID)))
	}
	if only && !e.within(orphans, addresses) {
		return nil
	}
	found, err := coderefs.Find(ctx, code, entries)
	if err != nil {
		return err
	}
	refs := make([]dwarfindex.Reference, 0, len(found.Code))
	for _, r := range found.Code {
		if ref := (dwarfindex.Reference{From: r.From, To: orphans[r.Target]}); !found.Escapes[r.Target] && e.refers(&ref) {
			refs = append(refs, ref)
		}
	}
	e.x.Adopt(orphans, refs)
	return nil
}

// within reports whether an address lies in one of the procedures, or in what they enclose.
func (e *Evidence) within(procs []dwarfindex.ProcID, addresses []uint64) bool {
	var enclosing []dwarfindex.ProcID
	for _, a := range addresses {
		id := e.x.Lookup(a)
		if id == dwarfindex.NoBlock {
			continue
		}
		enclosing = e.x.Enclosing(append(enclosing[:0], e.x.Block(id).Proc), id)
		for _, p := range enclosing {
			if _, is := slices.BinarySearch(procs, p); is {
				return true
			}
		}
	}
	return false
}

// refers reports whether a reference shows where a procedure came from: it lies
// in a block of the procedure's own module, or right before one, where a static
// reference table's offset is. What other modules refer to they have inlined.
func (e *Evidence) refers(r *dwarfindex.Reference) bool {
	id := e.x.Lookup(r.From)
	if id == dwarfindex.NoBlock {
		const offset = 4
		r.From += offset
		if id = e.x.Lookup(r.From); id == dwarfindex.NoBlock {
			return false
		}
		if lo := e.x.Block(id).Lo; lo != r.From && lo+1 != r.From {
			return false
		}
	}
	return e.x.Proc(e.x.Block(id).Proc).Unit == e.x.Proc(r.To).Unit
}

// orphan reports whether a procedure without notes may be part of what refers
// to it: code that GHC made out of other code. A binding in its own right that
// has no notes (derived instances, constructors, wrappers) is not.
func (e *Evidence) orphan(linkage string) bool {
	n, ok := hsname.Parse(linkage)
	if !ok || n.Internal {
		return true
	}
	if n.Kind == hsname.KindConInfo || e.symbols.Defines(hsname.Linkage(n.Unit, n.Module, "$w"+n.Name)+"_info") {
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
