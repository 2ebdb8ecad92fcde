package census

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"ccagent/agent/closures"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/rtsites"
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// Reader reads the heap of one process.
type Reader struct {
	PID      int
	Memory   *process.Memory
	Layout   heap.Layout
	Tables   *closures.Tables
	Profiled bool
	// Stops are those of the program for censuses so far, also for those that were given up.
	Stops Stops

	copied    float64 // bytes a second, as the last copy was made while the program stood; 0 if none was
	most      uint64  // bytes of small objects that the heap had at the most when the program was stopped
	threaded  bool
	nonmoving bool // closures of the non-moving collector are counted
	layout    ghc.Layout
	run       runCode
	segments  []Segment
	made      madeCode
	vars      rtsites.Heap  // run-time addresses
	found     *Found        // in place of vars, if it is not nil
	pinned    uint64        // where a capability has its current block of pinned byte arrays
	looked    func(tid int) // is called between the look at a thread's state and its stop; tests set it
}

// Stops counts how often, and for how long, a program was stopped.
type Stops struct {
	Number       int
	Over         int // for longer than was allowed
	Longest, Sum time.Duration
}

// add adds a stop; one of 0 was none. limit is how long it was allowed to be; 0 is no bound.
func (s *Stops) add(pause, limit time.Duration) {
	if pause > 0 {
		s.Number++
		if limit > 0 && pause > limit {
			s.Over++
		}
		s.Longest, s.Sum = max(s.Longest, pause), s.Sum+pause
	}
}

// Generation is what the run-time system says of a generation.
type Generation struct {
	Address     uint64 // of its descriptor
	Number      uint32
	Words       uint64 // in its blocks
	LargeWords  uint64
	Compact     uint64 // blocks of compact regions
	Collections uint32 // of it so far
	// Lists are the addresses of the first descriptors of its blocks, large objects and compact regions. What comes to it without a collection
	// of it is put before what it has.
	Lists [3]uint64
}

// Descriptors is what the descriptors of a heap's blocks and generations said at one moment.
type Descriptors struct {
	Generations []Generation    // the youngest first
	Groups      []heap.Group    // in use, by address
	Free        []heap.Group    // on the allocator's lists, by address; Free has no meaning in them
	Space       [2]uint64       // begin and end of the heap's addresses
	Regions     []procfs.Region // the parts of these that are mapped
	// Returned are the parts that the run-time system has given back to the kernel, by address: what
	// descriptors are there means nothing. It is nil if that is not known.
	Returned    []Range
	Megablocks  uint64 // mapped
	Unallocated uint64 // blocks on the allocator's lists
	Odd         uint64 // blocks whose descriptors contradict themselves
	// Nonmoving is set if the non-moving collector has blocks.
	Nonmoving bool
	// Filling are the starts of the blocks that capabilities fill with pinned byte arrays. They
	// belong to no generation yet.
	Filling  []uint64
	segments heap.Segments // how its segments are divided
	// Collecting is set if a collection was under way when they were read: what it copies from is in Groups without the flag that it
	// was evacuated.
	Collecting bool
}

// Range is addresses from Start up to End.
type Range struct{ Start, End uint64 }

// Oldest is the oldest generation.
func (d *Descriptors) Oldest() *Generation { return &d.Generations[len(d.Generations)-1] }

// Group finds the group in use that starts at an address; nil if there is none.
func (d *Descriptors) Group(start uint64) *heap.Group {
	i, ok := slices.BinarySearchFunc(d.Groups, start, func(g heap.Group, at uint64) int { return cmp.Compare(g.Start, at) })
	if !ok {
		return nil
	}
	return &d.Groups[i]
}

// generation returns that of an address, nil if there is none.
func (d *Descriptors) generation(at uint64) *Generation {
	for i := range d.Generations {
		if d.Generations[i].Address == at {
			return &d.Generations[i]
		}
	}
	return nil
}

// Bounds on what a process may claim to have.
const (
	maxGenerations = 64
	maxMegablocks  = 1 << 18 // 256 GB
	maxGroups      = 1 << 25
)

// usualSpace is where a run-time system has its heap without the option -xr (rts/posix/OSMem.c), and
// usualSpaceSize how many bytes it reserves there.
const (
	usualSpace     = 0x4200000000
	usualSpaceSize = 1 << 40
)

// ErrNoHeap is returned where a run-time system has no heap yet, or says that it is where it is not.
var ErrNoHeap = errors.New("the program's heap was not found where its run-time system says it is")

// ErrNonmoving is returned where the oldest generation is the non-moving collector's, unless CountSegments was called.
var ErrNonmoving = errors.New("its non-moving collector (+RTS --nonmoving-gc) finds beside the program what has died, so that no collection ends with what is alive alone; ccagent heap counts it as it is")

// NonmovingGarbage says how such a heap is counted.
const NonmovingGarbage = "the non-moving collector (+RTS --nonmoving-gc) finds beside the program what has died: the heap is counted as it is, with garbage"

// Found is what was found of a heap without symbols, as run-time addresses.
type Found struct {
	Generations  uint64   // the first generation's descriptor
	Capabilities []uint64 // BaseReg of each
}

// NewReaderOf makes a reader of a process image whose heap was found without symbols. Where its stable
// pointers are is not known.
func NewReaderOf(im *process.Image, found *Found) *Reader {
	r := NewReader(im, &rtsites.Heap{})
	r.found = found
	return r
}

// NewReader makes a reader of a process image, whose run-time system has its variables at vars, as
// module addresses. The image's mappings are those of now.
func NewReader(im *process.Image, vars *rtsites.Heap) *Reader {
	b := &im.RTS.Binary
	r := &Reader{PID: int(im.PID), Memory: im.Memory, Profiled: b.Profiled(), threaded: b.Threaded(), vars: *vars, segments: segmentsOf(im)}
	r.Layout, _ = heap.LayoutOf(b.GHCVersion, b.Profiled(), b.Threaded())
	frozen := process.NewImage(im.PID, im.Incarnation)
	frozen.Mappings = slices.Clone(im.Mappings)
	r.Tables = closures.NewTables(r.Profiled, frozen.MappingOf)
	r.made = madeCode{pid: r.PID, memory: r.Memory}
	r.Tables.Made = &r.made
	r.layout, _ = ghc.LayoutOf(b.GHCVersion, b.Profiled(), b.Threaded())
	r.run = newRunCode(im)
	r.pinned = ghc.BaseOfCapability + uint64(r.layout.PinnedBlocks) - 8
	bias := im.BiasOf(im.RTS)
	for _, at := range []*uint64{&r.vars.Generations, &r.vars.OldestGeneration, &r.vars.Space, &r.vars.Collect, &r.vars.CollectEnd, &r.vars.Array, &r.vars.Count, &r.vars.Main, &r.vars.Stable, &r.vars.StableSize, &r.vars.Nurseries, &r.vars.NurseryCount, &r.vars.NextNursery, &r.vars.FreeSpace, &r.vars.DenseCells} {
		if *at != 0 {
			*at += bias
		}
	}
	return r
}

// generations reads the descriptors of generations.
func (r *Reader) generations() ([]Generation, error) {
	first, last, err := r.ends()
	if err != nil {
		return nil, err
	}
	if first == 0 || last == 0 {
		return nil, ErrNoHeap // it is only starting
	}
	size, n := uint64(ghc.GenerationCollections+8), uint64(1)
	if first != last {
		// The size of a descriptor differs between ways. The first generation is promoted to the
		// second.
		second, err := r.Memory.Word(first + ghc.GenerationTo)
		if err != nil {
			return nil, err
		}
		size = second - first
		if size < ghc.GenerationCollections+8 || size > 1<<12 || last < first || (last-first)%size != 0 || (last-first)/size >= maxGenerations {
			return nil, ErrNoHeap
		}
		n = (last-first)/size + 1
	}
	all := make([]Generation, 0, n)
	for at := first; uint64(len(all)) < n; at += size {
		var b [ghc.GenerationCollections + 8]byte
		if _, err := r.Memory.ReadAt(b[:], int64(at)); err != nil {
			return nil, err
		}
		word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
		g := Generation{
			Address: at, Number: uint32(word(ghc.GenerationNo)), Words: word(ghc.GenerationWords), LargeWords: word(ghc.GenerationLargeWords),
			Compact: word(ghc.GenerationCompact), Collections: uint32(word(ghc.GenerationCollections)),
			Lists: [...]uint64{word(ghc.GenerationBlocks), word(ghc.GenerationLargeObjects), word(ghc.GenerationRegions)},
		}
		if uint64(g.Number) != uint64(len(all)) {
			return nil, ErrNoHeap
		}
		all = append(all, g)
	}
	return all, nil
}

// ends gives the addresses of the first and the last generation's descriptors.
func (r *Reader) ends() (first, last uint64, err error) {
	if r.found == nil {
		if first, err = r.Memory.Word(r.vars.Generations); err != nil {
			return 0, 0, err
		}
		last, err = r.Memory.Word(r.vars.OldestGeneration)
		return first, last, err
	}
	// Each is promoted to the next, and the last to itself.
	first = r.found.Generations
	last = first
	for range maxGenerations {
		to, err := r.Memory.Word(last + ghc.GenerationTo)
		if err != nil || to == last {
			return first, last, err
		}
		last = to
	}
	return 0, 0, ErrNoHeap
}

// OldestGeneration is the number of the oldest generation.
func (r *Reader) OldestGeneration() (uint32, error) {
	all, err := r.generations()
	if err != nil {
		return 0, err
	}
	return all[len(all)-1].Number, nil
}

// space is the range of addresses in which the heap lies.
func (r *Reader) space() (begin, end uint64, err error) {
	if r.vars.Space == 0 {
		return usualSpace, usualSpace + usualSpaceSize, nil
	}
	var s [2]uint64
	if err := r.Memory.Words(r.vars.Space, s[:]); err != nil {
		return 0, 0, err
	}
	if s[0] == 0 || s[1] <= s[0] || s[0]%ghc.MegablockBytes != 0 {
		return 0, 0, ErrNoHeap
	}
	return s[0], s[1], nil
}

// Descriptors reads the descriptors of generations and blocks. The program should not run meanwhile.
func (r *Reader) Descriptors() (*Descriptors, error) {
	d, err := r.anyDescriptors()
	if err == nil && d.Nonmoving && !r.nonmoving {
		return nil, ErrNonmoving
	}
	return d, err
}

// anyDescriptors is like Descriptors, also of a heap of which no closures are to be counted.
func (r *Reader) anyDescriptors() (*Descriptors, error) {
	d, err := r.extent()
	if err != nil {
		return nil, err
	}
	buf := make([]byte, heap.DescriptorBytes)
	for _, s := range d.stretches() {
		for at := s.Start; at < s.End; {
			if d.Megablocks >= maxMegablocks || len(d.Groups) > maxGroups {
				return nil, r.tooLarge()
			}
			if _, err := r.Memory.ReadAt(buf, int64(at)); err != nil {
				return nil, fmt.Errorf("read the descriptors of the heap's blocks: %w", err)
			}
			n := d.describe(at, buf, (s.End-at)/ghc.MegablockBytes, func(g heap.Group) { d.Groups = append(d.Groups, g) })
			d.Megablocks += n
			at += n * ghc.MegablockBytes
		}
	}
	if d.Megablocks == 0 {
		return nil, ErrNoHeap
	}
	if d.Filling, err = r.filling(); err != nil {
		return nil, fmt.Errorf("read the run-time system's capabilities: %w", err)
	}
	return d, nil
}

// CountSegments has the closures of the non-moving collector counted, too: what has died since its last collection with what is alive.
func (r *Reader) CountSegments() { r.nonmoving = true }

// usualDense is how many cell sizes are one word apart without the option --nonmoving-dense-allocator-count.
const usualDense = 16

// segmentSizes is how segments of the non-moving collector are divided.
func (r *Reader) segmentSizes() (s heap.Segments) {
	if !r.layout.DenseCells {
		return s
	}
	s.Dense = usualDense
	if r.vars.DenseCells != 0 {
		var n [1]byte
		if _, err := r.Memory.ReadAt(n[:], int64(r.vars.DenseCells)); err == nil {
			s.Dense = int(n[0])
		}
	}
	return s
}

// tooLarge is the error for a heap beyond the bounds on what a process may claim to have.
func (r *Reader) tooLarge() error {
	return fmt.Errorf("the heap of process %d is larger than can be looked at", r.PID)
}

// describe takes what the descriptors of a megablock say, and returns how many megablocks its last group reaches
// into, itself included. Groups in use are visited.
func (d *Descriptors) describe(at uint64, text []byte, limit uint64, visit func(heap.Group)) uint64 {
	f := heap.Groups(at, text, limit, func(g heap.Group) {
		d.Nonmoving = d.Nonmoving || g.Has(ghc.BlockNonmoving)
		if g.IsSegment() && g.Free != g.Start { // else it was not divided into cells yet
			g.Cell, g.Free = d.segments.Cell(g), g.Start+uint64(g.Blocks)*ghc.BlockBytes
		}
		visit(g)
	}, func(g heap.Group) { d.Free = append(d.Free, g) })
	d.Unallocated += f.Unallocated
	d.Odd += f.Odd
	return f.Megablocks
}

// extent reads the descriptors of generations, and where the heap's megablocks are.
func (r *Reader) extent() (*Descriptors, error) {
	d := &Descriptors{segments: r.segmentSizes()}
	var err error
	if d.Generations, err = r.generations(); err != nil {
		return nil, fmt.Errorf("read the heap's generations: %w", err)
	}
	begin, end, err := r.space()
	if err != nil {
		return nil, err
	}
	d.Space = [2]uint64{begin, end}
	regions, err := procfs.Regions(r.PID)
	if err != nil {
		return nil, fmt.Errorf("find the heap of process %d: %w", r.PID, err)
	}
	for _, m := range regions {
		if m.Start, m.End = max(m.Start, begin), min(m.End, end); m.Readable && m.Start < m.End {
			d.Regions = append(d.Regions, m)
		}
	}
	if d.Returned, err = r.returned(begin, end); err != nil {
		return nil, fmt.Errorf("read what of the heap was given back: %w", err)
	}
	return d, nil
}

// stretches lists the addresses of whole megablocks that are mapped and not given back.
func (d *Descriptors) stretches() (all []Range) {
	const size = ghc.MegablockBytes
	add := func(start, end uint64) {
		if start, end = (start+size-1)&^(size-1), end&^(size-1); start < end {
			all = append(all, Range{start, end})
		}
	}
	returned := d.Returned
	for _, m := range d.Regions {
		at := m.Start
		for len(returned) > 0 && returned[0].Start < m.End {
			add(at, returned[0].Start)
			at = max(at, returned[0].End)
			if returned[0].End > m.End {
				break
			}
			returned = returned[1:]
		}
		add(at, m.End)
	}
	return all
}

// maxReturned bounds the ranges that a process may claim to have given back.
const maxReturned = 1 << 16

// returned lists the ranges that the run-time system has given back. Its list is in the order of addresses,
// and has whole megablocks; a range that is not so ends it.
func (r *Reader) returned(begin, end uint64) ([]Range, error) {
	if r.vars.FreeSpace == 0 {
		return nil, nil
	}
	all := []Range{}
	at, err := r.Memory.Word(r.vars.FreeSpace)
	for last := begin; err == nil && at != 0 && len(all) < maxReturned; {
		var node [ghc.FreeSpaceSize + 8]byte
		if _, err = r.Memory.ReadAt(node[:], int64(at)); err != nil {
			break
		}
		start, size := binary.LittleEndian.Uint64(node[ghc.FreeSpaceAddress:]), binary.LittleEndian.Uint64(node[ghc.FreeSpaceSize:])
		if start < last || start >= end || size == 0 || size > end-start || (start|size)%ghc.MegablockBytes != 0 {
			break
		}
		last = start + size
		all = append(all, Range{start, last})
		at = binary.LittleEndian.Uint64(node[ghc.FreeSpaceNext:])
	}
	return all, err
}

// maxCapabilities bounds how many capabilities a process may claim to have.
const maxCapabilities = 1 << 12

// capabilities lists the addresses of the capabilities.
func (r *Reader) capabilities() ([]uint64, error) {
	if r.found != nil {
		all := make([]uint64, len(r.found.Capabilities))
		for i, base := range r.found.Capabilities {
			all[i] = base - ghc.BaseOfCapability
		}
		return all, nil
	}
	v := &r.vars
	if v.Count == 0 || v.Array == 0 {
		if v.Main != 0 {
			return []uint64{v.Main}, nil
		}
		return nil, ErrNoHeap
	}
	var count [4]byte
	if _, err := r.Memory.ReadAt(count[:], int64(v.Count)); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(count[:])
	if n == 0 || n > maxCapabilities {
		return nil, ErrNoHeap
	}
	array := v.Array
	first, err := r.Memory.Word(array)
	if err != nil {
		return nil, err
	}
	if !v.InPlace && first != v.Main {
		array = first
	}
	all := make([]uint64, n)
	return all, r.Memory.Words(array, all)
}

// filling lists the blocks that capabilities fill with pinned byte arrays.
func (r *Reader) filling() (starts []uint64, err error) {
	capabilities, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	for _, c := range capabilities {
		block, err := r.Memory.Word(c + r.pinned)
		if err != nil {
			return nil, err
		}
		if block == 0 {
			continue
		}
		start, err := r.Memory.Word(block + ghc.BlockStart)
		if err != nil {
			return nil, err
		}
		starts = append(starts, start)
	}
	return starts, nil
}

// bytesOf is the memory of words.
func bytesOf(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
}

// wordsOf is the words that memory holds, which begins where a word may.
func wordsOf(b []byte) []uint64 {
	if len(b) < 8 {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8)
}
