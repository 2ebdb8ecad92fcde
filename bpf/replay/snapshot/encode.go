package snapshot

import "encoding/binary"

// Encode returns a snapshot's bytes: equal ones for equal snapshots. Its lists must be
// sorted.
func (s *Snapshot) Encode() []byte {
	e := encoder(magic)
	e.string(string(s.Arch))
	e.string(s.GHC)
	e.uint(bit(s.Threaded, 0) | bit(s.Profiled, 1))
	e.string(s.Comment)
	e.uint(uint64(len(s.Registers)))
	for _, r := range s.Registers {
		e.uint(r)
	}
	for _, t := range s.Text {
		e.uint(t.Lo)
		e.uint(t.Hi - t.Lo)
	}
	e.uint(s.Task)
	e.uint(uint64(len(s.Memory)))
	var at uint64
	for _, m := range s.Memory {
		e.uint(m.Address - at)
		e.string(string(m.Bytes))
		at = m.Address + uint64(len(m.Bytes))
	}
	e.uint(uint64(len(s.Rows)))
	at = 0
	for _, r := range s.Rows {
		e.uint(r.Lo - at)
		at = r.Lo
		e.uint(r.Hi - r.Lo)
		e.uint(bit(r.Haskell, 0) | bit(r.Signal, 1) | bit(r.Deref, 2))
		e.uint(uint64(r.CFARegister))
		e.int(r.CFAOffset)
		e.rule(r.Return)
		e.uint(uint64(len(r.Saved)))
		for _, v := range r.Saved {
			e.uint(uint64(v.Register))
			e.rule(v.Rule)
		}
	}
	e.uint(uint64(len(s.Names)))
	at = 0
	for _, n := range s.Names {
		e.uint(n.Address - at)
		at = n.Address
		e.string(n.Text)
	}
	return e
}

type encoder []byte

func (e *encoder) uint(v uint64) { *e = binary.AppendUvarint(*e, v) }
func (e *encoder) int(v int64)   { e.uint(uint64(v)<<1 ^ uint64(v>>63)) }

func bit(set bool, n int) uint64 {
	if set {
		return 1 << n
	}
	return 0
}

func (e *encoder) string(s string) {
	e.uint(uint64(len(s)))
	*e = append(*e, s...)
}

func (e *encoder) rule(r Rule) {
	e.uint(uint64(r.Kind))
	e.int(r.Offset)
}
