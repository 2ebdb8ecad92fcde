package dwarfindex

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"debug/dwarf"
	"fmt"
	"slices"
)

// lineRow is one row of a line table.
type lineRow struct {
	addr uint64
	file uint32 // index in lineTable.files
	line uint32
	col  uint32
	end  bool // ends a sequence: covers nothing
}

// lineTable is the line program of one unit, run.
type lineTable struct {
	rows  []lineRow // sorted by address
	files [][]byte  // paths, shared with the section where possible
	dir   []byte    // where the compiler ran, if the table says so (DWARF 5)
	sums  [][]byte  // of the files that DWARF 5 has checksums of, by the same index; may be shorter
}

func (t *lineTable) reset() {
	t.rows, t.files, t.sums = t.rows[:0], t.files[:0], t.sums[:0]
	t.dir = nil
}

// LineError reports a malformed line program. Rows before it are kept.
type LineError struct {
	Offset uint64 // of the program, in .debug_line
	Reason string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("DWARF line program at %#x: %s", e.Offset, e.Reason)
}

const (
	maxRows  = 1 << 22
	maxFiles = 1 << 16

	lineCopy            = 1
	lineAdvancePC       = 2
	lineAdvanceLine     = 3
	lineSetFile         = 4
	lineSetColumn       = 5
	lineConstAddPC      = 8
	lineFixedAdvancePC  = 9
	lineEndSequence     = 1
	lineSetAddress      = 2
	lineDefineFile      = 3
	lineContentPath     = 1
	lineContentDirIndex = 2
	lineContentMD5      = 5
)

// read runs the program at off (DWARF 2 to 5, §6.2) and sorts its rows.
func (t *lineTable) read(section []byte, off uint64, str, lineStr []byte) error {
	if off >= uint64(len(section)) {
		return &LineError{off, "beyond the section"}
	}
	c := cursor{b: section, off: int(off)}
	offsetSize := 4
	length := uint64(c.u32())
	if length == 0xffffffff {
		length, offsetSize = c.u64(), 8
	}
	if c.bad || length > uint64(len(section)-c.off) {
		return &LineError{off, "length does not fit"}
	}
	c.b = section[:c.off+int(length)]
	h := lineHeader{version: c.u16()}
	if h.version < 2 || h.version > 5 {
		return &LineError{off, fmt.Sprintf("version %d", h.version)}
	}
	if h.version >= 5 {
		h.addrSize = int(c.u8())
		c.u8() // segment selector size
	}
	headerLen := c.uint(offsetSize)
	if c.bad || headerLen > uint64(len(c.b)-c.off) {
		return &LineError{off, "header does not fit"}
	}
	program := c.off + int(headerLen)
	h.minInst = uint64(c.u8())
	if h.version >= 4 {
		c.u8() // operations an instruction: 1 but for VLIW machines
	}
	c.u8() // default is_stmt
	h.lineBase = int8(c.u8())
	h.lineRange = c.u8()
	h.opcodeBase = c.u8()
	if c.bad || h.lineRange == 0 || h.opcodeBase == 0 {
		return &LineError{off, "malformed header"}
	}
	lens := c.off
	c.skip(uint64(h.opcodeBase) - 1)
	if c.bad {
		return &LineError{off, "header is cut off"}
	}
	h.operands = c.b[lens:c.off]
	if h.version >= 5 {
		u := unit{version: 5, addrSize: h.addrSize, offsetSize: offsetSize}
		if !t.fileTable5(&c, &u, str, lineStr) {
			return &LineError{off, "malformed file table"}
		}
	} else if !t.fileTable(&c) {
		return &LineError{off, "malformed file table"}
	}
	c.off = program
	err := t.run(&c, &h, off)
	if !slices.IsSortedFunc(t.rows, byAddress) {
		slices.SortStableFunc(t.rows, byAddress)
	}
	return err
}

func byAddress(a, b lineRow) int { return cmp.Compare(a.addr, b.addr) }

type lineHeader struct {
	version    uint16
	addrSize   int
	minInst    uint64
	lineBase   int8
	lineRange  uint8
	opcodeBase uint8
	operands   []byte
}

// fileTable reads the tables of DWARF 2 to 4. Index 0 is no file.
func (t *lineTable) fileTable(c *cursor) bool {
	var dirs [][]byte
	for len(dirs) < maxFiles {
		d := c.cstring()
		if c.bad {
			return false
		}
		if len(d) == 0 {
			break
		}
		dirs = append(dirs, d)
	}
	t.files = append(t.files, nil)
	for len(t.files) < maxFiles {
		name := c.cstring()
		if c.bad {
			return false
		}
		if len(name) == 0 {
			return true
		}
		dir := c.uleb()
		c.uleb() // modification time
		c.uleb() // length
		t.files = append(t.files, joinDir(dirs, dir, 1, name))
	}
	return false
}

func joinDir(dirs [][]byte, dir, base uint64, name []byte) []byte {
	if dir < base || dir-base >= uint64(len(dirs)) || bytes.HasPrefix(name, []byte("/")) {
		return name
	}
	return slices.Concat(dirs[dir-base], []byte("/"), name)
}

// fileTable5 reads the tables of DWARF 5, whose entries describe themselves.
func (t *lineTable) fileTable5(c *cursor, u *unit, str, lineStr []byte) bool {
	var dirs [][]byte
	for pass := 0; pass < 2; pass++ {
		formats := make([]attrSpec, c.u8())
		for i := range formats {
			formats[i] = attrSpec{attr: dwarf.Attr(min(c.uleb(), 0xffff)), form: uint32(min(c.uleb(), 0xffff))}
		}
		count := c.uleb()
		if c.bad || count > maxFiles || len(formats) == 0 && count > 0 {
			return false
		}
		for range count {
			var name, sum []byte
			dir := uint64(0)
			for _, f := range formats {
				switch f.attr {
				case lineContentPath:
					name = u.text(c, f, str, lineStr)
				case lineContentDirIndex:
					dir = u.number(c, f)
				case lineContentMD5:
					from := c.off
					u.skipForm(c, f.form)
					if !c.bad && c.off-from == md5.Size {
						sum = c.b[from:c.off]
					}
				default:
					u.skipForm(c, f.form)
				}
			}
			if c.bad {
				return false
			}
			if pass == 0 && len(dirs) == 0 {
				t.dir = name
			}
			if pass == 1 {
				t.sums = append(t.sums, sum)
			}
			if pass == 0 {
				dirs = append(dirs, name)
			} else if dir == 0 { // relative to the compilation directory
				t.files = append(t.files, name)
			} else {
				t.files = append(t.files, joinDir(dirs, dir, 0, name))
			}
		}
	}
	return true
}

func (t *lineTable) run(c *cursor, h *lineHeader, off uint64) error {
	start := lineRow{file: 1, line: 1}
	row := start
	emit := func() { t.rows = append(t.rows, row) }
	for c.off < len(c.b) {
		if len(t.rows) > maxRows {
			return &LineError{off, fmt.Sprintf("more than %d rows", maxRows)}
		}
		op := c.u8()
		if op >= h.opcodeBase {
			adj := op - h.opcodeBase
			row.addr += uint64(adj/h.lineRange) * h.minInst
			row.line += uint32(int32(h.lineBase) + int32(adj%h.lineRange))
			emit()
			continue
		}
		switch op {
		case 0:
			n := c.uleb()
			if c.bad || n > uint64(len(c.b)-c.off) {
				return &LineError{off, "extended operation does not fit"}
			}
			end := c.off + int(n)
			if n > 0 {
				switch c.u8() {
				case lineEndSequence:
					row.end = true
					emit()
					row = start
				case lineSetAddress:
					row.addr = c.uint(int(n) - 1)
				case lineDefineFile:
					if name := c.cstring(); len(t.files) < maxFiles {
						t.files = append(t.files, name)
					}
				}
			}
			if c.bad {
				return &LineError{off, "malformed extended operation"}
			}
			c.off = end
		case lineCopy:
			emit()
		case lineAdvancePC:
			row.addr += c.uleb() * h.minInst
		case lineAdvanceLine:
			row.line += uint32(c.sleb())
		case lineSetFile:
			row.file = uint32(min(c.uleb(), maxFiles))
		case lineSetColumn:
			row.col = uint32(min(c.uleb(), 1<<20))
		case lineConstAddPC:
			row.addr += uint64((255-h.opcodeBase)/h.lineRange) * h.minInst
		case lineFixedAdvancePC:
			row.addr += uint64(c.u16())
		default:
			for range h.operands[op-1] {
				c.uleb()
			}
		}
		if c.bad {
			return &LineError{off, "program is cut off"}
		}
	}
	return nil
}

// at finds the row that stands at addr exactly: the last written there.
func (t *lineTable) at(addr uint64) (lineRow, bool) {
	i, _ := slices.BinarySearchFunc(t.rows, addr+1, func(r lineRow, a uint64) int {
		if r.addr < a {
			return -1
		}
		return 1
	})
	for i--; i >= 0 && t.rows[i].addr == addr; i-- {
		if !t.rows[i].end && t.rows[i].line != 0 {
			return t.rows[i], true
		}
	}
	return lineRow{}, false
}

// covering finds the row whose stretch covers addr. Its line is 0 where the
// compiler did not know it.
func (t *lineTable) covering(addr uint64) (lineRow, bool) {
	i, _ := slices.BinarySearchFunc(t.rows, addr, func(r lineRow, a uint64) int {
		if r.addr <= a {
			return -1
		}
		return 1
	})
	if i == 0 || t.rows[i-1].end {
		return lineRow{}, false
	}
	return t.rows[i-1], true
}

// sum returns the MD5 checksum of a file, nil if the table has none.
func (t *lineTable) sum(i uint32) []byte {
	if int(i) >= len(t.sums) {
		return nil
	}
	return t.sums[i]
}

func (t *lineTable) file(i uint32) []byte {
	if int(i) >= len(t.files) {
		return nil
	}
	return t.files[i]
}
