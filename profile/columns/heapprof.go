package columns

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ccagent/eventlog"
)

// HeapProfile is an RTS's heap profile (+RTS -h…): what of the heap was live at
// each census, by bands. What a band is, Breakdown tells.
type HeapProfile struct {
	ID        uint8
	Breakdown eventlog.HeapBreakdown
	PeriodNs  uint64 // between censuses, as asked for
	// Restriction is the command line's choice of closures, as in "module Data.Map";
	// empty if all were counted.
	Restriction string
	Censuses    []HeapCensus // in the order of the log
	Bands       []HeapBand   // by the order of their first appearance

	cells []heapCell
}

// HeapCensus is one look at the whole heap.
type HeapCensus struct {
	Time  uint64 // ns
	Era   uint64
	Total uint64 // bytes, of all bands

	cells [2]uint32 // in HeapProfile.cells
}

// HeapBand is what a heap profile tells apart.
type HeapBand struct {
	// Name is the band's as the RTS has it; of an info table the name of its
	// closures' binding or constructor where the log tells, of a cost-centre
	// stack "module.label" of its innermost.
	Name string
	// Stack is a cost-centre stack, innermost first, by name; nil for others.
	Stack []string
	// Table is the info table of a profile by info tables; nil if the log does
	// not tell of it.
	Table *eventlog.InfoTable
}

// Title is the band's name for readers: a cost-centre stack whole, innermost first; of an
// info table also its source.
func (b *HeapBand) Title() string {
	if len(b.Stack) > 1 {
		return strings.Join(b.Stack, " < ")
	}
	if b.Table != nil && b.Table.SrcLoc != "" {
		return b.Name + "  " + b.Table.SrcLoc
	}
	return b.Name
}

// What is what the profile's bands are: "closure type".
func (h *HeapProfile) What() string { return BreakdownName(h.Breakdown) }

// BreakdownName is what the bands of a heap profile are.
func BreakdownName(b eventlog.HeapBreakdown) string {
	names := []string{"?", "cost centre", "module", "closure description", "type", "retainer", "biography", "closure type", "info table", "era"}
	if int(b) < len(names) {
		return names[b]
	}
	return names[0]
}

type heapCell struct {
	band  uint32
	bytes uint64
}

// Each calls f for each band of a census. A band may come more than once.
func (h *HeapProfile) Each(census int, f func(band int, bytes uint64)) {
	c := h.Censuses[census].cells
	for _, x := range h.cells[c[0]:c[1]] {
		f(int(x.band), x.bytes)
	}
}

// heapState takes the events of heap profiles. They lie between the beginning
// and the end of a census, and name the profile they are of.
type heapState struct {
	open  map[uint8]int // profile id → position in Log.HeapProfiles
	bands []map[string]uint32
	// centres and tables by band, resolved in the end: what they refer to may
	// be defined later.
	raw    [][]rawBand
	census HeapCensus // begun, zero time if none
	began  bool
	first  int // profile that the census is of
}

type rawBand struct {
	stack []uint32
	info  uint64
}

// maxHeapProfiles bounds the profiles of one log. No RTS makes more than one.
const maxHeapProfiles = 256

func (b *builder) heapEvent(rec *eventlog.Record) {
	s, p := &b.heap, b.p
	switch ev := rec.Event.(type) {
	case *eventlog.HeapProfBegin:
		if len(p.HeapProfiles) == maxHeapProfiles {
			return
		}
		b.newHeapProfile(ev)
	case *eventlog.HeapSampleBegin:
		b.beginCensus(rec.Time, ev.Era)
	case *eventlog.HeapBioSampleBegin:
		// Lag, drag and void are known only when the program ends: the sample
		// is of the time that it names.
		b.beginCensus(ev.Time, ev.Era)
	case *eventlog.HeapSampleEnd:
		s.began = false
	case *eventlog.HeapSampleString:
		b.heapBand(ev.Profile, rec.Time, ev.Bytes, ev.Label, nil)
	case *eventlog.HeapSampleStack:
		key := make([]byte, 0, 4*len(ev.Stack))
		for _, c := range ev.Stack {
			key = binary.BigEndian.AppendUint32(key, c)
		}
		b.heapBand(ev.Profile, rec.Time, ev.Bytes, string(key), ev.Stack)
	}
}

func (b *builder) newHeapProfile(ev *eventlog.HeapProfBegin) int {
	s, p := &b.heap, b.p
	if s.open == nil {
		s.open = make(map[uint8]int)
	}
	h := HeapProfile{ID: ev.Profile, Breakdown: ev.Breakdown, PeriodNs: ev.PeriodNs}
	var parts []string
	for _, r := range []struct{ what, value string }{
		{"module", ev.Module}, {"closure", ev.ClosureDescr}, {"type", ev.TypeDescr}, {"cost centre", ev.CostCentre},
		{"cost-centre stack", ev.CostCentreStack}, {"retainer", ev.Retainer}, {"biography", ev.Biographies},
	} {
		if r.value != "" {
			parts = append(parts, r.what+" "+r.value)
		}
	}
	h.Restriction = strings.Join(parts, ", ")
	i := len(p.HeapProfiles)
	p.HeapProfiles = append(p.HeapProfiles, h)
	s.bands = append(s.bands, make(map[string]uint32))
	s.raw = append(s.raw, nil)
	s.open[ev.Profile] = i
	return i
}

func (b *builder) beginCensus(time, era uint64) {
	b.heap.census, b.heap.began = HeapCensus{Time: time, Era: era}, true
	b.p.RTSLog.HeapSamples++
	// A census at which nothing is live is one too.
	if n := len(b.p.HeapProfiles); n > 0 {
		b.openCensus(n - 1)
	}
}

// openCensus appends the census that has begun to a profile.
func (b *builder) openCensus(i int) {
	s, h := &b.heap, &b.p.HeapProfiles[i]
	s.first = i
	c := s.census
	c.cells = [2]uint32{uint32(len(h.cells)), uint32(len(h.cells))}
	h.Censuses = append(h.Censuses, c)
}

func (b *builder) heapBand(id uint8, time, bytes uint64, label string, stack []uint32) {
	s, p := &b.heap, b.p
	i, ok := s.open[id]
	if !ok {
		// The log's beginning is missing, and with it what the bands are.
		if len(p.HeapProfiles) == maxHeapProfiles {
			return
		}
		i = b.newHeapProfile(&eventlog.HeapProfBegin{Profile: id})
	}
	h := &p.HeapProfiles[i]
	if !s.began || len(h.Censuses) == 0 || s.first != i {
		if !s.began {
			s.census, s.began = HeapCensus{Time: time}, true
		}
		b.openCensus(i)
	}
	band, ok := s.bands[i][label]
	if !ok {
		band = uint32(len(h.Bands))
		name := label
		raw := rawBand{stack: slices.Clone(stack)}
		if stack != nil {
			name = ""
		} else if h.Breakdown == eventlog.BreakdownInfoTable {
			raw.info, _ = strconv.ParseUint(label, 0, 64)
		}
		s.bands[i][label] = band
		s.raw[i] = append(s.raw[i], raw)
		h.Bands = append(h.Bands, HeapBand{Name: name})
	}
	h.cells = append(h.cells, heapCell{band, bytes})
	c := &h.Censuses[len(h.Censuses)-1]
	c.Total = SatAdd(c.Total, bytes)
	c.cells[1] = uint32(len(h.cells))
}

// finishHeap names the bands.
func (b *builder) finishHeap() {
	p := b.p
	for i := range p.HeapProfiles {
		h := &p.HeapProfiles[i]
		for j := range h.Bands {
			band, raw := &h.Bands[j], &b.heap.raw[i][j]
			switch {
			case raw.stack != nil:
				for _, id := range raw.stack {
					band.Stack = append(band.Stack, b.centreName(id))
				}
				band.Name = "(no cost centre)"
				if len(band.Stack) > 0 {
					band.Name = band.Stack[0]
				}
			case raw.info != 0:
				if t, ok := p.InfoTable(raw.info); ok {
					band.Table = t
					band.Name = tableName(t)
				}
			}
		}
	}
}

func (b *builder) centreName(id uint32) string {
	cc, ok := b.centres[id]
	switch {
	case !ok:
		return fmt.Sprintf("cost centre %d", id)
	case cc.Module == "" || cc.Module == cc.Label:
		return cc.Label
	}
	return cc.Module + "." + cc.Label
}

// tableName is what an info table's closures are called.
func tableName(t *eventlog.InfoTable) string {
	name := t.Label
	if name == "" {
		name = t.Name
	}
	if t.Module != "" {
		name = t.Module + "." + name
	}
	return name
}

// InfoTable gives what the log tells of the info table at an address.
func (p *Log) InfoTable(addr uint64) (*eventlog.InfoTable, bool) {
	i, ok := slices.BinarySearchFunc(p.InfoTables, addr, func(t eventlog.InfoTable, a uint64) int { return cmp.Compare(t.Info, a) })
	if !ok {
		return nil, false
	}
	return &p.InfoTables[i], true
}
