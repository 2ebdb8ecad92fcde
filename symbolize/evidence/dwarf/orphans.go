package dwarf

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"ccagent/symbolize/coderefs"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/hsname"
)

// adopt finds where procedures without source notes came from, by the code that refers
// to them.
// If nothing is asked of but addresses, and no orphan is around one of them, nothing is looked for:
// it takes reading all code.
func (e *Evidence) adopt(ctx context.Context, code *elffile.File, opt *Options) error {
	if opt.Only && !e.inOrphan(opt.Addresses) {
		return nil
	}
	var orphans []dwarfindex.ProcID
	var entries []uint64
	for i := 1; i <= e.x.Procs(); i++ {
		if id := dwarfindex.ProcID(i); e.orphan(id) {
			orphans = append(orphans, id)
			entries = append(entries, entryOf(e.x.Start(id)))
		}
	}
	if opt.Cache != nil {
		parts := LoadParts(opt.Cache, opt.Module, referencesName, opt.Memory/8)
		if refs, ok := e.recallReferences(parts[partReferences], orphans); parts != nil && ok {
			e.x.Adopt(orphans, refs)
			return nil
		}
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
	if opt.Cache != nil && len(entries) > 0 {
		if err := StoreParts(opt.Cache, opt.Module, referencesName, map[string][]byte{partReferences: encodeReferences(refs)}); err != nil {
			opt.Warn("%v", err)
		}
	}
	e.x.Adopt(orphans, refs)
	return nil
}

// References are kept between runs, since all code is read for them: the address, 64 bits, and the
// procedure's number in the index, 32 bits, little-endian.
const (
	referencesName = "ccagent references between procedures 1, " + dwarfindex.Format
	partReferences = "references"
	referenceSize  = 12
)

func encodeReferences(refs []dwarfindex.Reference) []byte {
	b := make([]byte, 0, referenceSize*len(refs))
	for _, r := range refs {
		b = binary.LittleEndian.AppendUint64(b, r.From)
		b = binary.LittleEndian.AppendUint32(b, uint32(r.To))
	}
	return b
}

// recallReferences reads what encodeReferences gave. Each has to be one that would be found: to an
// orphan, from code that shows where that came from.
func (e *Evidence) recallReferences(b []byte, orphans []dwarfindex.ProcID) ([]dwarfindex.Reference, bool) {
	if len(b)%referenceSize != 0 {
		return nil, false
	}
	refs := make([]dwarfindex.Reference, 0, len(b)/referenceSize)
	for ; len(b) > 0; b = b[referenceSize:] {
		r := dwarfindex.Reference{From: binary.LittleEndian.Uint64(b), To: dwarfindex.ProcID(binary.LittleEndian.Uint32(b[8:]))}
		if _, is := slices.BinarySearch(orphans, r.To); !is || !e.refers(&r) {
			return nil, false
		}
		refs = append(refs, r)
	}
	return refs, true
}

// inOrphan reports whether one of the addresses lies in an orphan, or in what orphans enclose.
func (e *Evidence) inOrphan(addresses []uint64) bool {
	var enclosing []dwarfindex.ProcID
	seen := map[dwarfindex.ProcID]bool{}
	for _, a := range addresses {
		id := e.x.Lookup(a)
		if id == dwarfindex.NoBlock {
			continue
		}
		enclosing = e.x.Enclosing(append(enclosing[:0], e.x.Block(id).Proc), id)
		for _, p := range enclosing {
			if !seen[p] && e.orphan(p) {
				return true
			}
			seen[p] = true
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

// orphan reports whether a procedure has no notes and may be part of what refers
// to it: code that GHC made out of other code. A binding in its own right that
// has no notes (derived instances, constructors, wrappers) is not.
func (e *Evidence) orphan(id dwarfindex.ProcID) bool {
	p := e.x.Proc(id)
	if !p.Live || p.TickParent != dwarfindex.NoBlock || p.Pos.Line != 0 {
		return false
	}
	n, ok := hsname.Parse(p.Linkage)
	if !ok || n.Internal {
		return true
	}
	if n.Kind == hsname.KindConInfo {
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
	if o.Words == "" && strings.TrimRight(n.Name, "0123456789") == n.Name {
		return false
	}
	return !e.symbols.Defines(hsname.Linkage(n.Unit, n.Module, "$w"+n.Name) + "_info") // last: it may take reading all names
}
