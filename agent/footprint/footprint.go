package footprint

import (
	"cmp"
	"fmt"
	"slices"

	"ccagent/agent/census"
	"ccagent/agent/procfs"
	"ccagent/eventlog"
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// Footprint is where the memory of a process is. Its lists have the largest first; pins are in the order
// of what is free beside them.
type Footprint struct {
	eventlog.Footprint
	Parts  []eventlog.FootprintPart
	Pins   []eventlog.FootprintPin
	Stacks []eventlog.FootprintStack
}

// Bounds of what is kept.
const (
	maxFiles  = 64
	maxStacks = 32
)

// Of divides what a census has found to be in memory.
func Of(c *census.Census) *Footprint {
	b := builder{d: c.Descriptors, r: c.Residence, types: c.Tally.Large, parts: map[key]*eventlog.FootprintPart{}, partly: map[uint64]*megablock{}}
	b.nursery = b.d.Nursery(b.r.Nurseries)
	b.heap()
	b.mappings()
	f := &Footprint{Parts: b.sorted(), Pins: b.pins()}
	f.Resident, f.Swapped, f.Beside = b.resident, b.swapped, b.r.Beside
	f.Megablocks = b.d.Megablocks
	for i := range f.Pins {
		f.Partly += f.Pins[i].Megablocks
	}
	var large, threads uint64 // of stacks
	for at, t := range b.types {
		if g := b.d.Group(at); t == ghc.Stack && g != nil {
			large += g.Used()
		}
	}
	for _, n := range c.Tally.Counts() {
		f.Slop += 8 * n.Slop
		if n.Info.Type == ghc.Stack {
			f.StackBytes += 8 * n.Words
		}
		if n.Info.Type == ghc.TSO {
			threads += n.Number
		}
	}
	f.StackBytes -= min(large, f.StackBytes)
	if d := c.Draw; d != nil {
		f.Threads = threads
		f.Notes = append(f.Notes, fmt.Sprintf("closures of %d of %d megablocks were counted, at random: the number of threads (%d), and what stacks and closures that have shrunk take of small objects, are estimated by them, and which stacks are the largest is not known",
			d.Drawn, d.Megablocks, threads))
		return f
	}
	f.stacks(c.Tally.Threads)
	return f
}

// stacks keeps the largest stacks.
func (f *Footprint) stacks(all []heap.ThreadStack) {
	f.Threads = uint64(len(all))
	all = slices.Clone(all)
	slices.SortFunc(all, func(x, y heap.ThreadStack) int {
		return cmp.Or(cmp.Compare(y.Words, x.Words), cmp.Compare(x.ID, y.ID))
	})
	for _, t := range all[:min(len(all), maxStacks)] {
		f.Stacks = append(f.Stacks, eventlog.FootprintStack{TSO: t.ID, Bytes: 8 * t.Words})
	}
}

// key is what distinguishes parts.
type key struct {
	kind       eventlog.FootprintKind
	generation uint32
	name       string
}

// builder adds up parts.
type builder struct {
	d       *census.Descriptors
	r       *census.Residence
	types   map[uint64]ghc.ClosureType // of large objects, by start
	nursery map[uint64]bool            // starts of groups
	parts   map[key]*eventlog.FootprintPart
	partly  map[uint64]*megablock // that have free blocks and others, by address

	resident, swapped uint64
}

// part adds to a part.
func (b *builder) part(k key, bytes, mapped, count uint64) {
	p := b.parts[k]
	if p == nil {
		p = &eventlog.FootprintPart{Kind: k.kind, Generation: k.generation, Name: k.name}
		b.parts[k] = p
	}
	p.Bytes += bytes
	p.Mapped += mapped
	p.Count += count
}

// inMemory is how many bytes of the heap from one address up to another are in memory.
func (b *builder) inMemory(from, to uint64) (n uint64) {
	all := b.r.Pages
	i, _ := slices.BinarySearchFunc(all, from, func(p *procfs.Pages, at uint64) int {
		if p.End <= at {
			return -1
		}
		return 1
	})
	for ; i < len(all) && all[i].Start < to; i++ {
		n += all[i].Resident(from, to)
	}
	return n
}

// sorted lists the parts.
func (b *builder) sorted() (all []eventlog.FootprintPart) {
	for _, p := range b.parts {
		if p.Bytes > 0 {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(x, y eventlog.FootprintPart) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Generation, y.Generation), cmp.Compare(x.Name, y.Name))
	})
	files := 0
	var rest eventlog.FootprintPart
	all = slices.DeleteFunc(all, func(p eventlog.FootprintPart) bool {
		if p.Kind != eventlog.FootprintFiles {
			return false
		}
		if files++; files <= maxFiles {
			return false
		}
		rest.Bytes, rest.Mapped, rest.Count = rest.Bytes+p.Bytes, rest.Mapped+p.Mapped, rest.Count+p.Count
		return true
	})
	if rest.Bytes > 0 {
		rest.Kind, rest.Name = eventlog.FootprintFiles, "(other files)"
		all = append(all, rest)
	}
	return all
}
