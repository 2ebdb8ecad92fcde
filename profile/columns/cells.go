package columns

import "ccagent/eventlog"

// totals sums up a log's samples without keeping them one by one.
type totals struct {
	// cells has one sum for each event and node: of the samples that agree in all
	// other fields with the first sample at the node. sums has the sums of all other
	// samples, and of those that no longer fit a cell.
	cells [cellEvents][]cell
	room  int // number of further cells that may be allocated
	sums  []totalOf
	index map[totalKey]int
}

// totalKey is the set of fields in which samples must agree to be summed up together.
type totalKey struct {
	node, centres uint32
	event         uint8
	stop          eventlog.StopReason
	flags         eventlog.SampleFlags // of totalFlags
}

type totalOf struct {
	totalKey
	weight, count uint64
}

// totalFlags are the sample flags that totalKey distinguishes. They are the lowest three.
const totalFlags = eventlog.SampleInKernel | tops

// cell is a sum of a node's samples packed into 64 bits, because the tables of large logs
// do not fit any cache. From the lowest bits on it holds the weight, the number of
// samples, and the fields that these samples agree in (the owner). The number's highest
// bit is set when the cell is full.
type cell uint64

const (
	cellCountBits  = 14
	cellWeightBits = eventlog.BriefWeightBits + cellCountBits // no overflow: the largest weight of that many samples

	cellEvents = 16
	cellStops  = 32
	maxCells   = 1 << 24 // 128 MB
)

// head returns a cell's owner together with its full bit. A sample with the same head can
// be added to the cell. An empty cell has the head of the most common samples.
func (c cell) head() uint64 { return uint64(c >> (cellWeightBits + cellCountBits - 1)) }

// headFor returns the head of a cell that a sample can be added to.
func headFor(s *eventlog.BriefSample) uint64 {
	return uint64(s.Stop)<<4 | uint64(s.Flags&uint8(totalFlags))<<1
}

func (c cell) weight() uint64 { return uint64(c) % (1 << cellWeightBits) }
func (c cell) count() uint64  { return uint64(c) >> cellWeightBits % (1 << cellCountBits) }

func newTotals() *totals { return &totals{room: maxCells, index: make(map[totalKey]int)} }

// briefs adds samples. The loop is kept small so that the CPU can overlap the cache
// misses of many cells.
func (t *totals) briefs(samples []eventlog.BriefSample) {
	for i := range samples {
		s := &samples[i]
		if s.Event < cellEvents {
			if cells := t.cells[s.Event]; int(s.Node) < len(cells) {
				if c := cells[s.Node]; c.head() == headFor(s) {
					cells[s.Node] = c + 1<<cellWeightBits + cell(s.Weight)
					continue
				}
			}
		}
		t.brief(s)
	}
}

// brief adds one sample, also where its cell is full, has another owner or does not
// exist.
func (t *totals) brief(s *eventlog.BriefSample) {
	k := totalKey{node: s.Node, event: s.Event, stop: s.Stop, flags: eventlog.SampleFlags(s.Flags) & totalFlags}
	if s.Event < cellEvents && s.Stop < cellStops && t.hold(s.Event, s.Node) {
		c := &t.cells[s.Event][s.Node]
		full := c.head() == headFor(s)|1
		if full {
			t.add(k, c.weight(), c.count())
		}
		if full || *c == 0 {
			*c = cell(headFor(s) << (cellWeightBits + cellCountBits - 1))
		}
		if c.head() == headFor(s) {
			*c += 1<<cellWeightBits + cell(s.Weight)
			return
		}
	}
	t.add(k, uint64(s.Weight), 1)
}

// sample adds a sample of a node and an event.
func (t *totals) sample(node uint32, event uint8, s *eventlog.Sample) {
	one := *s
	one.Node, one.Event = node, uint32(event)
	if brief, ok := one.Brief(); ok {
		t.brief(&brief)
		return
	}
	t.add(totalKey{node, s.Centres, event, s.Stop, s.Flags & totalFlags}, s.Weight, 1)
}

// hold grows the cells of an event to include a node, and reports whether it did. It
// refuses node ids that are out of proportion to the log.
func (t *totals) hold(event uint8, node uint32) bool {
	cells := t.cells[event]
	n := int(node) + 1
	if n <= len(cells) {
		return true
	}
	if n-len(cells) > t.room {
		return false
	}
	n = min(max(n, 2*len(cells)), len(cells)+t.room)
	t.room -= n - len(cells)
	t.cells[event] = make([]cell, n)
	copy(t.cells[event], cells)
	return true
}

func (t *totals) add(k totalKey, weight, count uint64) {
	i, ok := t.index[k]
	if !ok {
		i = len(t.sums)
		t.index[k] = i
		t.sums = append(t.sums, totalOf{totalKey: k})
	}
	sum := &t.sums[i]
	sum.weight, sum.count = SatAdd(sum.weight, weight), sum.count+count
}

// all yields every sum. A key may come more than once, with parts of its sum.
func (t *totals) all(yield func(*totalOf) bool) {
	for event, cells := range t.cells {
		for node, c := range cells {
			if c == 0 {
				continue
			}
			owner := c.head() >> 1
			k := totalKey{node: uint32(node), event: uint8(event), stop: eventlog.StopReason(owner >> 3), flags: eventlog.SampleFlags(owner) & totalFlags}
			if !yield(&totalOf{k, c.weight(), c.count()}) {
				return
			}
		}
	}
	for i := range t.sums {
		if !yield(&t.sums[i]) {
			return
		}
	}
}
