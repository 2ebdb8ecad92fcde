package cfi

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/symbolize/elffile"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

func compile(tb testing.TB, path string, limits Limits) *Table {
	tb.Helper()
	t, err := Compile(elftest.Open(tb, path), limits)
	if err != nil {
		tb.Fatalf("compile %s: %v", path, err)
	}
	return t
}

// Where image puts things.
const (
	textAddr  = 0x401000
	frameAddr = 0x500000
	hdrAddr   = 0x600000
	dataAddr  = 0x700000
)

// image is a small ELF file in the making.
type image struct {
	machine            elf.Machine // x86-64 if 0
	text, eh, dbg, hdr []byte
	data               []byte
	noSections         bool
}

// bytes lays the file out: header, segments, contents, sections.
func (m *image) bytes() []byte {
	le := binary.LittleEndian
	type part struct {
		name  string
		addr  uint64
		data  []byte
		flags elf.ProgFlag
		seg   elf.ProgType
		off   int
	}
	parts := []part{
		{".text", textAddr, m.text, elf.PF_R | elf.PF_X, elf.PT_LOAD, 0},
		{".eh_frame", frameAddr, m.eh, elf.PF_R, elf.PT_LOAD, 0},
		{".eh_frame_hdr", hdrAddr, m.hdr, elf.PF_R, elf.PT_LOAD, 0},
		{".data", dataAddr, m.data, elf.PF_R | elf.PF_W, elf.PT_LOAD, 0},
		{".eh_frame_hdr", hdrAddr, m.hdr, elf.PF_R, ptGNUEHFrame, 0},
		{".debug_frame", 0, m.dbg, 0, 0, 0},
	}
	out := make([]byte, 64+56*5)
	for i := range parts {
		for len(out)%16 != 0 {
			out = append(out, 0)
		}
		parts[i].off = len(out)
		out = append(out, parts[i].data...)
	}
	for i, p := range parts[:5] {
		h := out[64+56*i:]
		le.PutUint32(h, uint32(p.seg))
		le.PutUint32(h[4:], uint32(p.flags))
		le.PutUint64(h[8:], uint64(p.off))
		le.PutUint64(h[16:], p.addr)
		le.PutUint64(h[32:], uint64(len(p.data)))
		le.PutUint64(h[40:], uint64(len(p.data)))
	}
	names := []byte{0}
	sections := make([]byte, 64)
	section := func(name string, kind elf.SectionType, flags elf.SectionFlag, addr uint64, off, size int) {
		h := make([]byte, 64)
		le.PutUint32(h, uint32(len(names)))
		names = append(append(names, name...), 0)
		le.PutUint32(h[4:], uint32(kind))
		le.PutUint64(h[8:], uint64(flags))
		le.PutUint64(h[16:], addr)
		le.PutUint64(h[24:], uint64(off))
		le.PutUint64(h[32:], uint64(size))
		sections = append(sections, h...)
	}
	for i, p := range parts {
		if i == 4 {
			continue
		}
		flags := elf.SHF_ALLOC
		switch p.name {
		case ".text":
			flags |= elf.SHF_EXECINSTR
		case ".debug_frame":
			flags = 0
		}
		section(p.name, elf.SHT_PROGBITS, flags, p.addr, p.off, len(p.data))
	}
	section(".shstrtab", elf.SHT_STRTAB, 0, 0, len(out), 0)
	le.PutUint64(sections[len(sections)-32:], uint64(len(names)))
	out = append(out, names...)
	sectionsAt := len(out)
	out = append(out, sections...)

	machine := m.machine
	if machine == 0 {
		machine = elf.EM_X86_64
	}
	copy(out, elf.ELFMAG)
	out[4], out[5], out[6] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	le.PutUint16(out[16:], uint16(elf.ET_EXEC))
	le.PutUint16(out[18:], uint16(machine))
	le.PutUint64(out[32:], 64)
	le.PutUint16(out[54:], 56)
	le.PutUint16(out[56:], 5)
	if !m.noSections {
		n := len(sections) / 64
		le.PutUint64(out[40:], uint64(sectionsAt))
		le.PutUint16(out[58:], 64)
		le.PutUint16(out[60:], uint16(n))
		le.PutUint16(out[62:], uint16(n-1))
	}
	return out
}

func (m *image) compile(limits Limits) (*Table, error) {
	b := m.bytes()
	f, err := elffile.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	return Compile(f, limits)
}

// frames writes frame sections entry by entry.
type frames struct {
	b  []byte
	eh bool
}

func (f *frames) entry(body []byte) int {
	at := len(f.b)
	for (len(body)+4)%8 != 0 {
		body = append(body, frame.DW_CFA_nop)
	}
	f.b = binary.LittleEndian.AppendUint32(f.b, uint32(len(body)))
	f.b = append(f.b, body...)
	return at
}

// cie writes common information; its code addresses are absolute, 8 bytes.
func (f *frames) cie(augmentation string, dataAlign int8, ra uint8, code ...byte) int {
	id := uint32(0xffffffff)
	if f.eh {
		id = 0
	}
	b := binary.LittleEndian.AppendUint32(nil, id)
	b = append(b, 3)
	b = append(append(b, augmentation...), 0)
	b = append(b, 1, byte(dataAlign)&0x7f, ra)
	if augmentation != "" {
		b = append(b, 0) // no augmentation data
	}
	return f.entry(append(b, code...))
}

func (f *frames) fde(cie int, sized bool, lo, size uint64, code ...byte) {
	le := binary.LittleEndian
	id := uint32(cie)
	if f.eh {
		id = uint32(len(f.b) + 4 - cie)
	}
	b := le.AppendUint32(nil, id)
	b = le.AppendUint64(b, lo)
	b = le.AppendUint64(b, size)
	if sized {
		b = append(b, 0)
	}
	f.entry(append(b, code...))
}

// setLoc is a DW_CFA_set_loc.
func setLoc(addr uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{frame.DW_CFA_set_loc}, addr)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
