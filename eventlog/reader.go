package eventlog

import (
	"encoding/binary"
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

// Reader reads an eventlog, ours or one that an RTS wrote, in the order of its
// bytes: that is the order of time only within one capability's events. It is
// shaped like bufio.Scanner, with malformed bytes as records in the stream.
//
// Its memory does not depend on what the log says. It allocates for strings,
// for slices until they have grown to their largest, and for Malformed records.
type Reader struct {
	in    input
	types typeTable
	block currentBlock
	judge judge
	scan  scan // damage that is being passed over

	only    map[uint16]bool // the types that are decoded; nil for all
	started bool
	err     error
	rec     Record
	c       codec
	unknown Unknown
	pending *Malformed // to be given before the next event
	ended   bool       // the end marker was seen
}

// NewReader makes a Reader. The header is read by the first Next.
func NewReader(r io.Reader) *Reader {
	rd := &Reader{in: input{r: r, buf: make([]byte, firstBuffer)}}
	rd.judge = judge{in: &rd.in, types: &rd.types, block: &rd.block}
	return rd
}

// Only has the Reader decode events of these types alone. Others are Unknown, and what is wrong within
// them is not noticed.
func (r *Reader) Only(ids ...uint16) {
	r.only = make(map[uint16]bool, len(ids))
	for _, id := range ids {
		r.only[id] = true
	}
}

// Without has the Reader decode no events of these types: they are Unknown, as with Only. It is called before the first Next.
func (r *Reader) Without(ids ...uint16) { r.types.without = ids }

// Types gives the header's declarations in their order, once Next was called.
func (r *Reader) Types() []EventType { return r.types.declared }

// Record gives the record that the last Next read.
func (r *Reader) Record() *Record { return &r.rec }

// Err gives the underlying reader's first error other than io.EOF, or a
// *HeaderError where there is no readable header. Damage after the header is
// no error: it is in the stream.
func (r *Reader) Err() error { return r.err }

// Complete reports, once Next has returned false, whether the log had its end
// marker. Without it, the log was cut off or is still being written.
func (r *Reader) Complete() bool { return r.ended }

// Offset is where in the log the next record begins.
func (r *Reader) Offset() int64 { return r.in.offset() }

// SetGrowing sets whether the log is still being written. If so, Next returns false at the
// end of the whole events, or if there is too little to judge bytes that do not fit. It may
// be called again when the underlying reader may have more; io.EOF is then not final. When
// the log has stopped growing, the remaining bytes are judged as the end of a log.
//
// The records are the same as when reading the finished log at once.
func (r *Reader) SetGrowing(growing bool) {
	r.in.growing, r.in.eof = growing, false // what has come since is not read yet
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
	t := r.types.of(id)
	return t != nil && t.kind != nil
}

// Next reads the next record, and reports whether there is one.
func (r *Reader) Next() bool {
	if !r.start() {
		return false
	}
	if r.in.growing {
		r.in.eof = false
	}
	if r.pending == nil {
		r.in.starved = false
		if r.scan.on {
			r.rec.Event = nil
			r.pass()
		} else {
			r.step()
		}
	}
	if m := r.pending; m != nil {
		r.pending = nil
		r.rec = Record{Offset: m.Offset, Time: r.judge.times[0], Cap: NoCap, Event: m}
		return true
	}
	if r.rec.Event == nil {
		r.err = r.in.ioErr
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
	at := r.in.offset()
	if n := r.in.need(2); n < 2 {
		if n > 0 && !r.in.wait() {
			r.resync(1, "event id cut short")
		}
		return
	}
	id := binary.BigEndian.Uint16(r.in.buf[r.in.pos:])
	if r.block.end != 0 && at >= r.block.end {
		r.block.end = 0
		r.block.boundary = at
	}
	t := r.types.of(id)
	isMarker := id == IDBlockMarker && t != nil && t.kind != nil
	switch {
	case at == r.block.boundary && !isMarker && (id != idEnd || r.in.need(3) > 2) && r.mendMarker(at), r.in.starved:
		return
	case id == idEnd:
		r.endMarker()
		return
	case t == nil:
		r.resync(1, fmt.Sprintf("event id %d is not declared", id))
		return
	}
	head := t.headSize()
	r.in.need(head)
	total := t.eventSize(r.in.buf[r.in.pos:r.in.end], &r.in)
	if t.miscount && total != 0 {
		r.in.need(total)
		total = trueSize(r.in.buf[r.in.pos:r.in.end], total, &r.in)
	}
	if total == 0 || r.in.need(total) < total {
		if r.in.wait() {
			return
		}
		r.resync(1, fmt.Sprintf("event %d is cut short by the end of the log", id))
		return
	}
	b := r.in.buf[r.in.pos : r.in.pos+total]
	time := binary.BigEndian.Uint64(b[2:])
	sane := false
	switch {
	case id == 0 && time == 0 && !sound(id, b):
		// A crash of the machine leaves such tails.
		r.resync(1, "zero bytes in place of an event")
	case isMarker:
		sane = r.enterBlock(at)
	case r.block.end != 0 && at+int64(total) > r.block.end:
		r.outgrown(id)
	default:
		sane = r.timely(at, id, total, time)
	}
	if !sane {
		return
	}

	rec := &r.rec
	rec.Offset, rec.Time, rec.Cap = at, time, NoCap
	if r.block.end != 0 {
		rec.Cap = r.block.cap
	}
	// Looking ahead may have moved what is in the buffer.
	rec.Payload = r.in.buf[r.in.pos+head : r.in.pos+total]
	if t.kind == nil || t.without || r.only != nil && !r.only[id] && !isMarker {
		r.unknown = Unknown{ID: id, Desc: t.desc, Payload: rec.Payload}
		r.took(&r.unknown, total)
		return
	}
	c := &r.c
	c.decode(rec.Payload, t.size, t.lenient)
	event := t.into()
	event.layout(c)
	if c.failed != "" || t.size == VariableSize && (c.nul || c.off < len(rec.Payload)) {
		if !r.agreeOnLength(at, id, head, total) {
			return
		}
		rec.Payload = r.in.buf[r.in.pos+head : r.in.pos+total]
	}
	r.took(event, total)
}

// took makes ev the record, and goes on after it.
func (r *Reader) took(ev Event, total int) {
	r.rec.Event = ev
	r.in.pos += total
	if time := r.rec.Time; time != r.judge.times[0] {
		r.judge.times[1], r.judge.times[0] = r.judge.times[0], time
	}
}

// endMarker ends the log, if the log agrees.
func (r *Reader) endMarker() {
	if r.in.need(3) == 2 {
		r.in.pos += 2
		r.ended = true
		return
	}
	r.resync(2, "data after the end marker")
}
