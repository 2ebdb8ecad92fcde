package heap

import (
	"fmt"
	"slices"

	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/columns"
	"ccagent/profile/diagnosis"
	"ccagent/profile/timeline"
	"ccagent/ui/model"
)

// part says what of the heap is on screen.
type part struct {
	Profile int // which of the log's heap profiles
	Band    int // 1 + the only band shown; 0 shows all
	// Level says what bands are, and In, if it has a title, which band of another level is divided into them.
	Level closures.Grouping
	In    within
}

// bands is a heap profile as it is divided.
type bands struct {
	profile int
	level   closures.Grouping
	in      within
}

// of is the heap profile that is shown.
func (c part) of(in *model.Input) *columns.HeapProfile {
	p := in.Profile()
	b := bands{c.Profile, c.Level, c.In}
	return model.Recall(in.Engine, b, func() *columns.HeapProfile {
		hp, why := Report{Profile: p, Number: b.profile, Level: b.level, in: b.in}.profile()
		if why != "" { // of another profile of the log, which is not divided
			hp, _ = Report{Profile: p, Number: b.profile}.profile()
		}
		return hp
	})
}

// shownBands is the number of bands shown one by one; the others are summed up.
const shownBands = 26

// Heap is the heap over the timeline's window, by column.
type Heap struct {
	From, To uint64 // ns
	// These are of the heap profile, or if the log has none, of the sizes it has.
	What        string // what bands are: "closure type"
	Restriction string
	Profiles    int
	Series      *timeline.HeapSeries // nil if there is nothing
	Names       []string             // by row of Series
	Bands       []columns.HeapBand   // likewise, of a heap profile
	Divides     bool                 // the heap profile can be divided into other bands
	Sized       bool                 // bands are sizes, for the log has no heap profile
	Single      bool                 // the heap profile has one census: nothing is known of other moments
	// Lines are sizes by column.
	Lines []HeapLine
	// NotWatched are the columns in which collections, which report the sizes, were not watched.
	NotWatched []bool
	// Generation is by column the oldest generation collected, NoGeneration or
	// UnknownGeneration.
	Generation []int8
	InGC       []float64 // part of a column's time
	Pauses     []timeline.Pause
	All        timeline.PauseStats
	ByGen      []timeline.PauseStats
	Markers    []columns.Marker // in the window
	Missing    string           // why there are no bands; empty if there are
	Notes      []string         // what is to be known of the bands' figures
	// Watched is the time in ns during which GC probes were in place; Partly if that is less
	// than the log's duration. Whole is set if the window is the whole log.
	Watched       uint64
	Partly, Whole bool
	Unseen        string // why GC was not recorded; empty if it was
}

// HeapLine is a size by column.
type HeapLine struct {
	Name  string
	Bytes []uint64
	Peak  uint64
}

// Values of Heap.Generation where no generation was collected, or an unknown one.
const (
	NoGeneration      = -1
	UnknownGeneration = -2
)

// Compute implements model.Part; it gives a *Heap.
func (c part) Compute(in *model.Input) (any, error) {
	w := in.Query.Window
	if w.Cols <= 0 || w.To <= w.From {
		return (*Heap)(nil), nil
	}
	type key struct {
		part
		model.Window
	}
	return model.Recall(in.Engine, key{c, w}, func() *Heap { return newHeap(in.Profile(), c.of(in), c, w) }), nil
}

func newHeap(p *profile.Profile, hp *columns.HeapProfile, c part, n model.Window) *Heap {
	h := &Heap{From: n.From, To: n.To, Profiles: len(p.HeapProfiles), Missing: diagnosis.NoHeap(p)}
	if hp != nil {
		h.Divides = p.HeapProfiles[c.Profile].HasKinds()
		h.Notes = censusNotes(hp)
		h.What, h.Restriction = hp.What(), hp.Restriction
		from, to := n.From, n.To
		if h.Single = len(hp.Censuses) == 1; h.Single {
			from, to = 0, hp.Censuses[0].Time+1
		}
		h.Series = timeline.HeapHeld(hp, from, to, n.Cols, shownBands)
		for _, r := range h.Series.Rows {
			h.Names = append(h.Names, hp.Bands[r.Band].Title())
			h.Bands = append(h.Bands, hp.Bands[r.Band])
		}
	}
	for _, k := range []struct {
		kind columns.HeapKind
		name string
	}{{columns.HeapLive, "live"}, {columns.HeapBlocks, "blocks"}, {columns.HeapSize, "heap"}} {
		if line, peak := timeline.HeapLine(p, k.kind, n.From, n.To, n.Cols); peak > 0 {
			h.Lines = append(h.Lines, HeapLine{k.name, line, peak})
		}
	}
	if h.Series == nil {
		h.sized(n)
	}
	if i := c.Band - 1; h.Series != nil && i >= 0 && i < len(h.Series.Rows) {
		h.only(i)
	}
	h.pauses(p, n)
	h.Watched, h.Partly = p.Watched("gc")
	h.Whole = n.From == 0 && n.To >= p.Duration
	for _, g := range p.RTSLog.Probes {
		if g.Group == "gc" {
			h.Unseen = g.Problem
		}
	}
	for _, m := range p.Markers {
		if m.Time >= n.From && m.Time < n.To {
			h.Markers = append(h.Markers, m)
		}
	}
	return h
}

// sized makes bands of the sizes, where there is no heap profile.
func (h *Heap) sized(n model.Window) {
	var live, size *HeapLine
	for i := range h.Lines {
		switch h.Lines[i].Name {
		case "live":
			live = &h.Lines[i]
		case "heap":
			size = &h.Lines[i]
		}
	}
	if size == nil {
		return
	}
	s := &timeline.HeapSeries{From: n.From, To: n.To, Step: max(1, (n.To-n.From)/uint64(n.Cols)), Peak: size.Peak, Total: size.Bytes, Other: make([]uint64, len(size.Bytes))}
	row := timeline.HeapRow{Bytes: make([]uint64, len(size.Bytes))}
	for i, b := range size.Bytes {
		if live != nil {
			row.Bytes[i] = min(live.Bytes[i], b)
			row.Peak = max(row.Peak, row.Bytes[i])
		}
		s.Other[i] = b - row.Bytes[i]
		if b == size.Peak && s.PeakTime == 0 {
			s.PeakTime = n.From + uint64(i)*s.Step
		}
	}
	s.Rows, s.Others = []timeline.HeapRow{row}, 1
	h.Series, h.Sized = s, true
	h.What, h.Names = "size", []string{"live after the last major collection"}
}

// only leaves one band.
func (h *Heap) only(i int) {
	s := *h.Series
	r := s.Rows[i]
	s.Rows, s.Total, s.Peak, s.Others = []timeline.HeapRow{r}, r.Bytes, r.Peak, 0
	s.Other = make([]uint64, len(r.Bytes))
	for c, b := range r.Bytes {
		if b == r.Peak {
			s.PeakTime = s.From + uint64(c)*s.Step
			break
		}
	}
	h.Series, h.Names = &s, h.Names[i:i+1]
	if h.Bands != nil {
		h.Bands = h.Bands[i : i+1]
	}
}

func (h *Heap) pauses(p *profile.Profile, n model.Window) {
	h.Pauses = timeline.PausesIn(timeline.Pauses(p), profile.Range{From: n.From, To: n.To})
	own := timeline.Exclusive(h.Pauses)
	h.All, h.ByGen = timeline.SumPauses(h.Pauses)
	h.Generation, h.InGC = make([]int8, n.Cols), make([]float64, n.Cols)
	for i := range h.Generation {
		h.Generation[i] = NoGeneration
	}
	step := max(1, (n.To-n.From+uint64(n.Cols)-1)/uint64(n.Cols))
	h.NotWatched = timeline.Unwatched(p, "gc", n.From, n.To, step, n.Cols)
	for i := range h.Pauses {
		x := &h.Pauses[i]
		gen := int8(UnknownGeneration)
		if x.Generation >= 0 {
			gen = int8(min(x.Generation, 9))
		}
		for at := max(x.Start, n.From); at < min(max(x.End, x.Start+1), n.To); {
			c := min(int((at-n.From)/step), n.Cols-1)
			end := min(max(x.End, x.Start+1), n.From+uint64(c+1)*step, n.To)
			if end <= at {
				break
			}
			if from := max(at, x.End-own[i]); from < end {
				h.InGC[c] += float64(end-from) / float64(step)
			}
			if g := h.Generation[c]; g == NoGeneration || gen > g {
				h.Generation[c] = gen
			}
			at = end
		}
	}
}

// Growth is what a row of the series, or with −1 the rest, gained from one column
// to another, in bytes.
func (h *Heap) Growth(row, from, to int) int64 {
	by := h.At(row)
	if from < 0 || to < 0 || from >= len(by) || to >= len(by) {
		return 0
	}
	return int64(by[to]) - int64(by[from])
}

// At is a row of the series by column, or with −1 the rest.
func (h *Heap) At(row int) []uint64 {
	if row < 0 {
		return h.Series.Other
	}
	return h.Series.Rows[row].Bytes
}

// First is the first column of which the heap is known; 0 if there is none.
func (h *Heap) First() int {
	return max(0, slices.IndexFunc(h.Series.Total, func(total uint64) bool { return total > 0 }))
}

// RestName names what is in no row.
func (h *Heap) RestName() string {
	if h.Sized {
		return "the rest of what was taken from the OS"
	}
	return fmt.Sprintf("%d more", h.Series.Others)
}
