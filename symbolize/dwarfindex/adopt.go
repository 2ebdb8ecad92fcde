package dwarfindex

import "slices"

// Reference says that code at an address refers to a procedure.
type Reference struct {
	From uint64
	To   ProcID
}

// maxRounds bounds how far knowledge travels between orphans that refer to
// each other. If it has not settled by then none gets a place.
const maxRounds = 64

// Adopt gives procedures without context a tick parent: the innermost block
// that statically encloses all code that refers to them. Orphans that refer to
// each other find their place together. It must be called before the index is
// shared, and returns how many found a place.
func (x *Index) Adopt(orphans []ProcID, refs []Reference) int {
	orphans = slices.Clone(orphans)
	a := adoption{x: x, place: make(map[ProcID]BlockID, len(orphans)), from: make(map[ProcID][]BlockID, len(orphans))}
	for _, p := range orphans {
		if x.procs[p].tickParent == NoBlock {
			a.place[p] = anyBlock
		}
	}
	for _, r := range refs {
		if _, ok := a.place[r.To]; !ok {
			continue
		}
		a.from[r.To] = append(a.from[r.To], x.Lookup(r.From))
	}
	if !a.settle(orphans) {
		return 0
	}
	// An orphan without references has no place; the places of orphans that it refers to
	// do not follow from their other references alone.
	for p, b := range a.place {
		if b == anyBlock {
			a.place[p] = NoBlock
		}
	}
	if !a.settle(orphans) {
		return 0
	}
	n := 0
	for _, p := range orphans {
		if b, ok := a.place[p]; ok && b != NoBlock {
			x.procs[p].tickParent, x.procs[p].adopted = b, true
			n++
		}
	}
	return n
}

// anyBlock is the place of an orphan before any reference to it was seen.
const anyBlock = ^NoBlock

type adoption struct {
	x     *Index
	place map[ProcID]BlockID // of orphans
	from  map[ProcID][]BlockID
}

// settle works out places until they agree.
func (a *adoption) settle(orphans []ProcID) bool {
	for range maxRounds {
		settled := true
		slices.Reverse(orphans) // what is local mostly stands next to what uses it
		for _, p := range orphans {
			old, ok := a.place[p]
			if !ok || old == NoBlock {
				continue
			}
			if place := a.meet(p); place != old {
				a.place[p], settled = place, false
			}
		}
		if settled {
			return true
		}
	}
	return false
}

// meet is the innermost block around all that refers to p, as far as is known:
// anyBlock if nothing is, NoBlock if there is no such block.
func (a *adoption) meet(p ProcID) BlockID {
	place := anyBlock
	for _, b := range a.from[p] {
		own, unknown := false, false
		a.outwards(b, func(id BlockID) bool {
			own = own || a.x.blocks[id].proc == p
			return !own
		}, &unknown)
		switch {
		case own || unknown: // recursion, or not settled yet
			continue
		case place == anyBlock:
			place = b
		default:
			place = a.common(place, b)
		}
		if place == NoBlock {
			break
		}
	}
	return place
}

// common is the innermost block that statically encloses both, or NoBlock.
func (a *adoption) common(b, c BlockID) BlockID {
	if b == c {
		return b
	}
	around := map[BlockID]bool{}
	a.outwards(b, func(id BlockID) bool { around[id] = true; return true }, nil)
	found := NoBlock
	a.outwards(c, func(id BlockID) bool {
		if around[id] {
			found = id
		}
		return found == NoBlock
	}, nil)
	return found
}

// outwards is Index.outwards through the places that orphans have so far. It sets unknown if
// it ends at an orphan without a place.
func (a *adoption) outwards(id BlockID, visit func(BlockID) bool, unknown *bool) {
	for hops := 0; id != NoBlock && hops < maxHops; hops++ {
		if !visit(id) {
			return
		}
		b := &a.x.blocks[id]
		if b.parent != NoBlock {
			id = b.parent
			continue
		}
		next := a.x.procs[b.proc].tickParent
		if next == NoBlock {
			next = a.place[b.proc]
		}
		if next == anyBlock {
			if unknown != nil {
				*unknown = true
			}
			return
		}
		id = next
	}
}
