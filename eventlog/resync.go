package eventlog

import (
	"encoding/binary"
	"math"
)

// Resynchronising after damage. A place is believed to be the beginning of an event if a
// chain of sound events starts there whose times fit the current block or, outside of
// blocks, the previous events.

const (
	// chain is how many sound events in a row make a place believable.
	chain = 4
	// window is how far to look for events that fit closely before taking any.
	window = maxEvent

	closeBack  = 10e6 // ns; what the RTS stamps late is not much older
	closeAhead = 1e9
	farGap     = 24 * 3600 * 1e9
)

// fit is the range of times and offsets that events at a place must agree with.
type fit struct {
	lo, hi      uint64 // times; if hi is 0, back and ahead are used instead
	back, ahead uint64 // distances from the time of one of the last two events
	end         int64  // of the block
}

var (
	closeFit = fit{back: closeBack, ahead: closeAhead, end: math.MaxInt64}
	farFit   = fit{back: farGap, ahead: farGap, end: math.MaxInt64}
)

// inside is the fit of a block of events from one time to another.
func inside(first, last uint64, end int64) fit {
	return fit{lo: first - min(first, closeBack), hi: satAdd(last, closeBack), end: end}
}

// here is the fit of what follows the last event.
func (r *Reader) here() fit {
	first, last := r.blockTimes[0], r.blockTimes[1]
	if r.blockEnd == 0 || first > last {
		return closeFit
	}
	for _, t := range r.times {
		if t >= first && t <= last {
			first = t
			break
		}
	}
	return inside(first, last, r.blockEnd)
}

// scan is the state of skipping damaged bytes.
type scan struct {
	on     bool
	far    bool // no events that fit closely are near
	from   int64
	reason string
}

// resync skips damaged bytes, at least skip of them, up to the next place where reading can
// continue, and reports them.
func (r *Reader) resync(skip int, reason string) {
	r.scan = scan{on: true, from: r.offset(), reason: reason}
	r.pos += skip
	r.pass()
}

// pass skips to the end of the damage, or to the end of what has arrived of the log.
func (r *Reader) pass() {
	s := &r.scan
	if !s.far {
		n := r.find(window)
		if r.starved {
			return
		}
		if n >= 0 {
			r.pos += n
		} else {
			s.far = true
		}
	}
	if s.far {
		for r.need(window+lookahead) > 0 && !r.believable(r.pos, farFit, chain) && !r.atEndMarker() {
			if r.starved {
				return
			}
			r.pos++
		}
		if r.end == r.pos && r.wait() {
			return
		}
	}
	s.on = false
	r.report(s.from, r.offset()-s.from, s.reason)
}

// atEndMarker reports whether the end marker is all that is left. The log ends with a block:
// where one would have gone on, the last bytes of a log that was cut only look like the
// marker.
func (r *Reader) atEndMarker() bool {
	inside := r.blockEnd != 0 && r.blockEnd != math.MaxInt64 && r.blockEnd > r.offset()+2
	return !inside && r.end-r.pos == 2 && r.eof && !r.growing && binary.BigEndian.Uint16(r.buf[r.pos:]) == idEnd
}

// find returns the distance from pos to the nearest place, less than limit away and within
// credit, where closely fitting events begin; -1 if there is none.
func (r *Reader) find(limit int) int {
	limit = min(limit, r.credit())
	there := min(limit, r.need(limit+lookahead))
	f := r.here()
	for n := range there {
		if r.believable(r.pos+n, f, chain) {
			r.spent += int64(n + 1)
			return n
		}
		if r.starved {
			return -1
		}
	}
	if there < limit && r.wait() {
		return -1
	}
	r.spent += int64(there)
	return -1
}

// credit is the number of places that find may judge. A search that finds nothing near costs
// a window, and a crafted log can cause one at each of its events; credit limits the
// searches of a whole log to a few places a byte. Without credit the nearest place that fits
// at all is taken.
func (r *Reader) credit() int {
	return int(min(window, max(0, freeWindows*window+creditPerByte*(r.offset()-r.dataStart)-r.spent)))
}

const (
	freeWindows   = 8
	creditPerByte = 2
)

// goesOn reports whether the log goes on, or ends, well n bytes after pos.
func (r *Reader) goesOn(n int) bool {
	if r.need(n+lookahead) == n {
		return !r.wait() // the end of the log
	}
	return r.believable(r.pos+n, r.here(), 0) || !r.starved && r.believable(r.pos+n, closeFit, 0)
}

// believable reports whether events begin at p that agree with f: chain of
// them, or least where the log ends before, or any before its end marker. The
// caller has asked for lookahead bytes from p.
func (r *Reader) believable(p int, f fit, least int) bool {
	for good := 0; good < chain; good++ {
		r.work++
		b := r.buf[p:r.end]
		if len(b) < 2 {
			return r.eof && !r.wait() && good >= least
		}
		id := binary.BigEndian.Uint16(b)
		if id == idEnd {
			return good+1 >= min(least, 2) && len(b) == 2 && r.eof && !r.wait()
		}
		t := r.typeOf(id)
		if t == nil {
			return false
		}
		total := r.eventSize(b, t)
		if total == 0 || total > len(b) {
			return r.eof && !r.wait() && good >= least
		}
		at, time := r.base+int64(p), binary.BigEndian.Uint64(b[2:])
		expected := at == f.end // a marker, by what the last one said
		if at >= f.end {
			f = closeFit // between blocks
		}
		switch {
		case id == IDBlockMarker && t.event != nil:
			m, shape, near := r.marker(b, at)
			if !shape || !near && !expected {
				return false
			}
			f = m
		case id == 0 && time == 0: // the zeros in another event's payload
			return false
		case !sound(id, b[:total]) || !r.agrees(time, f) || at+int64(total) > f.end:
			return false
		}
		p += total
	}
	return true
}

// marker gives the fit of a block's events, and whether b has the shape of the
// block's marker and a time near those before.
func (r *Reader) marker(b []byte, at int64) (f fit, shape, near bool) {
	if len(b) < blockMarkerLen {
		return closeFit, false, false
	}
	first, last := binary.BigEndian.Uint64(b[2:]), binary.BigEndian.Uint64(b[14:])
	size, cap := binary.BigEndian.Uint32(b[10:]), binary.BigEndian.Uint16(b[22:])
	shape = size >= blockMarkerLen && size <= maxBlock && first <= last && (cap < MaxCapabilities || cap == NoCapability)
	near = last-first <= farGap && r.agrees(first, farFit)
	return inside(first, last, at+int64(size)), shape, near
}

// maxBlock is the largest size that a block marker is believed to say.
const maxBlock = 64 << 20

// agrees reports whether an event can have this time.
func (r *Reader) agrees(time uint64, f fit) bool {
	if f.hi != 0 {
		return f.lo <= time && time <= f.hi
	}
	for _, t := range r.times {
		if time >= t && time-t <= f.ahead || time < t && t-time <= f.back {
			return true
		}
	}
	return false
}

// sound reports whether a whole event could be what it looks like, for those
// that damaged bytes resemble most easily: thread ids start at 1.
func sound(id uint16, b []byte) bool {
	switch id {
	case IDCreateThread, IDRunThread, IDThreadRunnable:
		return len(b) < 14 || binary.BigEndian.Uint32(b[10:]) != 0
	}
	return true
}
