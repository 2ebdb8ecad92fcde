package alloc

import (
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"ccagent/agent/overhead"
	"ccagent/bpf"
	"ccagent/perf"
)

// probe is one probe in one process: continuously in place, in place for windows, or removed.
type probe struct {
	site   bpf.AllocSite
	attach func() (io.Closer, error)
	link   io.Closer   // while it is continuously in place
	window chan window // while a window is open; receives its result
	past   []placement // the latest last
	// inPlace is for how long the probe has been in place, ns, up to inPlaceAt or the end of
	// the last window.
	inPlace      uint64
	inPlaceAt    uint64
	lastBegin    uint64        // of the last window, ns
	length       time.Duration // planned length of the last window
	maxHits      float64       // limit of hits of a window
	overrun      float64       // average of real by planned length of windows
	hitRate      float64       // hits a second while in place, moving average
	notBefore    uint64        // earliest begin of the next window, ns
	awaitsUnwind bool          // until the walker can unwind the code at the site
	lastCounts   *counting     // last counts while it is continuously in place
}

// window is the result of a window. link is set if the probe is still in place.
type window struct {
	link          io.Closer
	start         bool // the first placement, by start
	open, close   uint64
	before, after counting
	err           error
}

// maxPast bounds the placements that are remembered, for samples that are read
// after the next has begun.
const maxPast = 8

func (p *probe) addPlacement(at placement) {
	if len(p.past) == maxPast {
		p.past = append(p.past[:0], p.past[1:]...)
	}
	p.past = append(p.past, at)
}

// at returns the placement in which a sample was taken. A nil probe counts as continuous: its
// site was not found, so there is nothing to compensate for.
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

// continuous reports whether the probe is in place until further notice.
func (p *probe) continuous() bool { return p != nil && p.link != nil }

// place puts the probe in place continuously.
func (p *probe) place(begin uint64) error {
	l, err := p.attach()
	if err != nil {
		return err
	}
	p.link, p.inPlaceAt, p.lastCounts = l, perf.Monotonic(), nil
	p.addPlacement(placement{begin: begin})
	return nil
}

// start places a probe for the first time. Its hit rate is unknown, so a goroutine polls it for
// closeWatch: the goroutine removes the probe at the given number of hits, or else hands it
// over as continuous.
func (p *probe) start(a *allocation, ai *image, hits float64) error {
	if math.IsInf(hits, 1) {
		return p.place(0)
	}
	l, err := p.attach()
	if err != nil {
		return err
	}
	p.addPlacement(placement{})
	p.window = make(chan window, 1)
	done := p.window
	a.background.Go(func() {
		defer overhead.Hasten()()
		w := window{start: true, open: perf.Monotonic()}
		w.before, w.err = a.count(ai)
		w.after = w.before
		belowLimit := func() bool { return float64(w.after.hits(p.site)) < hits }
		for w.err == nil && belowLimit() && w.after.at < w.open+closeWatch && !a.stopped() {
			// Every poll wakes a CPU, which may be the target's, so the interval grows.
			overhead.Sleep(min(max(time.Duration(w.after.at-w.open)/32, minPoll), maxPoll))
			if w.after.hits(p.site) == 0 {
				w.before = w.after // the hit rate is measured from the first hit on
			}
			w.after, w.err = a.count(ai)
		}
		w.close = perf.Monotonic()
		if w.err == nil && belowLimit() && !a.stopped() {
			w.link = l
		}
		done <- w
		if w.link == nil {
			l.Close()
		}
	})
	return nil
}

// closeWatch is for how long, ns, start polls a probe; minPoll and maxPoll bound the interval.
const (
	closeWatch = 300e6
	minPoll    = 250 * time.Microsecond
	maxPoll    = 8 * time.Millisecond
)

// windowEnded updates the probe after a window; false if the window failed.
func (p *probe) windowEnded(w *window) bool {
	p.window = nil
	if w.err != nil {
		return false // the process has ended, or is about to
	}
	p.inPlace += w.close - w.open
	switch {
	case w.link != nil:
		p.link, p.inPlaceAt, p.lastCounts = w.link, w.close, &w.after
	case w.start:
		p.inPlaceAt = w.close
		p.addPlacement(placement{begin: w.close, factor: 1})
	default:
		p.overrun += (float64(w.close-w.open)/float64(p.length) - p.overrun) / 4
	}
	return true
}

// remove removes a continuous probe. Open windows end by themselves.
func (p *probe) remove(background *sync.WaitGroup) {
	if p.link == nil {
		return
	}
	l := p.link
	p.link = nil
	now := perf.Monotonic()
	p.inPlace += now - p.inPlaceAt
	p.inPlaceAt, p.lastBegin = now, 0
	p.addPlacement(placement{begin: now, factor: 1})
	background.Go(func() { l.Close() }) // fails only for what is gone already
}

// discard waits for an open window's end, and removes the probe if start hands it over.
func (p *probe) discard() {
	if p == nil || p.window == nil {
		return
	}
	if w := <-p.window; w.link != nil {
		w.link.Close()
	}
	p.window = nil
}

// open places the probe of an image for a window.
func (p *probe) open(factor float64, length time.Duration, a *allocation, ai *image) {
	begin := perf.Monotonic()
	p.addPlacement(placement{begin: begin, factor: factor})
	p.lastBegin = begin
	p.window = make(chan window, 1)
	done, most, known := p.window, p.maxHits, p.hitRate > 0
	a.background.Go(func() {
		defer overhead.Hasten()()
		l, err := p.attach()
		if err != nil {
			done <- window{err: err}
			return
		}
		w := window{open: perf.Monotonic()}
		var errs [2]error
		w.before, errs[0] = a.count(ai)
		w.after = w.before
		look := overhead.ShortSleep
		if a.host.OwnLogs {
			look = ownLookAfter(length, known)
		}
		for left := length; left > 0 && errs[1] == nil && !a.stopped(); left -= look {
			overhead.Sleep(min(left, look))
			w.after, errs[1] = a.count(ai)
			if float64(w.after.hits(p.site)-w.before.hits(p.site)) > most {
				break
			}
		}
		w.close = perf.Monotonic()
		w.err = errors.Join(errs[:]...)
		done <- w
		l.Close()
	})
}

// stopped reports whether all windows are to end.
func (a *allocation) stopped() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}

// timeInPlace returns for how long the probe has been in place by now, ns.
func (p *probe) timeInPlace(now uint64) uint64 {
	switch {
	case p == nil:
		return 0
	case p.continuous():
		return p.inPlace + now - min(p.inPlaceAt, now)
	}
	return p.inPlace
}
