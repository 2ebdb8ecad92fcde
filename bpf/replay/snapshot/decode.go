package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const magic = "STGSNAP\x01"

// FormatError says why and where bytes are not a snapshot.
type FormatError struct {
	Offset int // in the bytes
	What   string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("decode snapshot: %s at byte %d", e.What, e.Offset)
}

// Decode parses a snapshot. It does not keep data.
func Decode(data []byte) (*Snapshot, error) {
	d := &decoder{data: data}
	s := d.snapshot()
	if d.err != nil {
		return nil, d.err
	}
	return s, nil
}

type decoder struct {
	data []byte
	at   int
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = &FormatError{d.at, what}
	}
}

func (d *decoder) uint() uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.data[d.at:])
	if n <= 0 {
		d.fail("bad number")
		return 0
	}
	d.at += n
	return v
}

func (d *decoder) int() int64 {
	u := d.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) small(limit uint64, what string) uint64 {
	v := d.uint()
	if v >= limit {
		d.fail(what)
		return 0
	}
	return v
}

// count reads a list's length; an element has at least size bytes.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64((len(d.data)-d.at)/size) {
		d.fail("list longer than the file")
		return 0
	}
	return int(n)
}

func (d *decoder) bytes() []byte {
	n := d.count(1)
	if d.err != nil {
		return nil
	}
	b := bytes.Clone(d.data[d.at : d.at+n])
	d.at += n
	return b
}

// advance adds a distance to an address; the sum must not wrap.
func (d *decoder) advance(from, by uint64) uint64 {
	if from+by < from {
		d.fail("address beyond the last")
	}
	return from + by
}

func (d *decoder) rule() Rule {
	return Rule{RuleKind(d.small(uint64(numRuleKinds), "unknown rule")), d.int()}
}

func (d *decoder) snapshot() *Snapshot {
	if !bytes.HasPrefix(d.data, []byte(magic)) {
		d.fail("no snapshot of this version")
		return nil
	}
	d.at = len(magic)
	s := &Snapshot{Arch: Arch(d.bytes()), GHC: string(d.bytes())}
	flags := d.small(4, "unknown flags")
	s.Threaded, s.Profiled = flags&1 != 0, flags&2 != 0
	s.Comment = string(d.bytes())
	s.Registers = make([]uint64, d.count(1))
	for i := range s.Registers {
		s.Registers[i] = d.uint()
	}
	if n := s.Arch.Registers(); n == 0 || n != len(s.Registers) {
		d.fail("registers do not fit the architecture")
	}
	for i := range s.Text {
		s.Text[i].Lo = d.uint()
		s.Text[i].Hi = d.advance(s.Text[i].Lo, d.uint())
	}
	s.Task = d.uint()

	var at uint64
	for n := d.count(2); n > 0 && d.err == nil; n-- {
		gap := d.uint()
		if gap == 0 && len(s.Memory) > 0 {
			d.fail("ranges that touch")
		}
		at = d.advance(at, gap)
		b := d.bytes()
		if len(b) == 0 {
			d.fail("empty range")
		}
		s.Memory = append(s.Memory, Segment{at, b})
		at = d.advance(at, uint64(len(b)))
	}
	at = 0
	for n := d.count(8); n > 0 && d.err == nil; n-- {
		var r Row
		at = d.advance(at, d.uint())
		r.Lo, r.Hi = at, d.advance(at, d.uint())
		flags := d.small(8, "unknown flags")
		r.Haskell, r.Signal, r.Deref = flags&1 != 0, flags&2 != 0, flags&4 != 0
		r.CFARegister = uint8(d.small(256, "unknown register"))
		r.CFAOffset = d.int()
		r.Return = d.rule()
		for m := d.count(3); m > 0 && d.err == nil; m-- {
			r.Saved = append(r.Saved, SavedRegister{uint8(d.small(256, "unknown register")), d.rule()})
		}
		s.Rows = append(s.Rows, r)
	}
	at = 0
	for n := d.count(2); n > 0 && d.err == nil; n-- {
		at = d.advance(at, d.uint())
		s.Names = append(s.Names, Name{at, string(d.bytes())})
	}
	if d.err == nil && d.at != len(d.data) {
		d.fail("bytes after the end")
	}
	return s
}
