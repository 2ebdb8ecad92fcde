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
	n := r.in.need(8)
	if n == 0 {
		return r.in.headerError(ErrEmpty, "")
	}
	b := r.in.buf[r.in.pos : r.in.pos+min(n, 8)]
	const begin = magicHeaderBegin + magicTypesBegin
	if n < 8 && strings.HasPrefix(begin, string(b)) {
		return r.in.headerError(ErrHeaderCut, "")
	}
	// One of the two markers may be damaged.
	if n < 8 || string(b[:4]) != begin[:4] && string(b[4:]) != begin[4:] {
		return r.in.headerError(ErrNotEventlog, fmt.Sprintf("%q expected", begin))
	}
	damaged, skipped := int64(-1), int64(0)
	damage := func(at int64) {
		if damaged < 0 {
			damaged = at
		}
		skipped += r.in.offset() - at
	}
	r.in.pos += 8
	if string(b) != begin {
		damage(0)
	}
	for {
		if r.in.offset() > maxHeader {
			return r.in.headerError(ErrNotEventlog, "header larger than 4 MiB")
		}
		if r.in.magic(magicTypesEnd) {
			break
		}
		at := r.in.offset()
		t, ok := r.in.readType()
		if ok {
			r.types.declare(t)
			continue
		}
		// Find the next declaration, or the header's end.
		// The type's own marker may be what is sound of it.
		if r.in.need(1) > 0 {
			r.in.pos++
		}
		found := false
		for !found {
			if r.in.need(4) < 4 {
				return r.in.headerError(ErrHeaderCut, "event type expected")
			}
			if r.in.offset() > maxHeader {
				return r.in.headerError(ErrNotEventlog, "header larger than 4 MiB")
			}
			switch string(r.in.buf[r.in.pos : r.in.pos+4]) {
			case magicTypeBegin, magicTypesEnd, magicHeaderEnd:
				found = true
			}
			if !found {
				r.in.pos++
			}
		}
		damage(at)
		if string(r.in.buf[r.in.pos:r.in.pos+4]) == magicHeaderEnd {
			break
		}
	}
	for _, magic := range []string{magicHeaderEnd, magicDataBegin} {
		if r.in.need(4) < 4 {
			return r.in.headerError(ErrHeaderCut, fmt.Sprintf("%q expected", magic))
		}
		if !r.in.magic(magic) {
			r.in.pos += 4
			damage(r.in.offset() - 4)
		}
	}
	r.judge.begin = r.in.offset()
	r.block.boundary = r.judge.begin
	if damaged >= 0 {
		for _, t := range Types() {
			if r.types.of(t.ID) == nil {
				r.types.install(t)
			}
		}
		r.report(damaged, skipped, "damaged header")
	}
	return nil
}

func (in *input) headerError(reason error, detail string) error {
	if in.ioErr != nil {
		return fmt.Errorf("read header: %w", in.ioErr)
	}
	return &HeaderError{Offset: in.offset(), Err: reason, Detail: detail}
}

// magic takes a four-byte marker if it is next.
func (in *input) magic(m string) bool {
	if in.need(4) < 4 || string(in.buf[in.pos:in.pos+4]) != m {
		return false
	}
	in.pos += 4
	return true
}

// readType takes one declaration, or nothing if it is damaged.
func (in *input) readType() (EventType, bool) {
	desc, ok := in.counted(8)
	if !ok {
		return EventType{}, false
	}
	extra, ok := in.counted(8 + 4 + desc)
	if !ok {
		return EventType{}, false
	}
	n := 8 + 4 + desc + 4 + extra + 4
	if in.need(n) < n {
		return EventType{}, false
	}
	b := in.buf[in.pos : in.pos+n]
	t := EventType{
		ID:   binary.BigEndian.Uint16(b[4:]),
		Size: binary.BigEndian.Uint16(b[6:]),
	}
	if k := kindOf[t.ID]; k != nil && k.Desc == string(b[12:12+desc]) {
		t.Desc = k.Desc
	} else {
		t.Desc = string(b[12 : 12+desc])
	}
	if extra > 0 {
		t.Extra = bytes.Clone(b[16+desc : 16+desc+extra])
	}
	if string(b[:4]) != magicTypeBegin || string(b[n-4:]) != magicTypeEnd || t.ID == idEnd {
		return EventType{}, false
	}
	in.pos += n
	return t, true
}

// counted gives the u32 at an offset from pos, which counts the bytes after it.
func (in *input) counted(offset int) (int, bool) {
	if in.need(offset+4) < offset+4 {
		return 0, false
	}
	n := binary.BigEndian.Uint32(in.buf[in.pos+offset:])
	return int(n), n <= maxDesc
}
