package agent

import (
	"sync"
	"time"

	"ccagent/bpf"

	"github.com/cilium/ebpf/link"
)

// probe is one probe in one process: in place until further notice, or for windows
// of time, or not.
type probe struct {
	site   bpf.AllocSite
	attach func() (link.Link, error)
	link   link.Link   // while it is in place until further notice
	window chan window // while a window is open; receives how it went
	past   []placement // the latest last
	// For how long it has been in place, ns, up to inPlaceAt or the last window.
	inPlace   uint64
	inPlaceAt uint64
	observed  uint64        // of that, what hitRate knows of
	lastBegin uint64        // of a window
	length    time.Duration // of the last window, as it was to be
	overrun   float64       // how much longer windows turn out
	hits      uint64        // as last read
	hitRate   float64       // a second in place
	due       uint64        // no window before that time
	waits     bool          // for what its samples need
}

// window is a stretch of time in which a probe was in place.
type window struct {
	open, close uint64
	err         error
}

// maxPast bounds the placements that are remembered, for samples that are read
// after the next has begun.
const maxPast = 8

func (p *probe) remembers(at placement) {
	if len(p.past) == maxPast {
		p.past = append(p.past[:0], p.past[1:]...)
	}
	p.past = append(p.past, at)
}

// at gives the placement in which a sample was taken. A nil probe, which is not
// there, is taken for one that is always: there is nothing to be made up for.
func (p *probe) at(time uint64) placement {
	if p == nil || len(p.past) == 0 {
		return placement{}
	}
	for i := len(p.past) - 1; i > 0; i-- {
		if p.past[i].begin <= time {
			return p.past[i]
		}
	}
	return p.past[0]
}

// continuous tells whether the probe is in place until further notice.
func (p *probe) continuous() bool { return p != nil && p.link != nil }

// place puts the probe in place until further notice.
func (p *probe) place(begin uint64) error {
	l, err := p.attach()
	if err != nil {
		return err
	}
	p.link, p.inPlaceAt = l, monotonic()
	p.remembers(placement{begin: begin})
	return nil
}

// remove takes the probe out. Open windows end by themselves.
func (p *probe) remove(background *sync.WaitGroup) {
	if p.link == nil {
		return
	}
	l := p.link
	p.link = nil
	now := monotonic()
	p.inPlace += now - p.inPlaceAt
	p.remembers(placement{begin: now, factor: 1})
	background.Go(func() { l.Close() }) // fails only for what is gone already
}

// open puts the probe in place for a while.
func (p *probe) open(factor float64, length time.Duration, a *allocProbes) {
	begin := monotonic()
	p.remembers(placement{begin: begin, factor: factor})
	p.lastBegin = begin
	p.window = make(chan window, 1)
	done := p.window
	a.background.Go(func() {
		l, err := p.attach()
		if err != nil {
			done <- window{err: err}
			return
		}
		w := window{open: monotonic()}
		select {
		case <-time.After(length):
		case <-a.stop:
		}
		w.close = monotonic()
		done <- w
		l.Close()
	})
}

// timeInPlace is for how long the probe has been in place by now, ns.
func (p *probe) timeInPlace(now uint64) uint64 {
	switch {
	case p == nil:
		return 0
	case p.continuous():
		return p.inPlace + now - min(p.inPlaceAt, now)
	}
	return p.inPlace
}
