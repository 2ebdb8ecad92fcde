package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"strings"
)

const (
	maxNoteBytes = 1 << 20
	ntGNUBuildID = 3
)

// BuildID is the GNU build-id, nil where the file has none. It is found by
// segments, so it survives the loss of section headers.
func (f *File) BuildID() []byte {
	for _, p := range f.Segments {
		if p.Type == elf.PT_NOTE {
			if id := f.buildIDIn(p.Offset, p.Filesz); id != nil {
				return id
			}
		}
	}
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Type == elf.SHT_NOTE {
			if id := f.buildIDIn(s.Offset, s.Size); id != nil {
				return id
			}
		}
	}
	return nil
}

func (f *File) buildIDIn(off, size uint64) []byte {
	b, err := f.readAt(off, min(size, maxNoteBytes))
	if err != nil {
		return nil
	}
	for len(b) >= 12 {
		namesz, descsz := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
		kind := binary.LittleEndian.Uint32(b[8:])
		b = b[12:]
		desc := align4(namesz)
		if namesz > uint64(len(b)) || desc > uint64(len(b)) || descsz > uint64(len(b))-desc {
			return nil
		}
		if kind == ntGNUBuildID && bytes.Equal(b[:namesz], []byte("GNU\x00")) && descsz > 0 && descsz <= 64 {
			return bytes.Clone(b[desc : desc+descsz])
		}
		b = b[min(desc+align4(descsz), uint64(len(b))):]
	}
	return nil
}

func align4(n uint64) uint64 { return (n + 3) &^ 3 }

// DebugLink is the file name and checksum in .gnu_debuglink; empty and 0
// where there is none.
func (f *File) DebugLink() (name string, crc uint32) {
	s := f.Section(".gnu_debuglink")
	if s == nil || s.Size > 4096 {
		return "", 0
	}
	b, err := f.readAt(s.Offset, s.Size)
	if err != nil {
		return "", 0
	}
	name = cString(b, 0)
	at := align4(uint64(len(name)) + 1)
	if name == "" || at+4 > uint64(len(b)) {
		return "", 0
	}
	return name, binary.LittleEndian.Uint32(b[at:])
}

// Dynamic is what the dynamic section names.
type Dynamic struct {
	Soname string
	Needed []string
	// RunPath are the folders that the dynamic linker looks into first, as they
	// are written: $ORIGIN is the file's own.
	RunPath []string
	PIE     bool // DF_1_PIE
	// Present is set when there is a dynamic section at all.
	Present bool
}

const maxDynamic = 1 << 16 // entries

// Dynamic reads the dynamic section, by segments alone.
func (f *File) Dynamic() Dynamic {
	var d Dynamic
	var b []byte
	for _, p := range f.Segments {
		if p.Type == elf.PT_DYNAMIC {
			var err error
			if b, err = f.readAt(p.Offset, min(p.Filesz, maxDynamic*16)); err != nil {
				return d
			}
			break
		}
	}
	d.Present = len(b) > 0
	var strtab, strsz, soname, runpath uint64
	var needed []uint64
	for ; len(b) >= 16; b = b[16:] {
		val := binary.LittleEndian.Uint64(b[8:])
		switch elf.DynTag(binary.LittleEndian.Uint64(b)) {
		case elf.DT_NULL:
			b = nil
		case elf.DT_STRTAB:
			strtab = val
		case elf.DT_STRSZ:
			strsz = val
		case elf.DT_SONAME:
			soname = val
		case elf.DT_RUNPATH:
			runpath = val
		case elf.DT_RPATH:
			if runpath == 0 {
				runpath = val
			}
		case elf.DT_NEEDED:
			needed = append(needed, val)
		case elf.DT_FLAGS_1:
			d.PIE = val&uint64(elf.DF_1_PIE) != 0
		}
		if b == nil {
			break
		}
	}
	off, ok := f.fileOffset(strtab)
	if !ok || strsz > maxNameTable {
		return d
	}
	table, err := f.readAt(off, strsz)
	if err != nil {
		return d
	}
	if soname != 0 {
		d.Soname = cString(table, soname)
	}
	if runpath != 0 {
		d.RunPath = strings.Split(cString(table, runpath), ":")
	}
	for _, n := range needed {
		if s := cString(table, n); s != "" {
			d.Needed = append(d.Needed, s)
		}
	}
	return d
}

// fileOffset translates a loaded address.
func (f *File) fileOffset(addr uint64) (uint64, bool) {
	for _, p := range f.Segments {
		if p.Type == elf.PT_LOAD && addr >= p.Addr && addr-p.Addr < p.Filesz {
			return p.Offset + (addr - p.Addr), true
		}
	}
	return 0, false
}

// ReadAddr reads up to n bytes that are loaded at addr, fewer at a segment's
// end, none where nothing is loaded.
func (f *File) ReadAddr(addr, n uint64) []byte {
	for _, p := range f.Segments {
		if p.Type == elf.PT_LOAD && addr >= p.Addr && addr-p.Addr < p.Filesz {
			b, err := f.readAt(p.Offset+(addr-p.Addr), min(n, p.Filesz-(addr-p.Addr)))
			if err != nil {
				return nil
			}
			return b
		}
	}
	return nil
}

// Scan passes the bytes at [off, off+size) to visit in chunks of bounded size,
// each but the first beginning with the last overlap bytes of the one before,
// until visit returns false. At most limit bytes are read.
func (f *File) Scan(off, size, limit uint64, overlap int, visit func(chunk []byte) bool) error {
	const chunkSize = 1 << 20
	if off > f.size {
		return &FormatError{off, "beyond the file"}
	}
	size = min(size, limit, f.size-off)
	buf := make([]byte, overlap+int(min(size, chunkSize)))
	have := 0
	for size > 0 {
		n := int(min(size, uint64(len(buf)-have)))
		m, err := f.r.ReadAt(buf[have:have+n], int64(off))
		if m < n {
			if err == io.EOF || err == nil {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if !visit(buf[:have+n]) {
			return nil
		}
		off, size = off+uint64(n), size-uint64(n)
		have = copy(buf, buf[max(0, have+n-overlap):have+n])
	}
	return nil
}
