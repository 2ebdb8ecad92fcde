package cfi

import "encoding/binary"

// cursor reads bytes that lie at a known address. A read beyond the end sets
// bad and gives zero; reading goes on harmlessly, and the caller checks bad
// when a thing is complete.
type cursor struct {
	b    []byte
	off  int
	base uint64 // address of b[0]; for pc-relative pointers
	bad  bool
}

func (c *cursor) fail() { c.bad, c.off = true, len(c.b) }

func (c *cursor) left() int { return len(c.b) - c.off }

func (c *cursor) address() uint64 { return c.base + uint64(c.off) }

// bytes takes the next n bytes.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(c.left()) {
		c.fail()
		return nil
	}
	b := c.b[c.off : c.off+int(n)]
	c.off += int(n)
	return b
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
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uleb reads an unsigned LEB128 number; bits beyond the 64th are dropped.
func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b&0x80 == 0 {
			return v
		}
	}
}

func (c *cursor) sleb() int64 {
	var v uint64
	for shift := uint(0); ; {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		shift += 7
		if b&0x80 == 0 {
			if b&0x40 != 0 && shift < 64 {
				v |= ^uint64(0) << shift
			}
			return int64(v)
		}
	}
}

// cstring reads up to and including a NUL.
func (c *cursor) cstring() string {
	for i := c.off; i < len(c.b); i++ {
		if c.b[i] == 0 {
			s := string(c.b[c.off:i])
			c.off = i + 1
			return s
		}
	}
	c.fail()
	return ""
}

// Pointer encodings: Linux Standard Base, "DWARF Extensions".
const (
	peAbs     = 0x00
	peULEB    = 0x01
	peU2      = 0x02
	peU4      = 0x03
	peU8      = 0x04
	peSigned  = 0x08
	peSLEB    = 0x09
	peS2      = 0x0a
	peS4      = 0x0b
	peS8      = 0x0c
	pePCRel   = 0x10
	peDataRel = 0x30
	peAligned = 0x50
	peOmit    = 0xff

	peFormat   = 0x0f
	peRelative = 0x70
	peIndirect = 0x80
)

// pointer reads a pointer in the given encoding; data is what data-relative
// ones are relative to. ok is false for what is not used for code addresses:
// the cursor cannot go on.
func (c *cursor) pointer(enc uint8, data uint64) (v uint64, ok bool) {
	if enc == peOmit || enc&peIndirect != 0 {
		return 0, false
	}
	if enc == peAligned {
		c.bytes(-c.address() & 7)
		return c.u64(), true
	}
	at := c.address()
	v, ok = c.pointerValue(enc)
	if !ok {
		return 0, false
	}
	switch enc & peRelative {
	case 0:
	case pePCRel:
		v += at
	case peDataRel:
		v += data
	default: // text- and function-relative
		return 0, false
	}
	return v, true
}

// pointerValue reads a pointer as it is stored.
func (c *cursor) pointerValue(enc uint8) (v uint64, ok bool) {
	switch enc & peFormat {
	case peAbs, peU8, peS8, peSigned:
		v = c.u64()
	case peULEB:
		v = c.uleb()
	case peSLEB:
		v = uint64(c.sleb())
	case peU2:
		v = uint64(c.u16())
	case peS2:
		v = uint64(int64(int16(c.u16())))
	case peU4:
		v = uint64(c.u32())
	case peS4:
		v = uint64(int64(int32(c.u32())))
	default:
		return 0, false
	}
	return v, true
}
