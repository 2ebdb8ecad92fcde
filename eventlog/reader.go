package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

// Malformed is a range of bytes in a log that could not be read. It is a record in the
// stream.
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

// maxEvent is the largest event's size.
const maxEvent = 12 + maxPayload

// lookahead is the size of the events that resynchronising looks at from one place.
const lookahead = chain * maxEvent

// The buffer grows where resynchronising asks for more than an event. At its largest
// it has room for twice what is asked for, so that a search which goes on byte by byte
// moves each byte to the buffer's beginning about once, not once a step.
const (
	minBuffer = 2 * maxEvent
	maxAsked  = maxEvent + lookahead
	maxBuffer = 2 * maxAsked
)

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

	growing bool  // the log may go on where it ends now
	starved bool  // the next bytes cannot be judged before more of the log arrives
	scan    scan  // damage that is being passed over
	spent   int64 // places that find has judged; see credit
	work    int64 // what judging and buffering have cost: events judged and bytes moved or searched

	started bool
	err     error
	types   []readType // by id
	header  []EventType
	rec     Record
	c       codec
	unknown Unknown
	pending *Malformed // to be given before the next event
	ended   bool       // the end marker was seen

	dataStart  int64 // offset of the first event
	boundary   int64 // offset where the last block ended, or the header
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
	miscount bool // its length may be one more than it has; see trueSize
	size     uint16
	event    Event // to decode into; nil for events that are not known
	desc     string
}

// NewReader makes a Reader. The header is read by the first Next.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, buf: make([]byte, minBuffer)}
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

// Time returns the time of the last event read, also by NextSamples.
func (r *Reader) Time() uint64 { return r.times[0] }

// Offset is where in the log the next record begins.
func (r *Reader) Offset() int64 { return r.offset() }

// SetGrowing sets whether the log is still being written. If so, Next returns false at the
// end of the whole events, or if there is too little to judge bytes that do not fit. It may
// be called again when the underlying reader may have more; io.EOF is then not final. When
// the log has stopped growing, the remaining bytes are judged as the end of a log.
//
// The records are the same as when reading the finished log at once.
func (r *Reader) SetGrowing(growing bool) {
	r.growing, r.eof = growing, false // what has come since is not read yet
}

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
		rt.miscount = t.ID == IDInfoTable
	}
	r.types[t.ID] = rt
}

func (r *Reader) offset() int64 { return r.base + int64(r.pos) }

// need makes n bytes available from pos on and returns how many there are, which is fewer
// only at the end of the log. n is at most maxAsked.
func (r *Reader) need(n int) int {
	if r.end-r.pos >= n {
		return r.end - r.pos
	}
	return r.fill(n)
}

func (r *Reader) fill(n int) int {
	for empty := 0; r.end-r.pos < n && !r.eof; {
		if r.end == len(r.buf) {
			r.makeRoom()
		}
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

// makeRoom moves what is left in the buffer to its beginning, or grows it.
func (r *Reader) makeRoom() {
	buf := r.buf
	if r.pos == 0 {
		buf = make([]byte, min(2*len(buf), maxBuffer))
	}
	r.base += int64(r.pos)
	r.end = copy(buf, r.buf[r.pos:r.end])
	r.work += int64(r.end)
	r.buf, r.pos = buf, 0
}

// start reads the header, if that was not read.
func (r *Reader) start() bool {
	if !r.started {
		r.started = true
		r.err = r.readHeader()
	}
	return r.err == nil
}

// Declares reports whether the log declares events of a type as this package knows it.
// It reads the header, if that was not read.
func (r *Reader) Declares(id uint16) bool {
	if !r.start() {
		return false
	}
	t := r.typeOf(id)
	return t != nil && t.event != nil
}

// Next reads the next record, and reports whether there is one.
func (r *Reader) Next() bool {
	if !r.start() {
		return false
	}
	if r.growing {
		r.eof = false
	}
	if r.pending == nil {
		r.starved = false
		if r.scan.on {
			r.rec.Event = nil
			r.pass()
		} else {
			r.step()
		}
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
	if n := r.need(2); n < 2 {
		if n > 0 && !r.wait() {
			r.resync(1, "event id cut short")
		}
		return
	}
	id := binary.BigEndian.Uint16(r.buf[r.pos:])
	if r.blockEnd != 0 && at >= r.blockEnd {
		r.blockEnd = 0
		r.boundary = at
	}
	t := r.typeOf(id)
	isMarker := id == IDBlockMarker && t != nil && t.event != nil
	switch {
	case at == r.boundary && !isMarker && (id != idEnd || r.need(3) > 2) && r.mendMarker(at), r.starved:
		return
	case id == idEnd:
		r.endMarker()
		return
	case t == nil:
		r.resync(1, fmt.Sprintf("event id %d is not declared", id))
		return
	}
	head := headSize(t)
	r.need(head)
	total := r.eventSize(r.buf[r.pos:r.end], t)
	if t.miscount && total != 0 {
		r.need(total)
		total = r.trueSize(r.buf[r.pos:r.end], total)
	}
	if total == 0 || r.need(total) < total {
		if r.wait() {
			return
		}
		r.resync(1, fmt.Sprintf("event %d is cut short by the end of the log", id))
		return
	}
	b := r.buf[r.pos : r.pos+total]
	time := binary.BigEndian.Uint64(b[2:])
	sane := false
	switch {
	case id == 0 && time == 0 && !sound(id, b):
		// A crash of the machine leaves such tails.
		r.resync(1, "zero bytes in place of an event")
	case isMarker:
		sane = r.enterBlock(at)
	case r.blockEnd != 0 && at+int64(total) > r.blockEnd:
		r.outgrown(id)
	default:
		sane = r.timely(at, id, total, time)
	}
	if !sane {
		return
	}

	rec := &r.rec
	rec.Offset, rec.Time, rec.Cap = at, time, NoCap
	if r.blockEnd != 0 {
		rec.Cap = r.blockCap
	}
	// Looking ahead may have moved what is in the buffer.
	rec.Payload = r.buf[r.pos+head : r.pos+total]
	if t.event == nil {
		r.unknown = Unknown{ID: id, Desc: t.desc, Payload: rec.Payload}
		r.took(&r.unknown, total)
		return
	}
	c := &r.c
	c.decode(rec.Payload, t.size, t.lenient)
	t.event.layout(c)
	if c.failed != "" || t.size == VariableSize && (c.nul || c.off < len(rec.Payload)) {
		if !r.agreeOnLength(at, id, head, total) {
			return
		}
		rec.Payload = r.buf[r.pos+head : r.pos+total]
	}
	r.took(t.event, total)
}

// wait reports whether there may be more of the log than there is now.
func (r *Reader) wait() bool {
	if r.growing && r.ioErr == nil {
		r.starved = true
	}
	return r.starved
}

// took makes ev the record, and goes on after it.
func (r *Reader) took(ev Event, total int) {
	r.rec.Event = ev
	r.pos += total
	if time := r.rec.Time; time != r.times[0] {
		r.times[1], r.times[0] = r.times[0], time
	}
}

func (r *Reader) typeOf(id uint16) *readType {
	if int(id) >= len(r.types) || !r.types[id].declared {
		return nil
	}
	return &r.types[id]
}

// headSize is the size of what precedes an event's payload.
func headSize(t *readType) int {
	if t.size == VariableSize {
		return 12
	}
	return 10
}

// eventSize gives the whole size of the event that b begins with; 0 if b is
// too short to say.
func (r *Reader) eventSize(b []byte, t *readType) int {
	if t.size != VariableSize {
		return 10 + int(t.size)
	}
	if len(b) < 12 {
		return 0
	}
	n := 12 + int(binary.BigEndian.Uint16(b[10:]))
	if t.miscount {
		return r.trueSize(b, n)
	}
	return n
}

// trueSize corrects the size n of the InfoTable event at the beginning of b. GHC since 9.6
// counts a NUL between source file and span that it does not write, so the next event begins
// one byte earlier than the length says.
func (r *Reader) trueSize(b []byte, n int) int {
	at, end := 20, min(n, len(b))
	if n-2 < at || n-2 >= end || b[n-2] != 0 {
		return n // the sixth NUL is not where it would have to be
	}
	for range 6 {
		if at >= end {
			return n
		}
		i := bytes.IndexByte(b[at:end], 0)
		r.work += int64(i)
		if i < 0 {
			return n
		}
		at += i + 1
	}
	if at == n-1 {
		return at
	}
	return n
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
