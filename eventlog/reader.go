package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Record is one event of a log.
type Record struct {
	Offset int64  // of the event's first byte in the log
	Time   uint64 // ns since the log's begin
	Cap    int    // capability, or NoCap
	// Event is one of this package's event structs. It belongs to the Reader:
	// it and the slices in it are valid until Next. Strings may be kept.
	Event Event
	// Payload is the event's payload as it stands in the log, valid until Next.
	Payload []byte
}

// Malformed is a stretch of a log that is not what it should be. It appears in
// the stream in the place of what could not be read.
type Malformed struct {
	Offset int64 // first byte
	Length int64 // bytes passed over; may be 0 where nothing was lost
	Reason string
}

// EventID is that of the end marker: no event has it.
func (*Malformed) EventID() uint16 { return idEnd }
func (*Malformed) layout(c *codec) { c.fail("malformed events cannot be written") }

func (e *Malformed) Error() string {
	return fmt.Sprintf("%s at offset %d (%d bytes passed over)", e.Reason, e.Offset, e.Length)
}

// readBuffer holds at least what resynchronising looks ahead: three events of
// the largest size.
const readBuffer = 256 << 10

const lookahead = 3 * (12 + maxPayload)

// Reader reads an eventlog, ours or one that an RTS wrote, in the order of its
// bytes: that is the order of time only within one capability's events. It is
// shaped like bufio.Scanner, with malformed bytes as records in the stream.
//
// Its memory does not depend on what the log says. It allocates for strings,
// for slices until they have grown to their largest, and for Malformed records.
type Reader struct {
	r     io.Reader
	buf   []byte
	pos   int   // next byte to take
	end   int   // end of what is in buf
	base  int64 // offset in the log of buf[0]
	eof   bool
	ioErr error

	started bool
	err     error
	types   []readType // by id
	header  []EventType
	rec     Record
	c       codec
	unknown Unknown
	pending *Malformed // to be given before the next event
	ended   bool       // the end marker was seen

	blockAt    int64 // offset of the current block's marker
	blockEnd   int64 // its end; 0 outside blocks
	blockCap   int
	blockTimes [2]uint64 // first and last time of the block; [0] > [1] if unknown
	times      [2]uint64 // of the last events, to judge what comes after damage
}

// readType is what the reader does with an event id.
type readType struct {
	declared bool
	lenient  bool
	size     uint16
	event    Event // to decode into; nil for events that are not known
	desc     string
}

// NewReader makes a Reader. The header is read by the first Next.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, buf: make([]byte, readBuffer)}
}

// Types gives the header's declarations in their order, once Next was called.
func (r *Reader) Types() []EventType { return r.header }

// Record gives the record that the last Next read.
func (r *Reader) Record() *Record { return &r.rec }

// Err gives the underlying reader's first error other than io.EOF, or a
// *HeaderError where there is no readable header. Damage after the header is
// no error: it is in the stream.
func (r *Reader) Err() error { return r.err }

// Complete reports, once Next has returned false, whether the log had its end
// marker. Without it, the log was cut off or is still being written.
func (r *Reader) Complete() bool { return r.ended }

func (r *Reader) declare(t EventType) {
	r.header = append(r.header, t)
	r.install(t)
}

func (r *Reader) install(t EventType) {
	if n := int(t.ID) + 1; n > len(r.types) {
		r.types = append(r.types, make([]readType, n-len(r.types))...)
	}
	rt := readType{declared: true, size: t.Size, desc: t.Desc}
	if k := kindOf[t.ID]; k != nil && k.reads(t) {
		rt.event = k.make()
		rt.lenient = k.own || t.Size != VariableSize
	}
	r.types[t.ID] = rt
}

func (r *Reader) offset() int64 { return r.base + int64(r.pos) }

// need makes n bytes available from pos on, and tells how many are: fewer only
// at the end of the log. n is at most lookahead.
func (r *Reader) need(n int) int {
	if r.end-r.pos >= n {
		return r.end - r.pos
	}
	return r.fill(n)
}

func (r *Reader) fill(n int) int {
	if r.pos+n > len(r.buf) {
		r.base += int64(r.pos)
		r.end = copy(r.buf, r.buf[r.pos:r.end])
		r.pos = 0
	}
	for empty := 0; r.end-r.pos < n && !r.eof; {
		m, err := r.r.Read(r.buf[r.end:])
		r.end += m
		if m == 0 && err == nil {
			if empty++; empty == 100 {
				err = io.ErrNoProgress
			}
		}
		if err != nil {
			r.eof = true
			if !errors.Is(err, io.EOF) {
				r.ioErr = fmt.Errorf("read eventlog: %w", err)
			}
		}
	}
	return r.end - r.pos
}

// Next reads the next record, and reports whether there is one.
func (r *Reader) Next() bool {
	if r.err != nil {
		return false
	}
	if !r.started {
		r.started = true
		if r.err = r.readHeader(); r.err != nil {
			return false
		}
	}
	if r.pending == nil {
		r.step()
	}
	if m := r.pending; m != nil {
		r.pending = nil
		r.rec = Record{Offset: m.Offset, Time: r.times[0], Cap: NoCap, Event: m}
		return true
	}
	if r.rec.Event == nil {
		r.err = r.ioErr
		return false
	}
	return true
}

// report puts a Malformed into the stream.
func (r *Reader) report(offset, length int64, reason string) {
	r.pending = &Malformed{Offset: offset, Length: length, Reason: reason}
}

// step reads one event into r.rec, or leaves a Malformed in r.pending. It
// leaves neither at the end of the log.
func (r *Reader) step() {
	r.rec.Event = nil
	at := r.offset()
	n := r.need(12)
	if n == 0 {
		return
	}
	if n < 2 {
		r.resync(1, "event id cut short")
		return
	}
	b := r.buf[r.pos:r.end]
	id := binary.BigEndian.Uint16(b)
	if id == idEnd {
		r.endMarker()
		return
	}
	t := r.typeOf(id)
	if t == nil {
		r.resync(1, fmt.Sprintf("event id %d is not declared", id))
		return
	}
	head, total := eventSize(b, t)
	if total == 0 || r.need(total) < total {
		r.resync(1, fmt.Sprintf("event %d is cut short by the end of the log", id))
		return
	}
	b = r.buf[r.pos : r.pos+total]
	time := binary.BigEndian.Uint64(b[2:])
	if id == 0 && time == 0 && !r.sound(id, b) {
		// Thread ids start at 1. A crash of the machine leaves such tails.
		r.resync(1, "zero bytes in place of an event")
		return
	}
	if at >= r.blockEnd {
		r.blockEnd = 0
	}
	if id == IDBlockMarker && t.event != nil {
		if !r.enterBlock(at, b, time) {
			return
		}
	} else if r.blockEnd != 0 && !r.inBlock(at, total, time) {
		return
	}

	r.pos += total
	if time != r.times[0] {
		r.times[1], r.times[0] = r.times[0], time
	}
	rec := &r.rec
	rec.Offset, rec.Time, rec.Cap, rec.Payload = at, time, NoCap, b[head:]
	if r.blockEnd != 0 {
		rec.Cap = r.blockCap
	}
	if t.event == nil {
		r.unknown = Unknown{ID: id, Desc: t.desc, Payload: rec.Payload}
		rec.Event = &r.unknown
		return
	}
	r.c.decode(rec.Payload, t.size, t.lenient)
	t.event.layout(&r.c)
	if r.c.failed != "" {
		r.report(at, int64(total), fmt.Sprintf("event %d: %s", id, r.c.failed))
		return
	}
	rec.Event = t.event
}

func (r *Reader) typeOf(id uint16) *readType {
	if int(id) >= len(r.types) || !r.types[id].declared {
		return nil
	}
	return &r.types[id]
}

// eventSize gives where the payload of the event that b begins with begins,
// and the event's whole size; 0 if b is too short to tell.
func eventSize(b []byte, t *readType) (head, total int) {
	if t.size != VariableSize {
		return 10, 10 + int(t.size)
	}
	if len(b) < 12 {
		return 0, 0
	}
	return 12, 12 + int(binary.BigEndian.Uint16(b[10:]))
}

// endMarker ends the log, if the log agrees.
func (r *Reader) endMarker() {
	if r.need(3) == 2 {
		r.pos += 2
		r.ended = true
		return
	}
	r.resync(2, "data after the end marker")
}

// timeSlack is how far out of its block's times an event may lie: the RTS
// stamps some events with a moment it measured earlier.
const timeSlack = 10e9

// inBlock checks the event at offset at against the block it lies in. It
// reports false if one of them is damaged.
func (r *Reader) inBlock(at int64, total int, time uint64) bool {
	if at+int64(total) > r.blockEnd {
		if !r.plausible(r.pos) {
			r.resync(1, "event reaches beyond its block")
			return false
		}
		// The event is sound, so the block's size is not.
		r.report(r.blockAt, 0, "block size does not fit the block's events")
		r.blockEnd = math.MaxInt64
		return false
	}
	if first, last := r.blockTimes[0], r.blockTimes[1]; first <= last &&
		(satAdd(time, timeSlack) < first || time > satAdd(last, timeSlack)) {
		r.pos += total
		r.report(at, int64(total), "event's time is outside its block")
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

// enterBlock takes note of a block marker. It reports false if that or the
// block before it is damaged.
func (r *Reader) enterBlock(at int64, b []byte, time uint64) bool {
	if r.blockEnd != 0 && r.blockEnd != math.MaxInt64 {
		r.blockEnd = 0
		r.report(r.blockAt, 0, "block is larger than what precedes the next block")
		return false
	}
	size, end, cap := binary.BigEndian.Uint32(b[10:]), binary.BigEndian.Uint64(b[14:]), binary.BigEndian.Uint16(b[22:])
	r.blockAt, r.blockEnd, r.blockTimes, r.blockCap = at, at+int64(size), [2]uint64{time, end}, int(cap)
	if cap == NoCapability {
		r.blockCap = NoCap
	}
	if size < blockMarkerLen {
		r.pos += len(b)
		r.blockEnd = math.MaxInt64
		r.report(at, 0, fmt.Sprintf("block of %d bytes is smaller than its marker", size))
		return false
	}
	return true
}
