package eventlog

import (
	"encoding/binary"
	"fmt"
	"math"
)

// This file decides about an event, a block or an end marker that does not fit its
// surroundings. If two of them disagree, the bytes after them decide which is damaged.

// agreeOnLength judges a variable-size event whose payload is not what its
// length says: too short, with bytes left over, or text with a NUL in it. It
// reports true if the event is to be taken as it is.
func (r *Reader) agreeOnLength(at int64, id uint16, head, total int) bool {
	c := &r.c
	switch {
	case c.failed != "":
		if r.judge.goesOn(total) {
			r.in.pos += total
			r.report(at, int64(total), fmt.Sprintf("event %d: %s", id, c.failed))
		} else if !r.in.starved {
			r.resync(1, fmt.Sprintf("event %d: %s", id, c.failed))
		}
		return false
	case c.nul:
		// No writer puts NUL into these texts, but the head of an event that a
		// damaged length has made part of the text begins with some.
		r.in.need(total + lookahead)
		f := r.judge.here()
		for n := head; n < total; n++ {
			if r.judge.believable(r.in.pos+n, f, 1) {
				r.in.pos += n
				r.report(at, int64(n), fmt.Sprintf("event %d: its length takes in the events after it", id))
				return false
			}
			if r.in.starved {
				return false
			}
		}
		return true
	default:
		// Fields of a later version do not look like events with times near this one.
		end := head + c.off
		r.in.need(total + lookahead)
		if r.judge.believable(r.in.pos+end, r.judge.here(), 1) {
			r.in.pos += end
			r.report(at, int64(end), fmt.Sprintf("event %d: its length takes in the events after it", id))
			return false
		}
		if r.in.starved || r.judge.goesOn(total) {
			return !r.in.starved // a later version of the event
		}
		if !r.in.starved {
			r.resync(1, fmt.Sprintf("event %d is longer than what it holds", id))
		}
		return false
	}
}

// outgrown handles an event that reaches beyond its block.
func (r *Reader) outgrown(id uint16) {
	r.in.need(lookahead)
	f := r.judge.here()
	f.end = math.MaxInt64
	if !r.judge.believable(r.in.pos, f, 1) {
		if !r.in.starved {
			r.resync(1, fmt.Sprintf("event %d reaches beyond its block", id))
		}
		return
	}
	// The event is sound, so the block's size is not.
	r.report(r.block.at, 0, "block's size does not fit its events")
	r.block.end = math.MaxInt64
}

// timeSlack is how far out of its block's times an event may lie: the RTS
// stamps some events with a moment it measured earlier.
const timeSlack = 10e9

// timely checks an event's time. An event whose time does not fit the block, or the previous
// events outside of blocks, is accepted only if events that fit it follow. It returns false
// if the event is damaged, or there is no event.
func (r *Reader) timely(at int64, id uint16, total int, time uint64) bool {
	f := r.judge.here()
	if r.judge.agrees(time, f) {
		return true
	}
	first, last := r.block.times[0], r.block.times[1]
	known := r.block.end != 0 && first <= last
	if r.judge.goesOn(total) {
		if !known || satAdd(time, timeSlack) >= first && time <= satAdd(last, timeSlack) {
			return true
		}
		r.in.pos += total
		r.report(at, int64(total), fmt.Sprintf("event %d has a time outside its block", id))
		return false
	}
	if r.in.starved {
		return false
	}
	// The nearest place may be one that the event before has misled us past.
	misled := r.judge.find(256) >= 0 || !r.in.starved && !r.judge.believable(r.in.pos, fit{lo: time - min(time, closeBack), hi: satAdd(time, farGap), end: f.end}, 1)
	if r.in.starved {
		return false
	}
	if misled {
		r.resync(1, fmt.Sprintf("event %d has a time that no event can have here", id))
		return false
	}
	// The events agree with each other: either time has jumped, or the block's times are
	// damaged.
	if known {
		r.report(r.block.at, 0, "block's times do not fit its events")
		r.block.times = unknownTimes
		return false
	}
	return true
}

func satAdd(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// unknownTimes are those of a block whose marker is damaged.
var unknownTimes = [2]uint64{1, 0}

// enterBlock takes note of the block marker at pos. It reports false if that or the
// block before it is damaged.
func (r *Reader) enterBlock(at int64) bool {
	if r.block.end != 0 && r.block.end != math.MaxInt64 {
		r.block.end = 0
		r.report(r.block.at, 0, "block is larger than what precedes the next block")
		return false
	}
	f, shape, near := r.judge.marker(r.in.buf[r.in.pos:r.in.end], at)
	// After the end of a block a marker is expected, even where time leaps.
	if !(shape && (near || at == r.block.boundary)) && !r.judge.goesOn(blockMarkerLen) && (r.in.starved || !r.judge.believable(r.in.pos+blockMarkerLen, f, 1)) {
		if !r.in.starved {
			r.resync(1, "block marker that none can be here")
		}
		return false
	}
	b := r.in.buf[r.in.pos:]
	time, size := binary.BigEndian.Uint64(b[2:]), binary.BigEndian.Uint32(b[10:])
	end, cap := binary.BigEndian.Uint64(b[14:]), binary.BigEndian.Uint16(b[22:])
	r.block.at, r.block.end, r.block.times, r.block.cap = at, at+int64(size), [2]uint64{time, end}, int(cap)
	if cap == NoCapability {
		r.block.cap = NoCap
	}
	switch {
	case size < blockMarkerLen || size > maxBlock:
		r.block.end = math.MaxInt64
	case cap >= MaxCapabilities && cap != NoCapability:
		r.block.cap = NoCap
	default:
		return true
	}
	r.in.pos += blockMarkerLen
	r.report(at, blockMarkerLen, fmt.Sprintf("block marker with size %d and capability %d", size, cap))
	return false
}

// mendMarker accepts a block marker whose id or declaration is damaged: after the end of a
// block, bytes that are a marker apart from that, followed by events that agree with it.
func (r *Reader) mendMarker(at int64) bool {
	if at != r.block.boundary {
		return false
	}
	if r.in.need(blockMarkerLen+lookahead) < blockMarkerLen {
		r.in.wait()
		return false
	}
	b := r.in.buf[r.in.pos:r.in.end]
	f, shape, near := r.judge.marker(b, at)
	if !shape || !near || !r.judge.believable(r.in.pos+blockMarkerLen, f, 1) {
		return false
	}
	r.block.end = 0
	r.enterBlock(at)
	r.in.pos += blockMarkerLen
	r.report(at, blockMarkerLen, "damaged block marker")
	return true
}
