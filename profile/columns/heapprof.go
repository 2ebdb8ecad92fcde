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

// HeapProfile is a heap profile of the RTS (+RTS -h…): the live heap at each census,
// divided into bands. Breakdown says what a band is.
type HeapProfile struct {
	ID        uint8
	Breakdown eventlog.HeapBreakdown
	PeriodNs  uint64 // requested time between censuses
	// Restriction is the selection of closures on the command line, such as "module
	// Data.Map"; empty if all closures were counted.
	Restriction string
	Censuses    []HeapCensus // in the order of the log
	Bands       []HeapBand   // by the order of their first appearance

	cells []heapCell
	kinds []LiveKind // of censuses by info table
	what  string     // in place of Breakdown's name
}

// HeapCensus is one measurement of the whole heap.
type HeapCensus struct {
	Time  uint64 // ns
	Era   uint64
	Total uint64 // bytes of all bands
	// How is how ccagent has taken it; nil for the run-time system's own.
	How *eventlog.HeapCensus
	// Draw says which part of the heap was counted; nil if all of it was.
	Draw *eventlog.HeapDraw

	cells [2]uint32 // range in HeapProfile.cells
	kinds [2]uint32 // likewise
	known bool      // it was counted by info table, too
}

// HeapBand is one of the classes that a heap profile divides the heap into.
type HeapBand struct {
	// Name is the RTS's name of the band. For an info table it is the name of the
	// binding or constructor, if the log has it; for a cost-centre stack
	// "module.label" of the innermost centre.
	Name string
	// Stack is the names of a cost-centre stack, innermost first; nil for other
	// bands.
	Stack []string
	// Table is the info table, in a profile by info tables; nil if the log does not
	// define it.
	Table *eventlog.InfoTable
	// Where is the file and line at which closures of the band were written, as FileID and Span have them; empty and 0 if that is
	// not known.
	Where  string
	FileID FileID
	Span   Extent
}

// Title returns the band's name for display: the whole cost-centre stack, innermost
// first, or an info table with its source position.
func (b *HeapBand) Title() string {
	if len(b.Stack) > 1 {
		return strings.Join(b.Stack, " < ")
	}
	switch {
	case b.Table != nil && b.Table.SrcLoc != "":
		return b.Name + "  " + b.Table.SrcLoc
	case b.Where != "":
		return b.Name + "  " + b.Where
	}
	return b.Name
}

// What describes the kind of the profile's bands: "closure type".
func (h *HeapProfile) What() string {
	if h.what != "" {
		return h.what
	}
	return BreakdownName(h.Breakdown)
}

// BreakdownName describes the kind of bands that a breakdown makes.
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
	// These are of profiles by Regroup.
	number, margin uint64
}

// Each calls f for each band of a census. A band may come more than once.
func (h *HeapProfile) Each(census int, f func(band int, bytes uint64)) {
	c := h.Censuses[census].cells
	for _, x := range h.cells[c[0]:c[1]] {
		f(int(x.band), x.bytes)
	}
}

// EachNumber calls f for each band of a census with the number of its closures, if that was counted. A
// band may come more than once.
func (h *HeapProfile) EachNumber(census int, f func(band int, number uint64)) {
	c := &h.Censuses[census]
	if c.known && h.what != "" {
		for _, x := range h.cells[c.cells[0]:c.cells[1]] {
			f(int(x.band), x.number)
		}
		return
	}
	if c.How == nil {
		return
	}
	for k, x := range h.cells[c.cells[0]:c.cells[1]] {
		if k < len(c.How.Counts) {
			f(int(x.band), c.How.Counts[k])
		}
	}
}

// Margins gives the distance to the ends of the 95 % confidence interval of each band of a census, in bytes; nil if the whole
// heap was counted.
func (h *HeapProfile) Margins(census int) []uint64 {
	c := &h.Censuses[census]
	if c.Draw == nil {
		return nil
	}
	all := make([]uint64, len(h.Bands))
	for k, x := range h.cells[c.cells[0]:c.cells[1]] {
		if h.what != "" {
			all[x.band] = SatAdd(all[x.band], x.margin)
		} else if k < len(c.Draw.Margins) {
			all[x.band] = SatAdd(all[x.band], c.Draw.Margins[k])
		}
	}
	return all
}

// heapState collects the events of heap profiles. They come between the start and the end
// of a census, and refer to a profile by id.
type heapState struct {
	p     *Log
	open  map[uint8]int // profile id → position in Log.HeapProfiles
	bands []map[string]uint32
	// raw holds the centres and info tables of bands. They are resolved at the end,
	// because they may be defined later in the log.
	raw    [][]rawBand
	census HeapCensus // the census being read; zero time if none
	began  bool
	how    *eventlog.HeapCensus // of the census that begins next
	draw   *eventlog.HeapDraw   // likewise
	first  int                  // profile that the census belongs to
	kinds  []LiveKind           // of the census that begins next
	known  bool                 // it has kinds
	// keptKinds is how many kinds are kept of all censuses.
	keptKinds int
}

type rawBand struct {
	stack []uint32
	info  uint64
}

// maxHeapProfiles bounds the number of profiles of one log. No RTS writes more than one.
const maxHeapProfiles = 256

func (s *heapState) heapEvent(rec *eventlog.Record) {
	p := s.p
	switch ev := rec.Event.(type) {
	case *eventlog.HeapProfBegin:
		if len(p.HeapProfiles) == maxHeapProfiles || s.goesOn(ev) {
			return
		}
		s.newHeapProfile(ev)
	case *eventlog.HeapSampleBegin:
		s.beginCensus(rec.Time, ev.Era)
	case *eventlog.HeapBioSampleBegin:
		// The RTS knows lag, drag and void only when the program ends, so the
		// sample counts for the time that it states.
		s.beginCensus(ev.Time, ev.Era)
	case *eventlog.HeapSampleEnd:
		s.began = false
	case *eventlog.HeapSampleString:
		s.heapBand(ev.Profile, rec.Time, ev.Bytes, ev.Label, nil)
	case *eventlog.HeapSampleStack:
		key := make([]byte, 0, 4*len(ev.Stack))
		for _, c := range ev.Stack {
			key = binary.BigEndian.AppendUint32(key, c)
		}
		s.heapBand(ev.Profile, rec.Time, ev.Bytes, string(key), ev.Stack)
	}
}

// goesOn reports whether what begins is a series of ours that goes on in another log, with which this one was merged.
func (s *heapState) goesOn(ev *eventlog.HeapProfBegin) bool {
	i, ok := s.open[ev.Profile]
	return ok && len(s.p.HeapSeries) > 0 && s.p.HeapProfiles[i].Breakdown == ev.Breakdown && s.p.HeapProfiles[i].PeriodNs == ev.PeriodNs
}

// taken notes how the census is taken that follows.
func (s *heapState) taken(ev *eventlog.HeapCensus) {
	how := *ev
	how.Counts = slices.Clone(ev.Counts)
	s.how = &how
}

// drawn notes which part of the heap the census counts that follows.
func (s *heapState) drawn(ev *eventlog.HeapDraw) {
	draw := *ev
	draw.Margins = slices.Clone(ev.Margins)
	s.draw = &draw
}

// maxSeries bounds the series of one log: one of each program of a process.
const maxSeries = 256

// series notes the account of a process's series.
func (p *Log) series(ev *eventlog.HeapSeries) {
	e := *ev
	e.Missed = slices.Clone(ev.Missed)
	// What counts less than before is of the program that the process has executed since.
	i := slices.IndexFunc(p.HeapSeries, func(old eventlog.HeapSeries) bool { return old.PID == ev.PID && old.Collections <= ev.Collections })
	switch {
	case i >= 0:
		p.HeapSeries[i] = e
	case len(p.HeapSeries) < maxSeries:
		p.HeapSeries = append(p.HeapSeries, e)
	}
}

func (s *heapState) newHeapProfile(ev *eventlog.HeapProfBegin) int {
	p := s.p
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

func (s *heapState) beginCensus(time, era uint64) {
	s.census, s.began = HeapCensus{Time: time, Era: era, How: s.how, Draw: s.draw}, true
	s.how, s.draw = nil, nil
	s.p.RTSLog.HeapSamples++
	// A census at which nothing is live still counts.
	if n := len(s.p.HeapProfiles); n > 0 {
		s.openCensus(n - 1)
	}
	s.forget()
}

// forget forgets what the census has by info table that has begun.
func (s *heapState) forget() { s.kinds, s.known = nil, false }

// openCensus appends the current census to a profile.
func (s *heapState) openCensus(i int) {
	h := &s.p.HeapProfiles[i]
	s.first = i
	c := s.census
	c.cells = [2]uint32{uint32(len(h.cells)), uint32(len(h.cells))}
	c.kinds[0] = uint32(len(h.kinds))
	h.kinds = append(h.kinds, s.kinds...)
	c.kinds[1], c.known = uint32(len(h.kinds)), s.known
	s.forget()
	h.Censuses = append(h.Censuses, c)
}

func (s *heapState) heapBand(id uint8, time, bytes uint64, label string, stack []uint32) {
	p := s.p
	i, ok := s.open[id]
	if !ok {
		// The beginning of the log is missing, so the kind of the bands is
		// unknown.
		if len(p.HeapProfiles) == maxHeapProfiles {
			return
		}
		i = s.newHeapProfile(&eventlog.HeapProfBegin{Profile: id})
	}
	h := &p.HeapProfiles[i]
	if !s.began || len(h.Censuses) == 0 || s.first != i {
		if !s.began {
			s.census, s.began = HeapCensus{Time: time}, true
		}
		s.openCensus(i)
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
	h.cells = append(h.cells, heapCell{band: band, bytes: bytes})
	c := &h.Censuses[len(h.Censuses)-1]
	c.Total = SatAdd(c.Total, bytes)
	c.cells[1] = uint32(len(h.cells))
}

// finishHeap sets the names of the bands.
func (s *heapState) finishHeap(profile *timeProfile) {
	p := s.p
	for i := range p.HeapProfiles {
		h := &p.HeapProfiles[i]
		for j := range h.Bands {
			band, raw := &h.Bands[j], &s.raw[i][j]
			switch {
			case raw.stack != nil:
				for _, id := range raw.stack {
					band.Stack = append(band.Stack, profile.centreName(id))
				}
				band.Name = "(no cost centre)"
				if len(band.Stack) > 0 {
					band.Name = band.Stack[0]
				}
			case h.Breakdown == eventlog.BreakdownInfoTable && raw.info == 0 && band.Name == "0x0":
				band.Name = "(not in the info table map)" // GHC 9.15 and newer sum them up
			case raw.info != 0:
				if t, ok := p.InfoTable(raw.info); ok {
					band.Table = t
					band.Name = tableName(t)
				}
			}
		}
	}
}

func (s *timeProfile) centreName(id uint32) string {
	cc, ok := s.centres[id]
	switch {
	case !ok:
		return fmt.Sprintf("cost centre %d", id)
	case cc.Module == "" || cc.Module == cc.Label:
		return cc.Label
	}
	return cc.Module + "." + cc.Label
}

// tableName returns the name shown for an info table's closures.
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

// InfoTable returns the info table at an address, if the log defines it.
func (p *Log) InfoTable(addr uint64) (*eventlog.InfoTable, bool) {
	i, ok := slices.BinarySearchFunc(p.InfoTables, addr, func(t eventlog.InfoTable, a uint64) int { return cmp.Compare(t.Info, a) })
	if !ok {
		return nil, false
	}
	return &p.InfoTables[i], true
}
