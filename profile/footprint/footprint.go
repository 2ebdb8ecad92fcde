// Package footprint says where the memory of a process is, what is not accounted for, and what to do
// about it.
package footprint

import (
	"cmp"
	"fmt"
	"slices"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile/columns"
)

// Row is memory for one purpose, in bytes.
type Row struct {
	Kind       eventlog.FootprintKind
	Generation uint32
	Title      string
	Name       string // a closure type; of files none
	Bytes      uint64 // in memory
	Mapped     uint64 // with those that are not in memory
	Count      uint64
}

// Account is a footprint, added up.
type Account struct {
	Rows      []Row // the largest first
	Files     []Row // which are one of the rows
	Accounted uint64
	// Difference is what is not accounted for: the kernel's figure less the sum. It is negative where
	// parts have more.
	Difference int64
	Advice     Advice

	keepers string // where to look for what keeps closures alive
	garbage bool   // it was counted too
}

// Advice is what to do, in a sentence, with the evidence.
type Advice struct {
	Kind  eventlog.FootprintKind // of the part that it is about
	Bytes uint64
	Flags []string // of the run-time system, which would change it
	Text  string
}

// Of adds a footprint up. g is the census with pointers of the same log; nil if it has none.
func Of(f *columns.Footprint, g *columns.HeapGraph) *Account {
	a := &Account{}
	a.pointers(g)
	var files Row
	for _, p := range f.Parts {
		r := Row{p.Kind, p.Generation, title(p.Kind, p.Generation, p.Name), p.Name, p.Bytes, p.Mapped, p.Count}
		a.Accounted += p.Bytes
		if p.Kind != eventlog.FootprintFiles {
			a.Rows = append(a.Rows, r)
			continue
		}
		r.Title = p.Name
		a.Files = append(a.Files, r)
		files.Bytes, files.Mapped, files.Count = files.Bytes+p.Bytes, files.Mapped+p.Mapped, files.Count+p.Count
	}
	if len(a.Files) > 0 {
		files.Kind, files.Title = eventlog.FootprintFiles, title(eventlog.FootprintFiles, 0, "")
		a.Rows = append(a.Rows, files)
	}
	slices.SortStableFunc(a.Rows, func(x, y Row) int { return cmp.Compare(y.Bytes, x.Bytes) })
	a.Difference = int64(f.Resident - a.Accounted)
	a.Advice = a.advise(f)
	return a
}

// pointers takes note of what is known of pointers.
func (a *Account) pointers(g *columns.HeapGraph) {
	a.keepers = "in a census with pointers (ccagent heap --graph PID, then ccview heap FILE --retained)"
	if g != nil {
		a.keepers = "in this log (ccview heap FILE --retained; in the viewer M: retained)"
		a.garbage = g.AtRest
	}
}

// title names a part.
func title(k eventlog.FootprintKind, generation uint32, name string) string {
	switch k {
	case eventlog.FootprintLive:
		return fmt.Sprintf("small objects, generation %d", generation)
	case eventlog.FootprintLarge:
		return "large objects: " + orUnknown(typeName(name))
	case eventlog.FootprintStacks:
		return "stacks of threads, in chunks of 32 KB"
	case eventlog.FootprintPinned:
		return "blocks of pinned byte arrays"
	case eventlog.FootprintCompact:
		return "compact regions"
	case eventlog.FootprintNonmoving:
		return "segments of the non-moving collector"
	case eventlog.FootprintNursery:
		return "nursery"
	case eventlog.FootprintBlockEnds:
		return "unused ends of blocks"
	case eventlog.FootprintFreeBlocks:
		return "free blocks in megablocks that are in use"
	case eventlog.FootprintFree:
		return "free megablocks"
	case eventlog.FootprintGivenBack:
		return "given back, not yet taken by the kernel"
	case eventlog.FootprintRTS:
		return "the run-time system's own blocks"
	case eventlog.FootprintHeapOther:
		return "heap that no descriptor describes"
	case eventlog.FootprintMalloc:
		return "C's malloc ([heap])"
	case eventlog.FootprintAnonymous:
		return "anonymous memory (C's malloc, mmap)"
	case eventlog.FootprintOSStacks:
		return "stacks of OS threads"
	case eventlog.FootprintFiles:
		return "mapped files"
	case eventlog.FootprintKernel:
		return "mapped by the kernel"
	}
	return "(unknown)"
}

// typeName gives closure types in words.
func typeName(name string) string {
	switch name {
	case "ARR_WORDS":
		return "byte arrays (ARR_WORDS)"
	case "MUT_ARR_PTRS_CLEAN", "MUT_ARR_PTRS_DIRTY", "MUT_ARR_PTRS_FROZEN_CLEAN", "MUT_ARR_PTRS_FROZEN_DIRTY":
		return "arrays (" + name + ")"
	}
	return name
}

func orUnknown(s string) string {
	if s == "" {
		return "(not read)"
	}
	return s
}

// Pin names what holds megablocks.
func Pin(p *eventlog.FootprintPin) string {
	switch {
	case p.Kind == eventlog.FootprintLive:
		return "small objects, which the next major collection moves"
	case p.Kind == eventlog.FootprintLarge && p.Name == "":
		return "large objects"
	}
	return title(p.Kind, 0, p.Name)
}

// worthPart is the part of the memory that could be given back from which on advice is about that.
const worthPart = 4

// advise says what to do about the largest part: of those that could be given back, if it is worth it.
func (a *Account) advise(f *columns.Footprint) Advice {
	sums := map[eventlog.FootprintKind]uint64{}
	for i := range a.Rows {
		sums[a.Rows[i].Kind] += a.Rows[i].Bytes
	}
	sums[eventlog.FootprintAnonymous] += sums[eventlog.FootprintMalloc]
	delete(sums, eventlog.FootprintMalloc)
	most := func(kinds ...eventlog.FootprintKind) (best eventlog.FootprintKind) {
		best = kinds[0]
		for _, k := range kinds[1:] {
			if sums[k] > sums[best] {
				best = k
			}
		}
		return best
	}
	kind := most(eventlog.FootprintFreeBlocks, eventlog.FootprintFree, eventlog.FootprintGivenBack)
	if p := f.Pins; kind == eventlog.FootprintFreeBlocks && len(p) > 0 && !p[0].Moved && p[0].Held > p[0].Free/2 {
		// What holds the blocks is as large as they are: it is about that.
		if k := p[0].Kind; k != eventlog.FootprintRTS && sums[k] >= f.Resident/worthPart {
			return a.about(k, sums, f)
		}
	}
	if sums[kind] < f.Resident/worthPart {
		kind = most(eventlog.FootprintLive, eventlog.FootprintLarge, eventlog.FootprintStacks, eventlog.FootprintPinned, eventlog.FootprintCompact, eventlog.FootprintNonmoving,
			eventlog.FootprintNursery, eventlog.FootprintAnonymous, eventlog.FootprintFiles, eventlog.FootprintHeapOther)
	}
	return a.about(kind, sums, f)
}

// about says what to do about the parts of a kind, whose sums are given by kind.
func (a *Account) about(kind eventlog.FootprintKind, sums map[eventlog.FootprintKind]uint64, f *columns.Footprint) Advice {
	ad := Advice{Kind: kind, Bytes: sums[kind]}
	head := fmt.Sprintf("%s of %s (%s) are ", format.Bytes(ad.Bytes), format.Bytes(f.Resident), format.Percent(float64(ad.Bytes)/float64(max(1, f.Resident))))
	live := sums[eventlog.FootprintLive] + sums[eventlog.FootprintLarge] + sums[eventlog.FootprintStacks]
	switch kind {
	case eventlog.FootprintGivenBack:
		ad.Flags = []string{"--disable-delayed-os-memory-return"}
		ad.Text = head + "given back to the kernel, which takes them when memory is short: no leak; +RTS --disable-delayed-os-memory-return has the figure fall at once."
	case eventlog.FootprintFree:
		if small := sums[eventlog.FootprintLive]; small < ad.Bytes/4 {
			ad.Flags = []string{"-Fd"}
			ad.Text = head + fmt.Sprintf("free megablocks, far more than a copy of the %s in small objects that are live will take: the run-time system gives them back after major collections (from GHC 9.2 on a part at each; a smaller +RTS -Fd has it do so sooner).", format.Bytes(small))
			break
		}
		ad.Flags = []string{"-F", "-c", "--nonmoving-gc"}
		ad.Text = head + fmt.Sprintf("free megablocks that are kept for the next major collection, which copies %s of live data to new ones: a smaller +RTS -F keeps fewer, -c (compaction) or --nonmoving-gc do without the copy.", format.Bytes(sums[eventlog.FootprintLive]))
	case eventlog.FootprintFreeBlocks:
		ad.Text = head + fmt.Sprintf("free blocks of %s that cannot be given back", format.Plural(f.Partly, "megablock"))
		if len(f.Pins) > 0 {
			p := &f.Pins[0]
			ad.Text += fmt.Sprintf(": in %s of them %s of %s hold %s free; ", format.Count(p.Megablocks), format.Bytes(p.Held), Pin(p), format.Bytes(p.Free))
			ad.Text += a.unpin(p, &ad)
		} else {
			ad.Text += "."
		}
	case eventlog.FootprintLive:
		what := "live data in small objects"
		if a.garbage {
			what = "small objects, garbage included"
		}
		ad.Text = head + what + ": what keeps them alive is " + a.keepers + "."
	case eventlog.FootprintLarge:
		ad.Text = head + fmt.Sprintf("large objects, most of them %s: what keeps them alive is %s.", a.largest(eventlog.FootprintLarge), a.keepers)
	case eventlog.FootprintStacks:
		ad.Flags = []string{"-K"}
		ad.Text = head + "stacks of Haskell threads"
		if len(f.Stacks) > 0 {
			ad.Text += fmt.Sprintf(", %s that of thread %d", format.Bytes(f.Stacks[0].Bytes), f.Stacks[0].TSO)
		}
		ad.Text += ": recursion that is not in tail position, or a chain of thunks that is being evaluated (ccagent threads PID shows where); +RTS -K bounds it."
	case eventlog.FootprintPinned:
		ad.Text = head + "blocks of pinned byte arrays, each held whole by any one array in it that is alive: keep copies that are not pinned (Data.ByteString.Short, Data.Text) of what lives long."
	case eventlog.FootprintCompact:
		ad.Text = head + "compact regions, each alive as long as anything refers to any part of it."
	case eventlog.FootprintNonmoving:
		ad.Flags = []string{"--nonmoving-gc"}
		ad.Text = head + "segments of the non-moving collector, which does not compact what is alive in them: without +RTS --nonmoving-gc it would be copied together."
	case eventlog.FootprintNursery:
		ad.Flags = []string{"-A"}
		ad.Text = head + fmt.Sprintf("the nursery: a smaller +RTS -A takes less, and collects more often; %s are live.", format.Bytes(live))
	case eventlog.FootprintAnonymous:
		ad.Text = head + fmt.Sprintf("memory of C code (malloc, mmap), not of Haskell's heap, of which %s are live: look for it with a tool for malloc (heaptrack, MALLOC_ARENA_MAX=2).", format.Bytes(live))
	case eventlog.FootprintFiles:
		ad.Text = head + fmt.Sprintf("mapped files, the program and its libraries, most of which the kernel can drop and read again; %s are live data.", format.Bytes(live))
	default:
		ad.Text = head + "in the heap where no descriptor says for what."
	}
	return ad
}

// unpin says what to do about what holds megablocks.
func (a *Account) unpin(p *eventlog.FootprintPin, ad *Advice) string {
	switch {
	case p.Moved:
		ad.Flags = []string{"-F", "-c"}
		return "a collection that compacts (+RTS -c) moves them together."
	case p.Kind == eventlog.FootprintPinned, p.Kind == eventlog.FootprintLarge && p.Name == "ARR_WORDS":
		return "they are not moved: keep copies that are not pinned (Data.ByteString.Short, Data.Text) of what lives long, or make it first and all at once."
	case p.Kind == eventlog.FootprintNursery:
		ad.Flags = []string{"-A", "-n"}
		return "the nursery is not moved: give it fewer, larger pieces (+RTS -A)."
	case p.Kind == eventlog.FootprintStacks:
		ad.Flags = []string{"-kc"}
		return "chunks of stacks are not moved: fewer deep stacks, or smaller chunks (+RTS -kc)."
	}
	return "they are not moved: make what lives long first, and all at once."
}

// largest is the title of the largest row of a kind.
func (a *Account) largest(k eventlog.FootprintKind) string {
	for i := range a.Rows {
		if a.Rows[i].Kind == k {
			return orUnknown(typeName(a.Rows[i].Name))
		}
	}
	return ""
}
