package duplicated

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// name is the event's.
const name = "duplicated"

// Kind makes the source of evaluations that are done twice.
func Kind() source.Kind { return source.Kind{Grant: grant, New: open, Known: known, Once: true} }

func grant(asked string, _ perf.Rate) (*source.Event, bool, error) {
	return &source.Event{Samples: true, OfCPUTime: true, Def: eventlog.EventDef{
		Requested: name, Granted: name, Unit: "ns", RateMode: eventlog.RatePeriod,
	}}, asked == name, nil
}

func known() []source.Known {
	return []source.Known{{Name: name, Unit: "ns", About: "evaluation that is done twice"}}
}

// duplicated is the source of evaluations that are done twice in all processes of a capture.
type duplicated struct {
	source.Base
	host   *source.Host
	event  *source.Event
	sites  map[*process.Module]site
	images map[uint32]*image // by process incarnation
	failed error             // why there is nothing to measure in the first process
	waits  []*sample         // samples of CPU time, in the order in which they were taken
	newest map[thread]*sample
	time   uint64 // of the last record
}

// site is where a run-time system has its count of collections.
type site struct {
	stats uint64 // module address
	err   error
}

// image is a process image whose evaluations are followed.
type image struct {
	collections uint64
	now         *evaluations // since that many
}

type thread struct{ pid, tid uint32 }

// sample is a sample of CPU time that waits for its weight, and for the next samples of other threads.
type sample struct {
	of      thread
	im      *process.Image
	time    uint64
	written *eventlog.Sample // nil once it was written, and copied
	copied  eventlog.Sample
	look    look
	among   *evaluations // nil if the walker has not recorded what it evaluates
}

func open(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) == 0 {
		return nil
	}
	h.Walker.RecordThunks(int(asked[0].Def.Index), func(event int) bool { return h.CPUTime != nil && event == int(h.CPUTime.Def.Index) })
	return &duplicated{
		host: h, event: asked[0], sites: map[*process.Module]site{}, images: map[uint32]*image{}, newest: map[thread]*sample{},
	}
}

// Receives returns the type of the records of what a thread evaluates.
func (d *duplicated) Receives() []uint8 { return []uint8{bpf.RecordEvaluating} }

// find returns where an image's run-time system counts its collections.
func (d *duplicated) find(im *process.Image) (at uint64, ok bool) {
	if im.RTS == nil {
		return 0, false
	}
	s, looked := d.sites[im.RTS]
	if !looked {
		var symbols *rtsites.Symbols
		if symbols, s.err = im.RTS.RTSSymbols(); s.err == nil {
			s.stats, s.err = rtsites.FindStats(symbols)
		}
		d.sites[im.RTS] = s
		if s.err != nil {
			d.fail(s.err)
		}
	}
	return s.stats + im.BiasOf(im.RTS), s.err == nil
}

func (d *duplicated) fail(err error) {
	if len(d.images) == 0 {
		d.failed = err
		d.event.Def.Granted, d.event.Def.Fallback = "", err.Error()
	}
	d.host.Log.Warn(fmt.Sprintf("event %s is not available: %v; events that are available go on", name, err))
}

// Unavailable is why the first process cannot be measured.
func (d *duplicated) Unavailable() error { return d.failed }

// Prepare adds to the layout where the run-time system counts its collections, which the walker sends with each record.
func (d *duplicated) Prepare(im *process.Image) {
	if at, ok := d.find(im); ok {
		im.Layout.Stats = at
	}
}

// Attach begins to follow an image.
func (d *duplicated) Attach(im *process.Image) error {
	if _, ok := d.find(im); ok && d.images[im.Incarnation] == nil {
		d.images[im.Incarnation] = &image{now: newEvaluations()}
	}
	return nil
}

// Detach forgets an image that has ended. Samples of it that wait are still to be written.
func (d *duplicated) Detach(im *process.Image, _ uint64) error {
	delete(d.images, im.Incarnation)
	return nil
}

// Annotate notes a sample of CPU time.
func (d *duplicated) Annotate(im *process.Image, r *perf.Sample, e *eventlog.Sample) error {
	if d.host.CPUTime == nil || uint32(r.Event) != d.host.CPUTime.Def.Index {
		return nil
	}
	d.time = max(d.time, r.Time)
	if d.images[im.Incarnation] == nil || len(d.waits) >= mostWaiting {
		return nil
	}
	s := &sample{of: thread{r.Pid, r.Tid}, im: im, time: r.Time, written: e}
	d.waits = append(d.waits, s)
	d.newest[s.of] = s
	return nil
}

// mostWaiting bounds the samples that wait: some megabytes.
const mostWaiting = 1 << 15

// Consume takes what the thread of the sample before evaluates.
func (d *duplicated) Consume(r *perf.Sample) error {
	of := thread{r.Pid, r.Tid}
	s := d.newest[of]
	delete(d.newest, of)
	if s == nil || s.time != r.Time {
		return nil
	}
	di := d.images[s.im.Incarnation]
	if di == nil {
		return nil
	}
	if r.Total != di.collections {
		di.collections, di.now = r.Total, newEvaluations()
	}
	l := look{thread: r.Tso, time: r.Time, thunks: make([]thunk, 0, len(r.Frames))}
	for _, word := range r.Frames {
		l.thunks = append(l.thunks, thunk{address: word & bpf.FrameAddressMask, state: bpf.ThunkState(word >> bpf.FrameKindShift)})
	}
	l.thunks = sorted(l.thunks)
	di.now.add(l)
	s.look, s.among = l, di.now
	return nil
}

// Written notes a sample's weight. Samples of clocks get theirs once a second, when all that has happened by then was consumed, and before
// the log may be exchanged for another, in which their stacks are not; so nothing is waited for then.
func (d *duplicated) Written(_ *process.Image, _ uint64, e *eventlog.Sample) error {
	if e.Event != d.host.CPUTime.Def.Index {
		return nil
	}
	at := slices.IndexFunc(d.waits, func(s *sample) bool { return s.written == e })
	if at < 0 {
		return nil
	}
	for _, s := range d.waits[:at] { // they are written in order: those that were not will not be
		if s.written != nil {
			s.written, s.among = nil, nil
		}
	}
	d.waits[at].copied, d.waits[at].written = *e, nil
	if d.host.CPUTime.Def.Unit == "ns" {
		return d.settle(0)
	}
	return nil
}

// patience is for how long a sample that has its weight at once waits for others that are taken after it: two at the lowest rate.
const patience = 10 * time.Millisecond

// settle writes what samples come to that have their weights, and have waited for so long.
func (d *duplicated) settle(patience time.Duration) error {
	n := 0
	for _, s := range d.waits {
		if s.written != nil || s.time+uint64(patience) > d.time {
			break
		}
		n++
		if d.newest[s.of] == s {
			delete(d.newest, s.of)
		}
		if err := d.write(s); err != nil {
			return err
		}
	}
	clear(d.waits[:n])
	d.waits = d.waits[n:]
	return nil
}

// write writes the part of a sample of CPU time that was spent on what had been done before.
func (d *duplicated) write(s *sample) error {
	if s.among == nil {
		return nil
	}
	part := s.among.again(s.look)
	weight := uint64(math.Round(part * float64(s.copied.Weight)))
	if weight == 0 {
		return nil
	}
	e := s.copied
	e.Event, e.Weight = d.event.Def.Index, weight
	return d.host.WriteKnown(s.im, s.time, &e)
}

// Throttle writes what has waited long enough.
func (d *duplicated) Throttle(source.Use) error { return d.settle(patience) }

// Account writes all that has its weight: the log may be exchanged for another then.
func (d *duplicated) Account() error { return errors.Join(d.settle(0), d.host.Lost(d.event)) }
