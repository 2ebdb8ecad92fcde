package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// NoCap is the capability of events that belong to none.
const NoCap = -1

// MaxCapabilities is the number of capabilities that a log can have. A block marker with a
// higher number is taken for damage. GHC's own limit is 256.
const MaxCapabilities = 4096

// ErrTooLarge is wrapped by Write's error when an event's payload does not fit
// the format's 16-bit length. Nothing of the event was written.
var ErrTooLarge = errors.New("event larger than 65535 bytes")

// ErrBeingWritten is returned by Lock if another process writes the log.
var ErrBeingWritten = errors.New("the log is being written by another process")

// ErrNoRoom is wrapped by the errors of a Writer that has dropped events, because what it held back
// could not be written for long.
var ErrNoRoom = errors.New("events of the log were dropped: there was no room to write them")

// ErrClosed is returned by the methods of a closed Writer.
var ErrClosed = errors.New("eventlog writer is closed")

// errNoThread refuses what a reader may take for damage.
var errNoThread = errors.New("thread 0, which no run-time system has")

// EventError is returned for an event that cannot be written. The Writer continues as if
// Write had not been called.
type EventError struct {
	ID  uint16
	Err error
}

func (e *EventError) Error() string { return fmt.Sprintf("encode event %d: %v", e.ID, e.Err) }
func (e *EventError) Unwrap() error { return e.Err }

// DefaultBuffer is how many bytes a Writer holds back by default.
const DefaultBuffer = 256 << 10

// WriterOptions change a Writer from its defaults.
type WriterOptions struct {
	// Buffer bounds the bytes held back until a flush; 0 means DefaultBuffer.
	Buffer int
	// Hold, if not 0, is how many bytes are held back at most while the underlying writer fails, as
	// that of a full disk does: the next flush tries again.
	Hold int
	// Types is the header to write; nil means Types(). Events of types it does
	// not declare cannot be written.
	Types []EventType
	// Verbatim leaves strings as they are. By default those in GHC's events are
	// made valid UTF-8, because other readers stop at anything else.
	Verbatim bool
}

// Writer streams an eventlog. It is not safe for concurrent use.
//
// Events are collected in one block for each capability, and one for events without a
// capability. The Writer writes whole blocks only: if the writing process is killed, the log
// is valid up to the last flush. A flush writes the block of events without a capability
// first, so what is defined there (stack nodes, modules, …) precedes its uses in other
// blocks.
//
// Times are ns since the log's time 0. Within a block they never decrease: an event that
// is older than its predecessor begins a new block. The format does not require it and
// readers sort by time, but it allows them to merge blocks instead of sorting events.
//
// After the first error from the underlying writer every call returns that
// error. What had been flushed stays whole: where the underlying writer can
// truncate (a file), the block that was cut off by the error is removed. With
// WriterOptions.Hold flushes alone return the error, and nothing is lost if a later one succeeds;
// when too much is held, events are dropped, and from then on all of them.
type Writer struct {
	w      io.Writer
	types  []declaration // by id
	c      codec
	blocks []*block // in use, ascending by cap; blocks[0] is NoCap's
	last   *block   // the one written to last
	header []byte   // not yet flushed
	held   int      // bytes held back
	buffer int
	hold   int
	size   int64 // bytes written
	err    error
	// stalled is why the last flush failed, where the next one tries again.
	stalled error
}

// declaration is what the header says of an event id.
type declaration struct {
	size    uint16
	present bool
	other   bool // not as this package knows the event: it goes in raw only
}

// block is the events of one capability that are held back. Its bytes may hold
// several blocks of the format; the last one is open.
type block struct {
	cap    int
	buf    []byte
	events uint64 // in buf
	marker int    // offset of the open block's marker
	first  uint64 // time of the open block's first event
	time   uint64 // of the last event
}

// NewWriter makes a Writer. The header leaves with the first flush. opts may be
// nil.
func NewWriter(w io.Writer, opts *WriterOptions) *Writer {
	if opts == nil {
		opts = &WriterOptions{}
	}
	types := opts.Types
	if types == nil {
		types = Types()
	}
	types = withMarker(types)
	wr := &Writer{w: w, buffer: opts.Buffer, hold: opts.Hold}
	if wr.buffer <= 0 {
		wr.buffer = DefaultBuffer
	}
	wr.c.encoding, wr.c.sanitise = true, !opts.Verbatim
	wr.declare(types)
	wr.header = appendHeader(nil, types)
	wr.held = len(wr.header)
	return wr
}

// withMarker replaces the declaration of block markers by the one that is written, because a
// header that was read may declare another size.
func withMarker(types []EventType) []EventType {
	own := kindOf[IDBlockMarker].EventType
	i := slices.IndexFunc(types, func(t EventType) bool { return t.ID == IDBlockMarker })
	switch {
	case i < 0:
		return append(slices.Clip(types), own)
	case types[i].Size == own.Size:
		return types
	}
	types = slices.Clone(types)
	types[i].Size = own.Size
	return types
}

func (w *Writer) declare(types []EventType) {
	for _, t := range types {
		if n := int(t.ID) + 1; n > len(w.types) {
			w.types = append(w.types, make([]declaration, n-len(w.types))...)
		}
		k := kindOf[t.ID]
		w.types[t.ID] = declaration{size: t.Size, present: true, other: k != nil && !k.reads(t)}
	}
	w.blocks = []*block{{cap: NoCap}}
	w.last = w.blocks[0]
}

// Write adds an event with a time in ns and a capability, from 0 to below MaxCapabilities, or
// NoCap. It keeps no reference to the event. The error is an *EventError if the event cannot
// be encoded, or would be taken for damage; else the underlying writer's.
func (w *Writer) Write(timeNs uint64, cap int, ev Event) error {
	if w.err != nil {
		return w.err
	}
	id := ev.EventID()
	b, size, err := w.open(timeNs, cap, id)
	if err != nil {
		return err
	}
	if w.types[id].other {
		if _, raw := ev.(*Unknown); !raw {
			return &EventError{ID: id, Err: errors.New("declared otherwise in the log's header")}
		}
	}
	start := len(b.buf)
	c := &w.c
	c.buf, c.failed, c.size = appendEventHead(b.buf, id, timeNs, size), "", size
	head := len(c.buf)
	ev.layout(c)
	if err := w.fit(head, size); err != nil {
		b.buf = b.buf[:start]
		return &EventError{ID: id, Err: err}
	}
	return w.wrote(b, start, timeNs)
}

// WriteRaw adds an event by its id and encoded payload, as a Record holds them.
// The id must be declared, and the payload of the declared size.
func (w *Writer) WriteRaw(timeNs uint64, cap int, id uint16, payload []byte) error {
	if w.err != nil {
		return w.err
	}
	b, size, err := w.open(timeNs, cap, id)
	if err != nil {
		return err
	}
	switch {
	case size == VariableSize && len(payload) > maxPayload:
		return &EventError{ID: id, Err: ErrTooLarge}
	case size != VariableSize && len(payload) != int(size):
		return &EventError{ID: id, Err: fmt.Errorf("payload of %d bytes where the header declares %d", len(payload), size)}
	}
	start := len(b.buf)
	w.c.buf = append(appendEventHead(b.buf, id, timeNs, size), payload...)
	if size == VariableSize {
		binary.BigEndian.PutUint16(w.c.buf[len(w.c.buf)-len(payload)-2:], uint16(len(payload)))
	}
	return w.wrote(b, start, timeNs)
}

// appendEventHead appends what precedes an event's payload, its length as 0.
func appendEventHead(buf []byte, id uint16, timeNs uint64, size uint16) []byte {
	buf = binary.BigEndian.AppendUint16(buf, id)
	buf = binary.BigEndian.AppendUint64(buf, timeNs)
	if size == VariableSize {
		buf = append(buf, 0, 0)
	}
	return buf
}

// open finds the block that an event goes to.
func (w *Writer) open(timeNs uint64, cap int, id uint16) (*block, uint16, error) {
	var d declaration
	if int(id) < len(w.types) {
		d = w.types[id]
	}
	switch {
	case !d.present || id == idEnd:
		return nil, 0, &EventError{ID: id, Err: errors.New("not declared in the log's header")}
	case id == IDBlockMarker:
		return nil, 0, &EventError{ID: id, Err: errors.New("block markers are the writer's own")}
	case cap < NoCap || cap >= MaxCapabilities:
		return nil, 0, &EventError{ID: id, Err: fmt.Errorf("capability %d out of range", cap)}
	}
	b := w.last
	if b.cap != cap {
		b = w.blockOf(cap)
		w.last = b
	}
	return b, d.size, nil
}

func (w *Writer) blockOf(cap int) *block {
	i, found := slices.BinarySearchFunc(w.blocks, cap, func(b *block, cap int) int { return b.cap - cap })
	if !found {
		w.blocks = slices.Insert(w.blocks, i, &block{cap: cap})
	}
	return w.blocks[i]
}

// fit checks the payload that was encoded from head on and makes it agree with
// its declaration: the length for a variable size, else cut or padded as the
// header of an older or newer GHC asks.
func (w *Writer) fit(head int, size uint16) error {
	c := &w.c
	n := len(c.buf) - head
	switch {
	case c.failed != "":
		return errors.New(c.failed)
	case size != VariableSize && n > int(size):
		c.buf = c.buf[:head+int(size)]
	case size != VariableSize:
		c.buf = append(c.buf, make([]byte, int(size)-n)...)
	case n > maxPayload:
		return ErrTooLarge
	default:
		binary.BigEndian.PutUint16(c.buf[head-2:], uint16(n))
	}
	return nil
}

// wrote takes the event that w.c.buf holds from start on into b.
func (w *Writer) wrote(b *block, start int, timeNs uint64) error {
	buf := w.c.buf
	w.c.buf = nil
	if id := binary.BigEndian.Uint16(buf[start:]); !sound(id, buf[start:]) {
		return &EventError{ID: id, Err: errNoThread}
	}
	if start == 0 || timeNs < b.time || timeNs-b.first > farGap {
		// The event is first in its block, whose times lie as near to each other as a
		// reader expects: make room for the marker.
		b.buf = buf[:start]
		b.close()
		b.marker, b.first = start, timeNs
		buf = slices.Insert(buf, start, make([]byte, blockMarkerLen)...)
		binary.BigEndian.PutUint16(buf[start:], IDBlockMarker)
		binary.BigEndian.PutUint64(buf[start+2:], timeNs)
		binary.BigEndian.PutUint16(buf[start+22:], uint16(b.cap))
	}
	w.held += len(buf) - start
	b.buf, b.time = buf, timeNs
	b.events++
	switch {
	case w.stalled != nil && w.held >= w.hold:
		w.err = fmt.Errorf("%w: %w", ErrNoRoom, w.stalled)
	case w.held < w.buffer:
	case w.stalled == nil:
		if err := w.Flush(); w.stalled == nil {
			return err
		}
	}
	return nil
}

// Stalled is why what is held back could not be written last, nil if it could or if nothing more
// will be.
func (w *Writer) Stalled() error { return w.stalled }

// Held is how many bytes are held back.
func (w *Writer) Held() int { return w.held }

// HoldAtMost changes WriterOptions.Hold.
func (w *Writer) HoldAtMost(n int) { w.hold = n }

// Resume has a Writer that has dropped events take others again, once it has written what it held back. They may not refer
// to what was dropped.
func (w *Writer) Resume() error {
	if err := w.Flush(); err != nil && (w.stalled != nil || !errors.Is(err, ErrNoRoom)) {
		return err
	}
	if errors.Is(w.err, ErrNoRoom) {
		w.err = nil
	}
	return nil
}

// Drop forgets what is held back, and returns how many events that were. What follows may not refer to them.
func (w *Writer) Drop() (events uint64) {
	for _, b := range w.blocks {
		w.held -= len(b.buf)
		events += b.events
		b.buf, b.events = b.buf[:0], 0
	}
	return events
}

// close fills in the open block's size and end time.
func (b *block) close() {
	if len(b.buf) == 0 {
		return
	}
	m := b.buf[b.marker:]
	binary.BigEndian.PutUint32(m[10:], uint32(len(m)))
	binary.BigEndian.PutUint64(m[14:], b.time)
}

// Flush writes everything that is held back to the underlying writer.
func (w *Writer) Flush() error {
	if w.err != nil && !errors.Is(w.err, ErrNoRoom) {
		return w.err
	}
	w.stalled = nil
	if err := w.put(w.header); err != nil {
		return err
	}
	w.held -= len(w.header)
	w.header = nil
	idle := 0
	for _, b := range w.blocks {
		if len(b.buf) == 0 {
			idle++
			continue
		}
		b.close()
		if err := w.put(b.buf); err != nil {
			return err
		}
		w.held -= len(b.buf)
		b.buf, b.events = b.buf[:0], 0
	}
	if idle > 64 {
		// Buffers of capabilities that have gone quiet.
		w.blocks = w.blocks[:1]
		w.last = w.blocks[0]
	}
	return w.err
}

// put writes whole blocks.
func (w *Writer) put(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := w.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = fmt.Errorf("write eventlog: %w", err)
		cut := error(nil)
		if n > 0 {
			cut = cutBack(w.w, int64(n))
			err = errors.Join(err, cut)
		}
		if w.hold > 0 && cut == nil {
			w.stalled = err
		} else {
			w.err = err
		}
		return err
	}
	w.size += int64(n)
	return nil
}

// cutBack removes the last n bytes written to w if it is something that can be
// truncated.
func cutBack(w io.Writer, n int64) error {
	f, ok := w.(interface {
		io.Seeker
		Truncate(int64) error
	})
	if !ok {
		return nil
	}
	end, err := f.Seek(-n, io.SeekCurrent)
	if err != nil {
		return nil // a pipe: readers skip the unfinished block
	}
	if err := f.Truncate(end); err != nil {
		return fmt.Errorf("remove the unfinished block: %w", err)
	}
	return nil
}

// Close flushes and writes the end marker. It does not close the underlying
// writer. A log whose writing failed gets no end marker.
func (w *Writer) Close() error {
	if err := w.Flush(); err != nil {
		return err
	}
	if err := w.put([]byte{0xff, 0xff}); err != nil {
		return err
	}
	w.err = ErrClosed
	return nil
}

// Size is the number of bytes handed to the underlying writer so far.
func (w *Writer) Size() int64 { return w.size }
