package eventlog

import "encoding/binary"

// maxGap is the longest time between events, in ns, that is believed of what
// follows damaged bytes.
const maxGap = 24 * 3600 * 1e9

// chain is how many sound events in a row make a place a believable one to
// read on from.
const chain = 3

// resync passes over damaged bytes, at least skip of them, to the next place
// from where reading can go on, and reports what it passed over.
func (r *Reader) resync(skip int, reason string) {
	at := r.offset()
	r.pos += skip
	for r.need(lookahead) > 0 && !r.plausible(r.pos) {
		r.pos++
	}
	if r.blockEnd != 0 && r.offset() >= r.blockEnd {
		r.blockEnd = 0
	}
	r.report(at, r.offset()-at, reason)
}

// plausible reports whether events begin at p: chain of them, or fewer that
// the log's end follows. It asks for lookahead bytes.
func (r *Reader) plausible(p int) bool {
	if n := r.pos; n+lookahead > r.end && !r.eof {
		offset := p - r.pos
		r.need(lookahead)
		p = r.pos + offset
	}
	for good := 0; good < chain; good++ {
		b := r.buf[p:r.end]
		if len(b) == 0 {
			return good > 0
		}
		if len(b) < 2 {
			return false
		}
		id := binary.BigEndian.Uint16(b)
		if id == idEnd {
			return len(b) == 2
		}
		t := r.typeOf(id)
		if t == nil || len(b) < 10 || !r.near(binary.BigEndian.Uint64(b[2:])) {
			return false
		}
		_, total := eventSize(b, t)
		if total == 0 || total > len(b) || !r.sound(id, b[:total]) {
			return false
		}
		p += total
	}
	return true
}

// near reports whether an event can have this time, going by the last ones.
func (r *Reader) near(time uint64) bool {
	for _, t := range r.times {
		if time-t <= maxGap || t-time <= maxGap {
			return true
		}
	}
	return false
}

// sound reports whether a whole event could be what it looks like, for those
// that damaged bytes resemble most easily.
func (r *Reader) sound(id uint16, b []byte) bool {
	switch id {
	case IDCreateThread, IDRunThread, IDThreadRunnable:
		return len(b) < 14 || binary.BigEndian.Uint32(b[10:]) != 0
	case IDBlockMarker:
		if len(b) < blockMarkerLen {
			return false
		}
		time, end := binary.BigEndian.Uint64(b[2:]), binary.BigEndian.Uint64(b[14:])
		return binary.BigEndian.Uint32(b[10:]) >= blockMarkerLen && time <= end && end-time <= maxGap
	}
	return true
}
