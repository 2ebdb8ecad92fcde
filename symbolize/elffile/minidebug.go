package elffile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// MiniDebugSection is the section in which distributions keep the symbols of functions in a stripped
// file: an ELF file of its own, compressed (GDB manual, "Debugging information in a special section").
const MiniDebugSection = ".gnu_debugdata"

// HasMiniDebug reports whether the file has that section.
func (f *File) HasMiniDebug() bool { return f.Section(MiniDebugSection) != nil }

// MiniDebug opens the file in the section; nil where there is none. limit bounds the bytes that it
// may take.
func (f *File) MiniDebug(limit uint64) (*File, error) {
	b, err := f.UnpackMiniDebug(limit)
	if b == nil || err != nil {
		return nil, err
	}
	return f.OpenMiniDebug(b)
}

// UnpackMiniDebug decompresses the file in the section, to no more than limit bytes; nil where there is none.
func (f *File) UnpackMiniDebug(limit uint64) ([]byte, error) {
	s := f.Section(MiniDebugSection)
	if s == nil {
		return nil, nil
	}
	r, err := f.Reader(s)
	if err != nil {
		return nil, err
	}
	b, err := unxz(r, limit)
	if err != nil {
		return nil, fmt.Errorf("decompress section %q: %w", s.Name, err)
	}
	return b, nil
}

// OpenMiniDebug opens what UnpackMiniDebug gave.
func (f *File) OpenMiniDebug(b []byte) (*File, error) {
	d, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("section %q: %w", MiniDebugSection, err)
	}
	if len(f.BuildID()) > 0 && len(d.BuildID()) > 0 && !bytes.Equal(f.BuildID(), d.BuildID()) {
		return nil, fmt.Errorf("section %q is of another build", MiniDebugSection)
	}
	return d, nil
}

// maxDictionary bounds the dictionary that an xz stream asks for. xz takes 64 MB at most by its
// presets.
const maxDictionary = 64 << 20

var errXZ = errors.New("no xz stream of one block without filters")

// unxz decompresses an xz stream of one block (The .xz File Format, 1.2.1), which is what
// distributions write, to at most limit bytes. The package xz would take any dictionary that a
// stream asks for; so the headers are read here. Checksums are not looked at: what comes out is
// parsed as distrustfully as what went in.
func unxz(r io.Reader, limit uint64) ([]byte, error) {
	var head [13]byte // the stream's header, and the size of the block's
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:6]) != "\xfd7zXZ\x00" || head[12] == 0 {
		return nil, errXZ
	}
	block := make([]byte, 4*int(head[12])+3)
	if _, err := io.ReadFull(r, block); err != nil {
		return nil, errXZ
	}
	flags, rest := block[0], block[1:]
	if flags&0x3f != 0 { // one filter
		return nil, errXZ
	}
	for _, present := range []bool{flags&0x40 != 0, flags&0x80 != 0} { // compressed, uncompressed size
		if present {
			_, n := binary.Uvarint(rest)
			if n <= 0 {
				return nil, errXZ
			}
			rest = rest[n:]
		}
	}
	const lzma2 = 0x21
	if len(rest) < 3 || rest[0] != lzma2 || rest[1] != 1 {
		return nil, errXZ
	}
	dictionary, err := lzma.DecodeDictCap(rest[2])
	if err != nil || dictionary > maxDictionary {
		return nil, fmt.Errorf("dictionary of %d bytes: %w of %d", dictionary, ErrTooLarge, maxDictionary)
	}
	d, err := lzma.Reader2Config{DictCap: int(max(dictionary, lzma.MinDictCap))}.NewReader2(r)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(d, int64(limit)+1)) // grows with the data
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) > limit {
		return nil, fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)
	}
	return b, nil
}
