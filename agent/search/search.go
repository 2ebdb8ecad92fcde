package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// name is the event's.
const name = eventlog.SearchEvent

// Kind makes the source of choices, guards and failures.
func Kind() source.Kind { return source.Kind{Grant: grant, New: open, Known: known, Once: true} }

func grant(asked string, _ perf.Rate) (*source.Event, bool, error) {
	return &source.Event{Samples: true, Nests: true, Def: eventlog.EventDef{
		Requested: name, Granted: name, Unit: "values", RateMode: eventlog.RatePeriod,
	}}, asked == name, nil
}

func known() []source.Known {
	return []source.Known{{Name: name, Unit: "values", About: "choices of Curry programs"}}
}

// search is the source of all processes of a capture.
type search struct {
	source.Base
	host    *source.Host
	event   *source.Event
	program *ebpf.Program
	multi   bool
	bucket  *overhead.Bucket
	files   map[*process.Module]*places
	images  map[uint32]*image // by process incarnation
	warned  map[string]bool
	failed  error // why there is nothing to measure in the first process
	duty

	traps           overhead.Tally
	round           uint64
	taken           uint64
	charged, target uint64 // ns
	background      sync.WaitGroup
}

// image is one process image.
type image struct {
	im      *process.Image
	unknown int     // see places
	late    uint32  // see eventlog.SearchWindow
	places  []place // run-time addresses
	sites   map[bpf.ConstructionKey]*site
	probes  []process.Probe
	link    *uprobe.Probes // nil while no probe is in place
	made    uint64         // values in the stretch that is not in the log yet
	sampled uint64         // samples of it
}

// site counts the values that one place in an image has made; where callers are counted apart, those for one caller.
type site struct {
	up   uint64       // of the values made, those for which samples stand
	last *perf.Sample // nil if there was none
}

func open(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) == 0 {
		return nil
	}
	h.Budget.Costs.NeedSteppedTrap()
	return &search{
		host: h, event: asked[0], bucket: h.Budget.Search(), files: map[*process.Module]*places{}, images: map[uint32]*image{},
		warned: map[string]bool{},
	}
}

// Load loads the probes' BPF program.
func (s *search) Load() (err error) {
	s.multi = uprobe.Multi()
	s.program, err = s.host.Walker.ConstructionProgram(int(s.event.Def.Index), s.multi)
	return err
}

// find returns the places in an image's program, nil if there are none.
func (s *search) find(im *process.Image) *places {
	if im.RTS == nil {
		return nil
	}
	if p, known := s.files[im.RTS]; known {
		return p
	}
	f, err := im.RTS.ELF()
	var p *places
	if err == nil {
		p, err = findPlaces(context.Background(), f)
	}
	s.files[im.RTS] = p
	if err != nil {
		s.fail(err)
	}
	return p
}

func (s *search) warn(line string) {
	if !s.warned[line] {
		s.warned[line] = true
		s.host.Log.Warn(line)
	}
}

// fail warns that a process is not measured. A capture whose first process is not has no such event.
func (s *search) fail(err error) {
	if len(s.images) == 0 {
		s.failed = err
		s.event.Def.Granted, s.event.Def.Fallback = "", err.Error()
	}
	s.warn(fmt.Sprintf("event %s is not available: %v; events that are available go on", name, err))
}

// Unavailable is why the first process has nothing to measure.
func (s *search) Unavailable() error { return s.failed }

// Missing is why nothing is counted in a process of the daemon's, which ccagent ps says.
func (s *search) Missing(_ *process.Image, event string) error {
	if event == name && s.host.OwnLogs {
		return errDaemon
	}
	return nil
}

// Attach opens the accounts of an image's places, and puts probes there if they are in place elsewhere.
func (s *search) Attach(im *process.Image) error {
	if s.host.OwnLogs {
		return nil
	}
	p := s.find(im)
	if p == nil || s.images[im.Incarnation] != nil {
		return nil
	}
	bias := im.BiasOf(im.RTS)
	si := &image{im: im, unknown: p.unknown, sites: map[bpf.ConstructionKey]*site{}}
	for i, at := range p.at {
		cookie := bpf.ConstructionCookie(im.Incarnation, uint32(i), at.alone)
		si.places = append(si.places, place{addr: at.addr + bias, info: at.info + bias})
		si.probes = append(si.probes, process.Probe{Addr: at.addr, Cookie: cookie})
		if err := s.host.Walker.OpenConstruction(cookie); err != nil {
			return err
		}
	}
	if s.watching { // what ran before the capture began is not counted in any case
		si.late = 1
		if err := s.put(si); err != nil {
			return s.refused(si, err)
		}
	}
	s.images[im.Incarnation] = si
	return nil
}

// refused warns where the kernel puts no probes into an image's process.
func (s *search) refused(si *image, err error) error {
	if !errors.Is(err, process.ErrEnded) { // others may live longer
		s.fail(err)
	}
	return s.closeSites(si)
}

func (s *search) put(si *image) (err error) {
	si.link, err = si.im.Put(s.program, s.multi, si.probes...)
	return err
}

// remove takes an image's probes out, beside: the kernel may take a tenth of a second.
func (s *search) remove(si *image) {
	if l := si.link; l != nil {
		si.link = nil
		s.background.Go(func() {
			defer overhead.Hasten()()
			l.Close() // fails only for what is gone already
		})
	}
}

// Start puts the probes into the processes that are there.
func (s *search) Start() error {
	for incarnation, si := range s.images {
		if err := s.put(si); err != nil {
			delete(s.images, incarnation)
			if err := s.refused(si, err); err != nil {
				return err
			}
		}
	}
	s.watching, s.countsAt = true, s.host.TargetCPU()
	return s.host.Walker.ControlConstructions(true, s.round, s.draws())
}

// Detach ends what there is of an image that has ended.
func (s *search) Detach(im *process.Image, _ uint64) error {
	si := s.images[im.Incarnation]
	if si == nil {
		return nil
	}
	var err error
	if s.watching {
		err = s.settle(si)
	}
	err = errors.Join(err, s.stretch(), s.tell())
	delete(s.images, im.Incarnation)
	s.remove(si)
	return errors.Join(err, s.closeSites(si))
}

func (s *search) closeSites(si *image) error {
	return s.host.Walker.CloseConstructions(si.im.Incarnation)
}

// Consume takes a value that was sampled when it was made.
func (s *search) Consume(r *perf.Sample) error {
	im, err := s.host.Image(r.Pid)
	if err != nil {
		return err
	}
	si := s.images[im.Incarnation]
	key := bpf.ConstructionKey{Cookie: r.Period, Caller: r.Large}
	if si == nil || int(bpf.PlaceOf(key)) >= len(si.places) {
		return nil
	}
	s.taken++
	at := si.site(key)
	if r.Total <= at.up { // another thread's later one was read before
		return nil
	}
	weight := r.Total - at.up
	at.up = r.Total
	one := *r
	one.Frames = append([]uint64{si.leaf(key)}, r.Frames...)
	one.Total, one.Large, one.Event = 0, 0, uint16(s.event.Def.Index)
	at.last = &one
	si.made += weight
	si.sampled++
	return s.write(si, at, weight)
}

// leaf is the frame of the constructor whose values are counted by a key. Its kind says whether they are counted by caller.
func (si *image) leaf(key bpf.ConstructionKey) uint64 {
	kind := eventlog.FramePC
	if key.Caller != 0 {
		kind = eventlog.FrameReturn
	}
	return uint64(kind)<<bpf.FrameKindShift | si.places[bpf.PlaceOf(key)].info
}

func (si *image) site(key bpf.ConstructionKey) *site {
	at := si.sites[key]
	if at == nil {
		at = &site{}
		si.sites[key] = at
	}
	return at
}

// write writes a sample that stands for so many values.
func (s *search) write(si *image, at *site, weight uint64) error {
	one := *at.last
	one.Period = weight
	_, err := s.host.Write(si.im, &one)
	return err
}

// settle accounts for what each site of an image has made since its last sample: it has the stack of that, or none.
func (s *search) settle(si *image) error {
	counts, err := s.host.Walker.Constructions(si.im.Incarnation)
	if err != nil {
		return err
	}
	for key, made := range counts {
		place := bpf.PlaceOf(key)
		if made == 0 || int(place) >= len(si.places) {
			continue
		}
		at := si.site(key)
		if made <= at.up {
			continue
		}
		weight := made - at.up
		at.up = made
		si.made += weight
		if at.last == nil {
			one := perf.Sample{Frames: []uint64{
				si.leaf(key), uint64(eventlog.FramePC)<<bpf.FrameKindShift | si.places[place].addr,
			}}
			one.Pid, one.Tid, one.Event, one.Time = si.im.PID, si.im.PID, uint16(s.event.Def.Index), perf.Monotonic()
			one.Capability, one.Stop = eventlog.NoCapability, uint8(eventlog.StopMoved)
			at.last = &one
		}
		if err := s.write(si, at, weight); err != nil {
			return err
		}
	}
	return nil
}

// Cost returns what the probes have cost.
func (s *search) Cost() (c source.Cost, err error) {
	if s.program == nil {
		return c, nil
	}
	c.Probes, err = bpf.RunStatsOf(s.program)
	c.ProbeNs = s.traps.Count(c.Probes.Runs, s.host.Budget.Costs.SteppedTrap())
	c.Handled = s.taken
	return c, err
}

// Account writes what was lost and counted.
func (s *search) Account() error { return errors.Join(s.host.Lost(s.event), s.stretch()) }

// Finish writes what is left.
func (s *search) Finish(uint64) error { return errors.Join(s.end(), s.tell()) }

// Report says why there may be no sample.
func (s *search) Report(sum *source.Summary) {
	sum.Events[s.event.Def.Index].WhyNone = "the program made no choice, guard or failure"
}

// Close removes all probes.
func (s *search) Close() error {
	for _, si := range s.images {
		s.remove(si)
	}
	s.background.Wait()
	return nil
}

// inOrder are the images by incarnation, so that logs do not depend on a map's order.
func (s *search) inOrder() []*image {
	out := make([]*image, 0, len(s.images))
	for _, si := range s.images {
		out = append(out, si)
	}
	slices.SortFunc(out, func(a, b *image) int { return int(a.im.Incarnation) - int(b.im.Incarnation) })
	return out
}
