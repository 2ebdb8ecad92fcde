package dwarfindex

import (
	"encoding/binary"
	"fmt"
	"io"
)

// unit is one unit's header and bytes.
type unit struct {
	offset     uint64 // of the header, in .debug_info
	version    uint16
	addrSize   int
	offsetSize int // 4 or 8
	abbrevOff  uint64
	body       cursor // at the first entry; offsets are relative to the header
}

// units iterates over the units of .debug_info, holding one at a time.
type units struct {
	r     io.ReaderAt
	size  uint64
	limit uint64 // of one unit's bytes

	off uint64
	buf []byte
}

// next reads the next unit into the shared buffer. It returns io.EOF at the
// end. A unit that cannot be read is skipped by its length and reported as a
// *UnitError; iteration may go on.
func (us *units) next() (unit, error) {
	if us.off >= us.size {
		return unit{}, io.EOF
	}
	start := us.off
	var h [12]byte
	n := int(min(uint64(len(h)), us.size-start))
	if m, err := us.r.ReadAt(h[:n], int64(start)); m < n {
		us.off = us.size
		return unit{}, fmt.Errorf("read .debug_info at %#x: %w", start, noEOF(err))
	}
	u := unit{offset: start, offsetSize: 4}
	length, lenSize := uint64(binary.LittleEndian.Uint32(h[:])), uint64(4)
	if n >= 12 && length == 0xffffffff {
		length, lenSize, u.offsetSize = binary.LittleEndian.Uint64(h[4:]), 12, 8
	}
	if n < 4 || length > us.size-start-min(lenSize, us.size-start) || length < 7 {
		us.off = us.size
		return unit{}, &UnitError{start, fmt.Sprintf("length %d does not fit", length)}
	}
	total := lenSize + length
	us.off = start + total
	if total > us.limit {
		return unit{}, &UnitError{start, fmt.Sprintf("%d bytes are more than the limit of %d", total, us.limit)}
	}
	if uint64(cap(us.buf)) < total {
		us.buf = make([]byte, total+total/4)
	}
	us.buf = us.buf[:total]
	if m, err := us.r.ReadAt(us.buf, int64(start)); uint64(m) < total {
		us.off = us.size
		return unit{}, fmt.Errorf("read .debug_info at %#x: %w", start, noEOF(err))
	}
	c := cursor{b: us.buf, off: int(lenSize)}
	u.version = c.u16()
	kind := uint8(1)
	switch {
	case u.version >= 2 && u.version <= 4:
		u.abbrevOff = c.uint(u.offsetSize)
		u.addrSize = int(c.u8())
	case u.version == 5:
		kind = c.u8()
		u.addrSize = int(c.u8())
		u.abbrevOff = c.uint(u.offsetSize)
	default:
		return unit{}, &UnitError{start, fmt.Sprintf("DWARF version %d", u.version)}
	}
	switch kind {
	case 1, 3: // compile, partial
	case 4, 5: // skeleton, split compile
		c.skip(8)
	default: // type units have no code
		return unit{}, &UnitError{start, fmt.Sprintf("unit type %d", kind)}
	}
	if c.bad || u.addrSize != 8 && u.addrSize != 4 {
		return unit{}, &UnitError{start, "header is cut off"}
	}
	u.body = c
	return u, nil
}

// UnitError reports a unit that was left out.
type UnitError struct {
	Offset uint64 // in .debug_info
	Reason string
}

func (e *UnitError) Error() string {
	return fmt.Sprintf("DWARF unit at %#x: %s", e.Offset, e.Reason)
}

func noEOF(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// skipForm steps over one attribute's value.
func (u *unit) skipForm(c *cursor, form uint32) {
	if n := formSize(form, u.addrSize, u.offsetSize, u.version); n >= 0 {
		c.skip(uint64(n))
		return
	}
	switch form {
	case formString:
		c.cstring()
	case formBlock1:
		c.skip(uint64(c.u8()))
	case formBlock2:
		c.skip(uint64(c.u16()))
	case formBlock4:
		c.skip(uint64(c.u32()))
	case formBlock, formExprloc:
		c.skip(c.uleb())
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx:
		c.uleb()
	case formSdata:
		c.sleb()
	case formIndirect:
		inner := uint32(min(c.uleb(), 0xffffffff))
		if inner == formIndirect || inner == formImplicitConst {
			c.fail()
			return
		}
		u.skipForm(c, inner)
	default:
		c.fail()
	}
}

// number reads an attribute of class constant, address, flag or offset.
func (u *unit) number(c *cursor, s attrSpec) uint64 {
	switch s.form {
	case formImplicitConst:
		return uint64(s.implicit)
	case formFlagPresent:
		return 1
	case formUdata, formRefUdata:
		return c.uleb()
	case formSdata:
		return uint64(c.sleb())
	case formData1, formFlag, formRef1:
		return uint64(c.u8())
	case formData2, formRef2:
		return uint64(c.u16())
	case formData4, formRef4:
		return uint64(c.u32())
	case formData8, formRef8:
		return c.u64()
	case formAddr:
		return c.uint(u.addrSize)
	case formSecOffset:
		return c.uint(u.offsetSize)
	case formRefAddr:
		return c.uint(formSize(formRefAddr, u.addrSize, u.offsetSize, u.version))
	}
	u.skipForm(c, s.form)
	return 0
}

// text reads an attribute of class string. The bytes are shared.
func (u *unit) text(c *cursor, s attrSpec, str, lineStr []byte) []byte {
	switch s.form {
	case formString:
		return c.cstring()
	case formStrp:
		return cstringAt(str, c.uint(u.offsetSize))
	case formLineStrp:
		return cstringAt(lineStr, c.uint(u.offsetSize))
	}
	u.skipForm(c, s.form)
	return nil
}
