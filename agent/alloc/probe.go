package alloc

import (
	"errors"
	"io"
	"math"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/bpf"
	"ccagent/perf"
)

// probe is one probe in one process: in place until further notice, or for windows
// of time, or not.
type probe struct {
	site   bpf.AllocSite
	attach func() (io.Closer, error)
	link   io.Closer   // while it is in place until further notice
	window chan window // while a window is open; receives how it went
	past   []placement // the latest last
	// For how long it has been in place, ns, up to inPlaceAt or the last window.
	inPlace   uint64
	inPlaceAt uint64
	lastBegin uint64        // of a window
	length    time.Duration // of the last window, as it was to be
	most      float64       // hits that it may have
	overrun   float64       // how much longer windows turn out
	hitRate   float64       // a second in place
	due       uint64        // no window before that time
	waits     bool          // for what its samples need
	since     *reading      // the last while it is in place until further notice
}

// window is a stretch of time in which a probe was in place. link is set if it still is.
type window struct {
	link          io.Closer
	start         bool // that with which it began
	open, close   uint64
	before, after reading
	err           error
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
	p.link, p.inPlaceAt, p.since = l, perf.Monotonic(), nil
	p.remembers(placement{begin: begin})
	return nil
}

// start places a probe for the first time. Nothing is known of how often it will be hit, so
// it is looked at closely: it is taken out when hits have taken what they may, or handed
// over if they have not.
func (p *probe) start(a *allocation, ai *image, hits float64) error {
	if math.IsInf(hits, 1) {
		return p.place(0)
	}
	l, err := p.attach()
	if err != nil {
		return err
	}
	p.remembers(placement{})
	p.window = make(chan window, 1)
	done := p.window
	a.background.Go(func() {
		defer onTime()()
		w := window{start: true, open: perf.Monotonic()}
		w.before, w.err = a.read(ai)
		w.after = w.before
		few := func() bool { return float64(w.after.account.Hits[p.site]) < hits }
		for w.err == nil && few() && w.after.at < w.open+closely && !a.stopped() {
			// Every look wakes a CPU, which may be the target's: with each, what was seen
			// holds for a little longer.
			a.wait(min(max(time.Duration(w.after.at-w.open)/32, leastLook), mostLook))
			if w.after.account.Hits[p.site] == 0 {
				w.before = w.after // what follows is how often it is hit when it is
			}
			w.after, w.err = a.read(ai)
		}
		w.close = perf.Monotonic()
		if w.err == nil && few() && !a.stopped() {
			w.link = l
		}
		done <- w
		if w.link == nil {
			l.Close()
		}
	})
	return nil
}

// closely is for how long, ns, a probe is looked at closely when it is placed; leastLook
// and mostLook bound the time from look to look.
const (
	closely   = 300e6
	leastLook = 250 * time.Microsecond
	mostLook  = 8 * time.Millisecond
)

// ended takes in a window that has ended, and returns false if it was none.
func (p *probe) ended(w *window) bool {
	p.window = nil
	if w.err != nil {
		return false // the process has ended, or is about to
	}
	p.inPlace += w.close - w.open
	switch {
	case w.link != nil:
		p.link, p.inPlaceAt, p.since = w.link, w.close, &w.after
	case w.start:
		p.inPlaceAt = w.close
		p.remembers(placement{begin: w.close, factor: 1})
	default:
		p.overrun += (float64(w.close-w.open)/float64(p.length) - p.overrun) / 4
	}
	return true
}

// remove takes the probe out. Open windows end by themselves.
func (p *probe) remove(background *sync.WaitGroup) {
	if p.link == nil {
		return
	}
	l := p.link
	p.link = nil
	now := perf.Monotonic()
	p.inPlace += now - p.inPlaceAt
	p.inPlaceAt, p.lastBegin = now, 0
	p.remembers(placement{begin: now, factor: 1})
	background.Go(func() { l.Close() }) // fails only for what is gone already
}

// discard takes the probe out if it was to be handed over, when all windows have ended.
func (p *probe) discard() {
	if p == nil || p.window == nil {
		return
	}
	if w := <-p.window; w.link != nil {
		w.link.Close()
	}
	p.window = nil
}

// open puts the probe of an image in place for a while.
func (p *probe) open(factor float64, length time.Duration, a *allocation, ai *image) {
	begin := perf.Monotonic()
	p.remembers(placement{begin: begin, factor: factor})
	p.lastBegin = begin
	p.window = make(chan window, 1)
	done, most := p.window, p.most
	a.background.Go(func() {
		defer onTime()()
		l, err := p.attach()
		if err != nil {
			done <- window{err: err}
			return
		}
		w := window{open: perf.Monotonic()}
		var errs [2]error
		w.before, errs[0] = a.read(ai)
		w.after = w.before
		for left := length; left > 0 && errs[1] == nil && !a.stopped(); left -= shortWindow {
			a.wait(min(left, shortWindow))
			w.after, errs[1] = a.read(ai)
			if float64(w.after.account.Hits[p.site]-w.before.account.Hits[p.site]) > most {
				break
			}
		}
		w.close = perf.Monotonic()
		w.err = errors.Join(errs[:]...)
		done <- w
		l.Close()
	})
}

// shortWindow is how long the kernel is asked to wait at once: the timers of Go's runtime may
// be a millisecond late.
const shortWindow = 2 * time.Millisecond

// onTime has the calling goroutine's thread run before others, if the kernel lets it: where
// all CPUs are busy a probe would stay in place for many times a window's length, at the
// target's cost. What it returns ends that.
func onTime() func() {
	runtime.LockOSThread()
	const lowest = 1
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: lowest, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	err := unix.SchedSetAttr(0, &first, 0)
	return func() {
		if err == nil {
			usual := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
			if unix.SchedSetAttr(0, &usual, 0) != nil {
				return // the thread ends with the goroutine that is locked to it
			}
		}
		runtime.UnlockOSThread()
	}
}

// stopped tells whether all windows are to end.
func (a *allocation) stopped() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}

// wait waits for so short a time that it is not worth ending when the capture does.
func (a *allocation) wait(length time.Duration) {
	ts := unix.NsecToTimespec(int64(length))
	if length < shortWindow {
		// Go's scheduler is not told: it might give others a turn before this ends.
		unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	} else {
		unix.Nanosleep(&ts, nil)
	}
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
