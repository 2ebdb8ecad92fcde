package eventlog

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// typeTable has the types of events that a log's header declares.
type typeTable struct {
	declared []EventType // in the order of the header
	byID     []readType
	without  []uint16 // types that are not decoded
}

// readType is what the reader does with an event id.
type readType struct {
	declared bool
	without  bool // it is not decoded
	lenient  bool
	miscount bool // its length may be one more than it has; see trueSize
	size     uint16
	kind     *kind // nil for events that are not known
	event    Event // to decode into; nil before the first of its type
	desc     string
}

// into returns the event that those of this type are decoded into, and makes it when the first is met: a log declares some two hundred
// types and has events of few, and many small logs are read.
func (t *readType) into() Event {
	if t.event == nil {
		t.event = t.kind.make()
	}
	return t.event
}

// declare adds a declaration of the header.
func (t *typeTable) declare(ev EventType) {
	if t.declared == nil {
		t.declared = make([]EventType, 0, len(kinds))
	}
	t.declared = append(t.declared, ev)
	t.install(ev)
}

// install prepares for reading events of a type.
func (t *typeTable) install(ev EventType) {
	if n := int(ev.ID) + 1; n > len(t.byID) {
		t.byID = append(t.byID, make([]readType, max(n, int(kinds[len(kinds)-1].ID)+1)-len(t.byID))...)
	}
	rt := readType{declared: true, without: slices.Contains(t.without, ev.ID), size: ev.Size, desc: ev.Desc}
	if k := kindOf[ev.ID]; k != nil && k.reads(ev) {
		rt.kind = k
		rt.lenient = k.own || ev.Size != VariableSize
		rt.miscount = ev.ID == IDInfoTable
	}
	t.byID[ev.ID] = rt
}

// of returns the type with an id; nil if it is not declared.
func (t *typeTable) of(id uint16) *readType {
	if int(id) >= len(t.byID) || !t.byID[id].declared {
		return nil
	}
	return &t.byID[id]
}

// headSize is the size of what precedes an event's payload.
func (t *readType) headSize() int {
	if t.size == VariableSize {
		return 12
	}
	return 10
}

// eventSize gives the whole size of the event that b begins with; 0 if b is
// too short to say.
func (t *readType) eventSize(b []byte, in *input) int {
	if t.size != VariableSize {
		return 10 + int(t.size)
	}
	if len(b) < 12 {
		return 0
	}
	n := 12 + int(binary.BigEndian.Uint16(b[10:]))
	if t.miscount {
		return trueSize(b, n, in)
	}
	return n
}

// trueSize corrects the size n of the InfoTable event at the beginning of b. GHC since 9.6
// counts a NUL between source file and span that it does not write, so the next event begins
// one byte earlier than the length says.
func trueSize(b []byte, n int, in *input) int {
	at, end := 20, min(n, len(b))
	if n-2 < at || n-2 >= end || b[n-2] != 0 {
		return n // the sixth NUL is not where it would have to be
	}
	for range 6 {
		if at >= end {
			return n
		}
		i := bytes.IndexByte(b[at:end], 0)
		in.work += int64(i)
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
