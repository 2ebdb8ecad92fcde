package eventlog

import (
	"encoding/binary"
	"math"
)

// A place is believed to be the beginning of an event if a chain of sound events starts there
// whose times fit the current block or, outside of blocks, the previous events.

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

// currentBlock is the block of events that is being read, and the one before it.
type currentBlock struct {
	boundary int64 // offset where the last block ended, or the header
	at       int64 // offset of the current block's marker
	end      int64 // its end; 0 outside blocks
	cap      int
	times    [2]uint64 // first and last time of the block; [0] > [1] if unknown
}

// judge decides what bytes can be, by those around them and by what was read before. It does
// not move in the input.
type judge struct {
	in    *input
	types *typeTable
	block *currentBlock
	times [2]uint64 // of the last events
	begin int64     // offset of the first event
	spent int64     // places that find has judged; see credit
}

// here is the fit of what follows the last event.
func (j *judge) here() fit {
	first, last := j.block.times[0], j.block.times[1]
	if j.block.end == 0 || first > last {
		return closeFit
	}
	for _, t := range j.times {
		if t >= first && t <= last {
			first = t
			break
		}
	}
	return inside(first, last, j.block.end)
}

// atEndMarker reports whether the end marker is all that is left. The log ends with a block:
// where one would have gone on, the last bytes of a log that was cut only look like the
// marker.
func (j *judge) atEndMarker() bool {
	inside := j.block.end != 0 && j.block.end != math.MaxInt64 && j.block.end > j.in.offset()+2
	return !inside && j.in.end-j.in.pos == 2 && j.in.eof && !j.in.growing && binary.BigEndian.Uint16(j.in.buf[j.in.pos:]) == idEnd
}

// find returns the distance from pos to the nearest place, less than limit away and within
// credit, where closely fitting events begin; -1 if there is none.
func (j *judge) find(limit int) int {
	limit = min(limit, j.credit())
	there := min(limit, j.in.need(limit+lookahead))
	f := j.here()
	for n := range there {
		if j.believable(j.in.pos+n, f, chain) {
			j.spent += int64(n + 1)
			return n
		}
		if j.in.starved {
			return -1
		}
	}
	if there < limit && j.in.wait() {
		return -1
	}
	j.spent += int64(there)
	return -1
}

// credit is the number of places that find may judge. A search that finds nothing near costs
// a window, and a crafted log can cause one at each of its events; credit limits the
// searches of a whole log to a few places a byte. Without credit the nearest place that fits
// at all is taken.
func (j *judge) credit() int {
	return int(min(window, max(0, freeWindows*window+creditPerByte*(j.in.offset()-j.begin)-j.spent)))
}

const (
	freeWindows   = 8
	creditPerByte = 2
)

// goesOn reports whether the log goes on, or ends, well n bytes after pos.
func (j *judge) goesOn(n int) bool {
	if j.in.need(n+lookahead) == n {
		return !j.in.wait() // the end of the log
	}
	return j.believable(j.in.pos+n, j.here(), 0) || !j.in.starved && j.believable(j.in.pos+n, closeFit, 0)
}

// believable reports whether events begin at p that agree with f: chain of
// them, or least where the log ends before, or any before its end marker. The
// caller has asked for lookahead bytes from p.
func (j *judge) believable(p int, f fit, least int) bool {
	for good := 0; good < chain; good++ {
		j.in.work++
		b := j.in.buf[p:j.in.end]
		if len(b) < 2 {
			return j.in.eof && !j.in.wait() && good >= least
		}
		id := binary.BigEndian.Uint16(b)
		if id == idEnd {
			return good+1 >= min(least, 2) && len(b) == 2 && j.in.eof && !j.in.wait()
		}
		t := j.types.of(id)
		if t == nil {
			return false
		}
		total := t.eventSize(b, j.in)
		if total == 0 || total > len(b) {
			return j.in.eof && !j.in.wait() && good >= least
		}
		at, time := j.in.base+int64(p), binary.BigEndian.Uint64(b[2:])
		expected := at == f.end // a marker, by what the last one said
		if at >= f.end {
			f = closeFit // between blocks
		}
		switch {
		case id == IDBlockMarker && t.kind != nil:
			m, shape, near := j.marker(b, at)
			if !shape || !near && !expected {
				return false
			}
			f = m
		case id == 0 && time == 0: // the zeros in another event's payload
			return false
		case !sound(id, b[:total]) || !j.agrees(time, f) || at+int64(total) > f.end:
			return false
		}
		p += total
	}
	return true
}

// marker gives the fit of a block's events, and whether b has the shape of the
// block's marker and a time near those before.
func (j *judge) marker(b []byte, at int64) (f fit, shape, near bool) {
	if len(b) < blockMarkerLen {
		return closeFit, false, false
	}
	first, last := binary.BigEndian.Uint64(b[2:]), binary.BigEndian.Uint64(b[14:])
	size, cap := binary.BigEndian.Uint32(b[10:]), binary.BigEndian.Uint16(b[22:])
	shape = size >= blockMarkerLen && size <= maxBlock && first <= last && (cap < MaxCapabilities || cap == NoCapability)
	near = last-first <= farGap && j.agrees(first, farFit)
	return inside(first, last, at+int64(size)), shape, near
}

// maxBlock is the largest size that a block marker is believed to say.
const maxBlock = 64 << 20

// agrees reports whether an event can have this time.
func (j *judge) agrees(time uint64, f fit) bool {
	if f.hi != 0 {
		return f.lo <= time && time <= f.hi
	}
	for _, t := range j.times {
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
