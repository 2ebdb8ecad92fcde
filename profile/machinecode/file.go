package machinecode

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"ccagent/profile/columns"
)

// Bounds of what is read of a file.
const (
	maxNotes = 1 << 20
	maxCode  = 1 << 15
)

// ErrOtherBuild is returned for a file that is not the one that ran.
var ErrOtherBuild = errors.New("the file is another build than the one that ran")

// File is a program's file.
type File struct {
	elf  *elf.File
	Arch elf.Machine
}

// Open opens the file of a module at a path, which may be another than the module's own. The
// close function is never nil.
func Open(path string, m *columns.Module) (f *File, done func(), err error) {
	done = func() {}
	// The path is the log's: nothing but a regular file may be opened, since opening others has
	// effects or waits.
	if st, err := os.Stat(path); err != nil {
		return nil, done, err
	} else if !st.Mode().IsRegular() {
		return nil, done, fmt.Errorf("%s is no regular file", path)
	}
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, done, err
	}
	f, err = check(r, path, m)
	if err != nil {
		return nil, done, errors.Join(err, r.Close())
	}
	return f, func() { _ = r.Close() }, nil
}

// check reads an open file's headers, and refuses another build than the module's.
func check(r *os.File, path string, m *columns.Module) (*File, error) {
	st, err := r.Stat()
	if err != nil {
		return nil, err
	}
	f, err := Read(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	switch id := f.BuildID(); {
	case len(m.BuildID) > 0 && !bytes.Equal(id, m.BuildID),
		len(m.BuildID) == 0 && (uint64(st.Size()) != m.Size || st.ModTime().UnixNano() != m.ModTime):
		return nil, fmt.Errorf("%s: %w", path, ErrOtherBuild)
	}
	return f, nil
}

// withoutSections hides the section table of a 64-bit ELF file, which is not needed: package elf would read as many headers as
// the file claims to have, and names as long as it claims.
type withoutSections struct{ io.ReaderAt }

func (w withoutSections) ReadAt(b []byte, off int64) (int, error) {
	const offset, offsetEnd, count, countEnd = 0x28, 0x30, 0x3c, 0x40 // e_shoff; e_shnum and e_shstrndx
	n, err := w.ReaderAt.ReadAt(b, off)
	for i := range b[:n] {
		if at := off + int64(i); at >= countEnd {
			break
		} else if at >= offset && at < offsetEnd || at >= count {
			b[i] = 0
		}
	}
	return n, err
}

// Read reads the headers of an ELF file for amd64 or arm64.
func Read(r io.ReaderAt) (f *File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("not an ELF file that can be read: %v", p)
		}
	}()
	e, err := elf.NewFile(withoutSections{r})
	if err != nil {
		return nil, err
	}
	if e.Machine != elf.EM_X86_64 && e.Machine != elf.EM_AARCH64 || e.Class != elf.ELFCLASS64 || e.ByteOrder != binary.LittleEndian {
		return nil, fmt.Errorf("instructions of %s are not known here, only those of amd64 and arm64", e.Machine)
	}
	return &File{e, e.Machine}, nil
}

// BuildID is the file's GNU build-id; nil if it has none.
func (f *File) BuildID() []byte {
	left := uint64(maxNotes) // of all segments
	for _, p := range f.elf.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		b := make([]byte, min(p.Filesz, left))
		left -= uint64(len(b))
		if _, err := p.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
			continue
		}
		for len(b) >= 12 {
			name, desc := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
			kind := binary.LittleEndian.Uint32(b[8:])
			at := 12 + (name+3)&^3
			end := at + (desc+3)&^3
			if at+desc > uint64(len(b)) {
				break
			}
			if kind == 3 && name == 4 && string(b[12:16]) == "GNU\x00" {
				return b[at : at+desc]
			}
			b = b[min(end, uint64(len(b))):]
		}
	}
	return nil
}

// Code reads the code at the addresses lo to hi, which are the file's own: fewer bytes where a segment ends, or
// where they are more than can be shown.
func (f *File) Code(lo, hi uint64) ([]byte, error) {
	for _, p := range f.elf.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 || lo < p.Vaddr || lo-p.Vaddr >= p.Filesz {
			continue
		}
		b := make([]byte, min(hi-min(lo, hi), p.Filesz-(lo-p.Vaddr), maxCode))
		n, err := p.ReadAt(b, int64(lo-p.Vaddr))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read code at %#x: %w", lo, err)
		}
		return b[:n], nil
	}
	return nil, fmt.Errorf("the file has no code at %#x", lo)
}
