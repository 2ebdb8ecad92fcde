package eventlog

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"
)

// codec converts an event's fields in the order of its layout, in one of two directions:
// encoding appends them to buf, decoding takes them from buf. Each event states its layout
// once, so the two directions cannot diverge.
//
// Decoding sets every field, also after a failure, because events are decoded into structs
// that held another record before.
type codec struct {
	buf      []byte
	off      int // decoding: first byte not yet taken
	encoding bool

	// sanitise makes strings valid UTF-8, which other readers insist on.
	sanitise bool
	// lenient sets absent trailing fields to zero.
	lenient bool
	// depth is above zero inside a list, whose elements are never cut short.
	depth int
	// size is the payload size that the header declares, or VariableSize.
	size uint16
	// nul is set when decoded text has a NUL in it.
	nul bool
	// failed is the reason of the first failure, or empty.
	failed string
}

// decode prepares for decoding a payload.
func (c *codec) decode(payload []byte, size uint16, lenient bool) {
	c.buf, c.off, c.encoding, c.lenient, c.depth, c.size = payload, 0, false, lenient, 0, size
	c.nul, c.failed = false, ""
}

func (c *codec) fail(reason string) {
	if c.failed == "" {
		c.failed = reason
	}
	if !c.encoding {
		c.off = len(c.buf)
	}
}

// absent reports whether nothing is left where a field would begin. That is a failure unless
// the field may be missing.
func (c *codec) absent() bool {
	if c.off < len(c.buf) {
		return false
	}
	if c.depth > 0 || !c.lenient {
		c.fail("payload ends before its last field")
	}
	return true
}

// take returns the next n bytes of the payload, nil if there are fewer.
func (c *codec) take(n int) []byte {
	if len(c.buf)-c.off < n {
		if !c.absent() {
			c.fail("payload ends inside a field")
		}
		return nil
	}
	b := c.buf[c.off : c.off+n]
	c.off += n
	return b
}

// Fields of the standard events: big-endian words and strings.

func (c *codec) u8(p *uint8) {
	if c.encoding {
		c.buf = append(c.buf, *p)
	} else if b := c.take(1); b != nil {
		*p = b[0]
	} else {
		*p = 0
	}
}

func (c *codec) u16(p *uint16) {
	if c.encoding {
		c.buf = binary.BigEndian.AppendUint16(c.buf, *p)
	} else if b := c.take(2); b != nil {
		*p = binary.BigEndian.Uint16(b)
	} else {
		*p = 0
	}
}

func (c *codec) u32(p *uint32) {
	if c.encoding {
		c.buf = binary.BigEndian.AppendUint32(c.buf, *p)
	} else if b := c.take(4); b != nil {
		*p = binary.BigEndian.Uint32(b)
	} else {
		*p = 0
	}
}

func (c *codec) u64(p *uint64) {
	if c.encoding {
		c.buf = binary.BigEndian.AppendUint64(c.buf, *p)
	} else if b := c.take(8); b != nil {
		*p = binary.BigEndian.Uint64(b)
	} else {
		*p = 0
	}
}

// text is a string up to the payload's end.
func (c *codec) text(p *string) {
	if c.encoding {
		c.buf = append(c.buf, c.clean(*p)...)
		return
	}
	setString(p, c.buf[c.off:])
	c.nul = strings.IndexByte(*p, 0) >= 0
	c.off = len(c.buf)
}

// cstr is a string that a NUL ends.
func (c *codec) cstr(p *string) {
	if c.encoding {
		s := c.clean(*p)
		if strings.IndexByte(s, 0) >= 0 {
			c.fail("NUL inside a NUL-terminated string")
		}
		c.buf = append(append(c.buf, s...), 0)
		return
	}
	i := bytes.IndexByte(c.buf[c.off:], 0)
	if i < 0 {
		if !c.absent() {
			c.fail("string without its NUL")
		}
		*p = ""
		return
	}
	setString(p, c.buf[c.off:c.off+i])
	c.off += i + 1
}

// cstrs is a list of NUL-terminated strings up to the payload's end. The last
// NUL may be missing: not every writer sets it.
func (c *codec) cstrs(p *[]string) {
	if c.encoding {
		for i := range *p {
			c.cstr(&(*p)[i])
		}
		return
	}
	list := (*p)[:0]
	for c.off < len(c.buf) {
		end := bytes.IndexByte(c.buf[c.off:], 0)
		if end < 0 {
			end = len(c.buf) - c.off
		}
		list = append(list, string(c.buf[c.off:c.off+end]))
		c.off = min(c.off+end+1, len(c.buf))
	}
	*p = list
}

// rest is the payload's remaining bytes.
func (c *codec) rest(p *[]byte) {
	if c.encoding {
		c.buf = append(c.buf, *p...)
		return
	}
	*p = append((*p)[:0], c.buf[c.off:]...)
	c.off = len(c.buf)
}

// stack is a list of at most 255 words after its u8 length.
func (c *codec) stack(p *[]uint32) {
	if c.encoding && len(*p) > math.MaxUint8 {
		c.fail("stack of more than 255 entries")
		return
	}
	n := uint8(len(*p))
	c.u8(&n)
	if !c.encoding {
		if len(c.buf)-c.off < 4*int(n) {
			c.fail("stack longer than its payload")
			n = 0
		}
		*p = resize(*p, int(n))
	}
	for i := range *p {
		c.u32(&(*p)[i])
	}
}

// clean makes a string valid UTF-8 without NUL, where the writer was asked to.
func (c *codec) clean(s string) string {
	if !c.sanitise || utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Fields of our own events: varints, and strings and lists after their length.

func (c *codec) uvarint() uint64 {
	v, next := varint(c.buf, c.off)
	if next < 0 {
		if !c.absent() {
			c.fail("varint cut short or above 64 bits")
		}
		return 0
	}
	c.off = next
	return v
}

func (c *codec) v64(p *uint64) {
	if c.encoding {
		c.buf = binary.AppendUvarint(c.buf, *p)
	} else {
		*p = c.uvarint()
	}
}

func (c *codec) v32(p *uint32) {
	if c.encoding {
		c.buf = binary.AppendUvarint(c.buf, uint64(*p))
	} else {
		v := c.uvarint()
		if v > math.MaxUint32 {
			v = c.tooLarge()
		}
		*p = uint32(v)
	}
}

// bounded decodes a varint that must not be above limit.
func (c *codec) bounded(limit uint64) uint64 {
	v := c.uvarint()
	if v > limit {
		return c.tooLarge()
	}
	return v
}

func (c *codec) tooLarge() uint64 {
	c.fail("number too large for its field")
	return 0
}

// signed is a zigzag varint.
func (c *codec) signed(p *int64) {
	if c.encoding {
		c.buf = binary.AppendVarint(c.buf, *p)
		return
	}
	v := c.uvarint()
	*p = int64(v>>1) ^ -int64(v&1)
}

func (c *codec) flag(p *bool) {
	if c.encoding {
		v := byte(0)
		if *p {
			v = 1
		}
		c.buf = append(c.buf, v)
		return
	}
	*p = c.bounded(1) == 1
}

// enum is a varint of a small named type.
func enum[T ~uint8 | ~uint16](c *codec, p *T) {
	if c.encoding {
		c.buf = binary.AppendUvarint(c.buf, uint64(*p))
		return
	}
	*p = T(c.bounded(uint64(^T(0))))
}

func (c *codec) str(p *string) {
	if c.encoding {
		c.buf = append(binary.AppendUvarint(c.buf, uint64(len(*p))), *p...)
		return
	}
	setString(p, c.prefixed())
}

func (c *codec) bytes(p *[]byte) {
	if c.encoding {
		c.buf = append(binary.AppendUvarint(c.buf, uint64(len(*p))), *p...)
		return
	}
	*p = append((*p)[:0], c.prefixed()...)
}

// prefixed returns the bytes that follow their length.
func (c *codec) prefixed() []byte {
	n := c.uvarint()
	if n > uint64(len(c.buf)-c.off) {
		c.fail("string longer than its payload")
		return nil
	}
	b := c.buf[c.off : c.off+int(n)]
	c.off += int(n)
	return b
}

// list sets *p to the list's length, ready for its elements, of which none is
// smaller than least bytes. The caller walks the elements, then calls done.
func list[T any](c *codec, p *[]T, least int) {
	if c.encoding {
		c.buf = binary.AppendUvarint(c.buf, uint64(len(*p)))
	} else {
		n := c.uvarint()
		if n > uint64((len(c.buf)-c.off)/least) {
			c.fail("list longer than its payload")
			n = 0
		}
		*p = resize(*p, int(n))
	}
	c.depth++
}

func (c *codec) done() { c.depth-- }

// resize gives s the length n and keeps what its elements own for reuse.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	grown := make([]T, n)
	copy(grown, s[:cap(s)])
	return grown
}

// setString assigns without allocating where the string stays the same.
func setString(p *string, b []byte) {
	if *p != string(b) {
		*p = string(b)
	}
}
