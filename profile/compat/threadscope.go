package compat

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// gap is the largest distance, in sampling intervals, between two samples of a thread
// that are drawn as one bar.
const gap = 3

// threadScope draws the samples of the clock event as activity: a capability runs a
// thread, or collects garbage, from half an interval before the first of a series of
// samples to half an interval after the last. The activity between two samples is a
// guess, and a message in the log says so. For a log that has the actual runs of threads
// it writes nothing.
func threadScope(ss []*profile.Selection) (Write, error) {
	s, err := clock(ss)
	if err != nil {
		return nil, err
	}
	if len(s.Profile.RTSLog.Runs) > 0 {
		// The log has the actual runs of threads, so no guess is needed.
		return func(*eventlog.Writer) error { return nil }, nil
	}
	if s.EventDef().Unit != "ns" && s.Profile.Duration == 0 {
		return nil, errors.New("the log has no time between its samples")
	}
	return func(w *eventlog.Writer) error {
		a := &activity{p: s.Profile, step: step(s), caps: make(map[uint32][]moment), threads: make(map[uint64]bool)}
		a.samples(s)
		if len(a.caps) == 0 {
			return errors.New("no sample has a capability")
		}
		if err := a.head(w); err != nil {
			return err
		}
		for _, cap := range a.order() {
			if err := a.capability(w, cap); err != nil {
				return err
			}
		}
		return a.allocation(w, ss)
	}, nil
}

// step returns the time between two samples of a busy thread, in ns.
func step(s *profile.Selection) uint64 {
	e := s.EventDef()
	if e.RateMode == eventlog.RateFrequency && e.Rate > 0 {
		return max(1, 1_000_000_000/e.Rate)
	}
	return max(1, s.Profile.Duration/max(1, s.Samples))
}

// moment is the activity that one sample saw on a capability.
type moment struct {
	time uint64
	tso  uint64
	gc   bool
}

type activity struct {
	p       *profile.Profile
	step    uint64
	caps    map[uint32][]moment
	threads map[uint64]bool
}

// samples sorts samples by capability. Samples in the garbage collector have no
// capability; they go to the one that their OS thread was last seen on, which it holds
// while it collects.
func (a *activity) samples(s *profile.Selection) {
	type row struct {
		columns.Sample
		gc bool
	}
	var rows []row
	for site, smp := range s.EachSample() {
		rows = append(rows, row{smp, s.Profile.SiteCategory(site) == eventlog.CategoryGC})
	}
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(x.Time, y.Time) })
	held := make(map[[2]uint32]uint32)
	for i := range rows {
		r := &rows[i]
		task := [2]uint32{r.Thread.PID, r.Thread.TID}
		cap, known := r.Capability, r.Capability != eventlog.NoCapability
		if known {
			held[task] = cap
		} else if r.gc {
			cap, known = held[task]
		}
		if !known || r.Thread.TSO == 0 && !r.gc || r.Thread.TSO > math.MaxUint32 {
			continue
		}
		a.caps[cap] = append(a.caps[cap], moment{r.Time, r.Thread.TSO, r.gc})
		if r.Thread.TSO != 0 {
			a.threads[r.Thread.TSO] = true
		}
	}
}

func (a *activity) order() []uint32 {
	var caps []uint32
	for cap := range a.caps {
		caps = append(caps, cap)
	}
	slices.Sort(caps)
	return caps
}

// head declares capabilities and threads, and writes a message about how the bars were
// made.
func (a *activity) head(w *eventlog.Writer) error {
	const capset = 0 // id of the process's capset, as the agent declares it
	evs := []eventlog.Event{&eventlog.UserMsg{Text: fmt.Sprintf(
		"ccview: activity is drawn from samples, one every %.2f ms; what lies between two samples of a thread less than %.2f ms apart is taken for running, and a collection for one of the capability its OS thread last ran",
		float64(a.step)/1e6, float64(gap*a.step)/1e6)}}
	for _, cap := range a.order() {
		evs = append(evs, &eventlog.CapCreate{Cap: uint16(cap)}, &eventlog.CapsetAssignCap{Capset: capset, Cap: uint16(cap)})
	}
	for _, ev := range evs {
		if err := w.Write(0, eventlog.NoCap, ev); err != nil {
			return err
		}
	}
	first := int(a.order()[0])
	var tsos []uint64
	for tso := range a.threads {
		tsos = append(tsos, tso)
	}
	slices.Sort(tsos)
	for _, tso := range tsos {
		if err := w.Write(0, first, &eventlog.CreateThread{Thread: uint32(tso)}); err != nil {
			return err
		}
	}
	return nil
}

// capability writes the bars of one capability, which never overlap.
func (a *activity) capability(w *eventlog.Writer, cap uint32) error {
	ms := a.caps[cap]
	end := uint64(0) // of the previous bar
	for i := 0; i < len(ms); {
		j := i + 1
		for j < len(ms) && ms[j].gc == ms[i].gc && (ms[i].gc || ms[j].tso == ms[i].tso) && ms[j].time-ms[j-1].time <= gap*a.step {
			j++
		}
		from, to := ms[i].time-min(ms[i].time, a.step/2), ms[j-1].time+a.step/2
		from = max(from, end)
		if j < len(ms) {
			to = min(to, ms[j].time)
		}
		to = max(to, from)
		if err := stretch(w, int(cap), ms[i], from, to); err != nil {
			return err
		}
		end, i = to, j
	}
	return nil
}

func stretch(w *eventlog.Writer, cap int, m moment, from, to uint64) error {
	var begin, end eventlog.Event = &eventlog.RunThread{Thread: uint32(m.tso)}, &eventlog.StopThread{Thread: uint32(m.tso), Status: eventlog.StoppedYielding}
	if m.gc {
		begin, end = &eventlog.GCStart{}, &eventlog.GCEnd{}
	}
	if err := w.Write(from, cap, begin); err != nil {
		return err
	}
	return w.Write(to, cap, end)
}

// allocation writes the allocated bytes of each capability, as estimated from samples.
func (a *activity) allocation(w *eventlog.Writer, ss []*profile.Selection) error {
	for _, s := range ss {
		if !s.CountsBytes() {
			continue
		}
		type point struct{ time, bytes uint64 }
		by := make(map[int][]point)
		for _, smp := range s.EachSample() {
			if cap := capOf(smp); cap != eventlog.NoCap {
				by[cap] = append(by[cap], point{smp.Time, smp.Weight})
			}
		}
		for _, cap := range slices.Sorted(maps.Keys(by)) {
			points := by[cap]
			slices.SortStableFunc(points, func(x, y point) int { return cmp.Compare(x.time, y.time) })
			total := uint64(0)
			for _, p := range points {
				total += p.bytes
				if err := w.Write(p.time, cap, &eventlog.HeapAllocated{Bytes: total}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
