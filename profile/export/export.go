package export

import (
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
)

// Options selects what an export contains.
type Options struct {
	// Causes adds the leaf's causes to folded stacks, at Level.
	Causes bool
	Level  profile.Level
	// Merged writes one speedscope profile for all threads.
	Merged bool
	// Program is the exporting program's name and version.
	Program string
}

// Format writes selections of one log, one for each event.
type Format struct {
	Name   string
	Binary bool
	// Events is set if the format can hold several events.
	Events bool
	Write  func(w io.Writer, ss []*profile.Selection, o Options) error
}

// Formats lists all formats.
var Formats = []Format{
	{Name: "pprof", Binary: true, Events: true, Write: PProf},
	{Name: "speedscope", Events: true, Write: Speedscope},
	{Name: "folded", Write: func(w io.Writer, ss []*profile.Selection, o Options) error { return Folded(w, ss[0], o) }},
	{Name: "firefox", Events: true, Write: Firefox},
	{Name: "perf-script", Events: true, Write: PerfScript},
}

// hidden is the name of the frame of a stack whose frames are all hidden.
const hidden = "(hidden)"

// label returns a thread's name: its label or command, its Haskell thread, or its OS
// thread.
func label(t *columns.Thread) string {
	switch {
	case t.TSO != 0 && t.Label != "":
		return fmt.Sprintf("Haskell thread %d (%s)", t.TSO, t.Label)
	case t.TSO != 0:
		return fmt.Sprintf("Haskell thread %d", t.TSO)
	}
	return fmt.Sprintf("OS thread %d", t.TID)
}

// thread identifies a thread in exports: a Haskell thread on any OS thread, or else an OS
// thread.
type thread struct {
	pid uint32
	tso uint64
	tid uint32 // 0 if tso is set
}

func threadOf(k columns.ThreadKey) thread {
	if k.TSO != 0 {
		return thread{pid: k.PID, tso: k.TSO}
	}
	return thread{pid: k.PID, tid: k.TID}
}

// names returns the labels of a profile's threads.
func names(p *profile.Profile) map[thread]string {
	m := make(map[thread]string)
	for i := range p.Threads {
		t := &p.Threads[i]
		if k := threadOf(t.ThreadKey); m[k] == "" || t.Label != "" {
			m[k] = label(t)
		}
	}
	return m
}

// sample is a kept sample with its time, for sorting.
type sample struct {
	time   uint64
	weight uint64
	site   columns.SiteID
}

// byThread groups a selection's samples by thread, each group ordered by time. The
// threads are ordered by their first sample in the log.
func byThread(s *profile.Selection) (order []thread, samples map[thread][]sample) {
	samples = make(map[thread][]sample)
	for site, smp := range s.EachSample() {
		t := threadOf(smp.Thread)
		if _, ok := samples[t]; !ok {
			order = append(order, t)
		}
		samples[t] = append(samples[t], sample{smp.Time, smp.Weight, site})
	}
	for _, l := range samples {
		sortByTime(l)
	}
	return order, samples
}

func sortByTime(l []sample) {
	byTime := func(a, b sample) int {
		switch {
		case a.time < b.time:
			return -1
		case a.time > b.time:
			return 1
		}
		return 0
	}
	if !slices.IsSortedFunc(l, byTime) {
		slices.SortStableFunc(l, byTime)
	}
}

// frameIDs numbers frames from 0 in the order of their first use.
type frameIDs struct {
	ids    map[*profile.Frame]int
	frames []*profile.Frame
}

func newFrameIDs() *frameIDs { return &frameIDs{ids: make(map[*profile.Frame]int)} }

func (t *frameIDs) of(f *profile.Frame) int {
	id, ok := t.ids[f]
	if !ok {
		id = len(t.frames)
		t.ids[f] = id
		t.frames = append(t.frames, f)
	}
	return id
}

var hiddenFrame = &profile.Frame{Name: hidden, Kind: profile.KindCategory}

// stackOf returns the walker's stack of a site, leaf first, never empty.
func stackOf(w *stacks.Walker, site columns.SiteID) []stacks.Frame {
	if st := w.Stack(site); len(st) > 0 {
		return st
	}
	return []stacks.Frame{{Frame: hiddenFrame}}
}

// programName returns the name of the profiled program, or the best substitute.
func programName(p *profile.Profile) string {
	if p.Capture.Program != "" {
		return path.Base(p.Capture.Program)
	}
	return "eventlog"
}

func commandLine(p *profile.Profile) string {
	c := &p.Capture
	if len(c.Args) == 0 {
		return c.Program
	}
	return strings.Join(append([]string{c.Program}, c.Args[1:]...), " ")
}

// signed converts a weight for formats with signed weights.
func signed(w uint64) (int64, error) {
	if w > math.MaxInt64 {
		return 0, fmt.Errorf("a weight of %d does not fit the format's 63 bits", w)
	}
	return int64(w), nil
}

// interval returns the time or count between two samples of an event.
func interval(e *columns.Event) uint64 {
	switch {
	case e.RateMode == eventlog.RatePeriod && e.Rate > 0:
		return e.Rate
	case e.RateMode == eventlog.RateFrequency && e.Rate > 0 && e.Unit == "ns":
		return 1_000_000_000 / e.Rate
	case e.Samples > 0:
		return e.Weight / e.Samples
	}
	return 0
}
