package columns

import "ccagent/eventlog"

// totals are sums over a log's samples, in place of their columns.
type totals struct {
	// cells are sums by event and node, of the samples that agree in all else with the
	// first at the node; sums are those of all others, and of what outgrew a cell.
	cells [cellEvents][]cell
	room  int // how many cells there may still be
	sums  []totalOf
	index map[totalKey]int
}

// totalKey is what samples that are summed up agree in.
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

// totalFlags are the flags that tell sums apart, which are the lowest three.
const totalFlags = eventlog.SampleInKernel | tops

// cell is the sum of samples of a node in little space, as the tables of large logs fit
// no cache: from the lowest bits on, their weight, their number and an owner, which
// is what they agree in. The number's highest bit says that there is no room for more.
type cell uint64

const (
	cellCountBits  = 14
	cellWeightBits = eventlog.BriefWeightBits + cellCountBits // what so many samples weigh fits

	cellEvents = 16
	cellStops  = 32
	maxCells   = 1 << 24 // 128 MB
)

// head is a cell's owner, and whether it is full. A sample that has the same
// may be added to the cell; an empty cell has that of the usual samples.
func (c cell) head() uint64 { return uint64(c >> (cellWeightBits + cellCountBits - 1)) }

// headFor is the head of a cell that a sample can be added to.
func headFor(s *eventlog.BriefSample) uint64 {
	return uint64(s.Stop)<<4 | uint64(s.Flags&uint8(totalFlags))<<1
}

func (c cell) weight() uint64 { return uint64(c) % (1 << cellWeightBits) }
func (c cell) count() uint64  { return uint64(c) >> cellWeightBits % (1 << cellCountBits) }

func newTotals() *totals { return &totals{room: maxCells, index: make(map[totalKey]int)} }

// briefs takes samples. It does so little for each that a CPU can wait for the cells
// of many.
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

// brief takes a sample, also one whose cell is full, another's or not there.
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

// sample takes a sample of a node and an event.
func (t *totals) sample(node uint32, event uint8, s *eventlog.Sample) {
	one := *s
	one.Node, one.Event = node, uint32(event)
	if brief, ok := one.Brief(); ok {
		t.brief(&brief)
		return
	}
	t.add(totalKey{node, s.Centres, event, s.Stop, s.Flags & totalFlags}, s.Weight, 1)
}

// hold makes a cell, and reports whether there is one: not where a log's node ids are
// out of all proportion.
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

// all gives every sum, some keys' in parts.
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
