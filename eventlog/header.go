package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Markers of the header, in the order of their first appearance.
const (
	magicHeaderBegin = "hdrb"
	magicTypesBegin  = "hetb"
	magicTypeBegin   = "etb\x00"
	magicTypeEnd     = "ete\x00"
	magicTypesEnd    = "hete"
	magicHeaderEnd   = "hdre"
	magicDataBegin   = "datb"
)

// appendHeader appends the header that declares types, up to where events begin.
func appendHeader(b []byte, types []EventType) []byte {
	b = append(b, magicHeaderBegin+magicTypesBegin...)
	for _, t := range types {
		b = append(b, magicTypeBegin...)
		b = binary.BigEndian.AppendUint16(b, t.ID)
		b = binary.BigEndian.AppendUint16(b, t.Size)
		b = binary.BigEndian.AppendUint32(b, uint32(len(t.Desc)))
		b = append(b, t.Desc...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(t.Extra)))
		b = append(b, t.Extra...)
		b = append(b, magicTypeEnd...)
	}
	return append(b, magicTypesEnd+magicHeaderEnd+magicDataBegin...)
}

// Budgets for what a header may ask a reader to hold.
const (
	maxHeader = 4 << 20
	maxDesc   = 64 << 10
)

// Reasons why something is not read as an eventlog, wrapped by HeaderError.
var (
	ErrNotEventlog = errors.New("not a GHC eventlog")
	ErrEmpty       = errors.New("the file is empty")
	ErrHeaderCut   = errors.New("the eventlog ends inside its header")
)

// HeaderError is why a header could not be read, and where.
type HeaderError struct {
	Offset int64
	Err    error  // ErrNotEventlog, ErrEmpty or ErrHeaderCut
	Detail string // what was expected there
}

func (e *HeaderError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("read header: %v", e.Err)
	}
	return fmt.Sprintf("read header: %v: %s at offset %d", e.Err, e.Detail, e.Offset)
}

func (e *HeaderError) Unwrap() error { return e.Err }

// readHeader reads up to the first event. A damaged declaration is skipped and reported as
// the stream's first record; types that it might have declared are taken from this package's
// own table.
func (r *Reader) readHeader() error {
	n := r.need(8)
	if n == 0 {
		return r.headerError(ErrEmpty, "")
	}
	b := r.buf[r.pos : r.pos+min(n, 8)]
	const begin = magicHeaderBegin + magicTypesBegin
	if n < 8 && strings.HasPrefix(begin, string(b)) {
		return r.headerError(ErrHeaderCut, "")
	}
	// One of the two markers may be damaged.
	if n < 8 || string(b[:4]) != begin[:4] && string(b[4:]) != begin[4:] {
		return r.headerError(ErrNotEventlog, fmt.Sprintf("%q expected", begin))
	}
	damaged, skipped := int64(-1), int64(0)
	damage := func(at int64) {
		if damaged < 0 {
			damaged = at
		}
		skipped += r.offset() - at
	}
	r.pos += 8
	if string(b) != begin {
		damage(0)
	}
	for {
		if r.offset() > maxHeader {
			return r.headerError(ErrNotEventlog, "header larger than 4 MiB")
		}
		if r.magic(magicTypesEnd) {
			break
		}
		at := r.offset()
		t, ok := r.readType()
		if ok {
			r.declare(t)
			continue
		}
		// Find the next declaration, or the header's end.
		// The type's own marker may be what is sound of it.
		if r.need(1) > 0 {
			r.pos++
		}
		found := false
		for !found {
			if r.need(4) < 4 {
				return r.headerError(ErrHeaderCut, "event type expected")
			}
			if r.offset() > maxHeader {
				return r.headerError(ErrNotEventlog, "header larger than 4 MiB")
			}
			switch string(r.buf[r.pos : r.pos+4]) {
			case magicTypeBegin, magicTypesEnd, magicHeaderEnd:
				found = true
			}
			if !found {
				r.pos++
			}
		}
		damage(at)
		if string(r.buf[r.pos:r.pos+4]) == magicHeaderEnd {
			break
		}
	}
	for _, magic := range []string{magicHeaderEnd, magicDataBegin} {
		if r.need(4) < 4 {
			return r.headerError(ErrHeaderCut, fmt.Sprintf("%q expected", magic))
		}
		if !r.magic(magic) {
			r.pos += 4
			damage(r.offset() - 4)
		}
	}
	r.dataStart = r.offset()
	r.boundary = r.dataStart
	if damaged >= 0 {
		for _, t := range Types() {
			if int(t.ID) >= len(r.types) || !r.types[t.ID].declared {
				r.install(t)
			}
		}
		r.report(damaged, skipped, "damaged header")
	}
	return nil
}

func (r *Reader) headerError(reason error, detail string) error {
	if r.ioErr != nil {
		return fmt.Errorf("read header: %w", r.ioErr)
	}
	return &HeaderError{Offset: r.offset(), Err: reason, Detail: detail}
}

// magic takes a four-byte marker if it is next.
func (r *Reader) magic(m string) bool {
	if r.need(4) < 4 || string(r.buf[r.pos:r.pos+4]) != m {
		return false
	}
	r.pos += 4
	return true
}

// readType takes one declaration, or nothing if it is damaged.
func (r *Reader) readType() (EventType, bool) {
	desc, ok := r.counted(8)
	if !ok {
		return EventType{}, false
	}
	extra, ok := r.counted(8 + 4 + desc)
	if !ok {
		return EventType{}, false
	}
	n := 8 + 4 + desc + 4 + extra + 4
	if r.need(n) < n {
		return EventType{}, false
	}
	b := r.buf[r.pos : r.pos+n]
	t := EventType{
		ID:   binary.BigEndian.Uint16(b[4:]),
		Size: binary.BigEndian.Uint16(b[6:]),
		Desc: string(b[12 : 12+desc]),
	}
	if extra > 0 {
		t.Extra = bytes.Clone(b[16+desc : 16+desc+extra])
	}
	if string(b[:4]) != magicTypeBegin || string(b[n-4:]) != magicTypeEnd || t.ID == idEnd {
		return EventType{}, false
	}
	r.pos += n
	return t, true
}

// counted gives the u32 at an offset from pos, which counts the bytes after it.
func (r *Reader) counted(offset int) (int, bool) {
	if r.need(offset+4) < offset+4 {
		return 0, false
	}
	n := binary.BigEndian.Uint32(r.buf[r.pos+offset:])
	return int(n), n <= maxDesc
}
