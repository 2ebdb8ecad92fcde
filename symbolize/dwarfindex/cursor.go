package dwarfindex

import (
	"bytes"
	"encoding/binary"
)

// cursor reads a section's bytes. A read beyond the end sets bad and gives
// zero; reading goes on harmlessly, and the caller checks bad when a thing is
// complete.
type cursor struct {
	b   []byte
	off int
	bad bool
}

func (c *cursor) fail() { c.bad, c.off = true, len(c.b) }

func (c *cursor) skip(n uint64) {
	if n > uint64(len(c.b)-c.off) {
		c.fail()
		return
	}
	c.off += int(n)
}

// bytes returns the next n bytes, shared; nil if there are not so many.
func (c *cursor) bytes(n uint64) []byte {
	start := c.off
	c.skip(n)
	if c.bad {
		return nil
	}
	return c.b[start:c.off]
}

func (c *cursor) u8() uint8 {
	if c.off >= len(c.b) {
		c.fail()
		return 0
	}
	v := c.b[c.off]
	c.off++
	return v
}

func (c *cursor) u16() uint16 {
	if len(c.b)-c.off < 2 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint16(c.b[c.off:])
	c.off += 2
	return v
}

func (c *cursor) u32() uint32 {
	if len(c.b)-c.off < 4 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint32(c.b[c.off:])
	c.off += 4
	return v
}

func (c *cursor) u64() uint64 {
	if len(c.b)-c.off < 8 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(c.b[c.off:])
	c.off += 8
	return v
}

// uint reads an unsigned number of n bytes.
func (c *cursor) uint(n int) uint64 {
	switch n {
	case 1:
		return uint64(c.u8())
	case 2:
		return uint64(c.u16())
	case 4:
		return uint64(c.u32())
	case 8:
		return c.u64()
	}
	c.fail()
	return 0
}

func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); c.off < len(c.b); shift += 7 {
		b := c.b[c.off]
		c.off++
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b < 0x80 {
			return v
		}
		if shift > 126 { // longer than any number that fits
			break
		}
	}
	c.fail()
	return 0
}

func (c *cursor) sleb() int64 {
	var v int64
	for shift := uint(0); c.off < len(c.b); {
		b := c.b[c.off]
		c.off++
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		shift += 7
		if b < 0x80 {
			if shift < 64 && b&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
		if shift > 133 {
			break
		}
	}
	c.fail()
	return 0
}

// cstring reads up to a NUL, without it. The bytes are the section's own.
func (c *cursor) cstring() []byte {
	n := bytes.IndexByte(c.b[c.off:], 0)
	if n < 0 {
		c.fail()
		return nil
	}
	s := c.b[c.off : c.off+n]
	c.off += n + 1
	return s
}

// cstringAt is the NUL-terminated string at off of a string section.
func cstringAt(b []byte, off uint64) []byte {
	if off >= uint64(len(b)) {
		return nil
	}
	n := bytes.IndexByte(b[off:], 0)
	if n < 0 {
		return nil
	}
	return b[off : off+uint64(n)]
}
