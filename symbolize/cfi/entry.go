package cfi

import "fmt"

// section is the bytes of .debug_frame or .eh_frame.
type section struct {
	name string
	data []byte
	addr uint64 // of data[0], when loaded
	eh   bool   // .eh_frame, not .debug_frame
}

// EntryError reports a malformed or unsupported entry of a frame section.
type EntryError struct {
	Section string
	Offset  uint64 // of the entry in its section
	Reason  string
}

func (e *EntryError) Error() string {
	return fmt.Sprintf("entry at %#x of %s: %s", e.Offset, e.Section, e.Reason)
}

func (s *section) fault(off int, format string, args ...any) *EntryError {
	return &EntryError{s.name, uint64(off), fmt.Sprintf(format, args...)}
}

// header is what all entries begin with.
type header struct {
	off  int // of the entry
	end  int // of the next one
	body cursor
	cie  bool
	// Where a frame description's common information is.
	cieOff int
}

// next reads the header of the entry at off. A nil header without an error is
// the end. An error means that the section cannot be read further.
func (s *section) next(off int) (*header, *EntryError) {
	c := cursor{b: s.data, off: off, base: s.addr}
	if c.left() < 4 {
		return nil, nil
	}
	wide := false
	length := uint64(c.u32())
	if length == 0 && s.eh {
		return nil, nil // the terminator
	}
	if length == 0xffffffff {
		wide = true
		length = c.u64()
	} else if length >= 0xfffffff0 {
		return nil, s.fault(off, "reserved length %#x", length)
	}
	if c.bad || length > uint64(c.left()) {
		return nil, s.fault(off, "length %#x reaches beyond the section", length)
	}
	h := &header{off: off, end: c.off + int(length)}
	c.b = c.b[:h.end]
	idAt := c.off
	id := uint64(c.u32())
	cieID := uint64(0xffffffff)
	if wide {
		c.off = idAt
		id, cieID = c.u64(), ^uint64(0)
	}
	if s.eh {
		cieID = 0
	}
	if c.bad {
		return h, s.fault(off, "no room for its identifier")
	}
	h.body = c
	switch {
	case id == cieID:
		h.cie = true
	case s.eh:
		// A distance back from the field itself.
		if id > uint64(idAt) {
			return h, s.fault(off, "common information %#x bytes before %#x", id, idAt)
		}
		h.cieOff = idAt - int(id)
	default:
		if id > uint64(len(s.data)) {
			return h, s.fault(off, "common information at %#x, beyond the section", id)
		}
		h.cieOff = int(id)
	}
	return h, nil
}

// common is a common information entry (CIE), with the state its instructions
// leave behind.
type common struct {
	codeAlign uint64
	dataAlign int64
	ra        uint64 // the return address's column
	pointers  uint8  // encoding of code addresses
	sized     bool   // augmentation data has a length ('z')
	signal    bool   // frames interrupted anywhere, not at calls
	haskell   bool   // written by GHC's native code generator
	initial   state
}

func (s *section) common(h *header, m *machine) (*common, *EntryError) {
	c := h.body
	version := c.u8()
	augmentation := c.cstring()
	if c.bad {
		return nil, s.fault(h.off, "common information is cut off")
	}
	if version != 1 && version != 3 && version != 4 {
		return nil, s.fault(h.off, "version %d", version)
	}
	if version == 4 {
		if size, segment := c.u8(), c.u8(); size != 8 || segment != 0 {
			return nil, s.fault(h.off, "addresses of %d bytes with segments of %d", size, segment)
		}
	}
	g := &common{pointers: peAbs}
	g.codeAlign = c.uleb()
	g.dataAlign = c.sleb()
	if version == 1 {
		g.ra = uint64(c.u8())
	} else {
		g.ra = c.uleb()
	}
	if err := s.augment(h, g, &c, augmentation); err != nil {
		return nil, err
	}
	if c.bad {
		return nil, s.fault(h.off, "common information is cut off")
	}
	if g.ra != uint64(m.arch.saved[0]) {
		return nil, s.fault(h.off, "return address in column %d", g.ra)
	}
	code := c
	if err := m.runCommon(g, &code); err != nil {
		return nil, s.fault(h.off, "%v", err)
	}
	if !s.eh && augmentation == "" && m.arch.isHaskell(&g.initial) {
		g.haskell = true
		// Again, now reading GHC's operands as GHC writes them.
		if err := m.runCommon(g, &c); err != nil {
			return nil, s.fault(h.off, "%v", err)
		}
	}
	return g, nil
}

// augment reads what a common information's augmentation string announces.
func (s *section) augment(h *header, g *common, c *cursor, augmentation string) *EntryError {
	if augmentation == "" {
		return nil
	}
	if augmentation[0] != 'z' {
		return s.fault(h.off, "augmentation %.8q", augmentation)
	}
	g.sized = true
	data := cursor{base: c.address()}
	n := c.uleb()
	data.base = c.address()
	data.b = c.bytes(n)
	for _, letter := range augmentation[1:] {
		switch letter {
		case 'L':
			data.u8()
		case 'P':
			enc := data.u8()
			if enc == peAligned {
				data.bytes(-data.address() & 7)
			}
			if _, ok := data.pointerValue(enc); !ok {
				return s.fault(h.off, "personality in encoding %#x", enc)
			}
		case 'R':
			g.pointers = data.u8()
		case 'S':
			g.signal = true
		case 'B', 'G': // arm64: which key signs return addresses; memory tagging
		default:
			return s.fault(h.off, "augmentation %.8q", augmentation)
		}
	}
	if data.bad {
		return s.fault(h.off, "augmentation data is cut off")
	}
	return nil
}

// description is a frame description entry (FDE).
type description struct {
	lo, hi uint64
	code   cursor
}

func (s *section) description(h *header, g *common) (description, *EntryError) {
	c := h.body
	var d description
	var ok bool
	if d.lo, ok = c.pointer(g.pointers, 0); !ok {
		return d, s.fault(h.off, "code address in encoding %#x", g.pointers)
	}
	size, _ := c.pointerValue(g.pointers & peFormat)
	if g.pointers&peFormat == peS4 {
		size = uint64(uint32(size))
	}
	if g.sized {
		c.bytes(c.uleb())
	}
	if c.bad {
		return d, s.fault(h.off, "frame description is cut off")
	}
	d.hi = d.lo + size
	if d.hi < d.lo {
		return d, s.fault(h.off, "%#x bytes of code at %#x", size, d.lo)
	}
	d.code = c
	return d, nil
}
