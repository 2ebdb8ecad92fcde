package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Reader gives a section's bytes as they lie in the file: compressed sections
// stay compressed.
func (f *File) Reader(s *Section) (*io.SectionReader, error) {
	if s.Type == elf.SHT_NOBITS {
		return io.NewSectionReader(f.r, 0, 0), nil
	}
	if !f.inFile(s.Offset, s.Size) {
		return nil, &FormatError{s.Offset, fmt.Sprintf("section %q of %d bytes reaches beyond the file", s.Name, s.Size)}
	}
	return io.NewSectionReader(f.r, int64(s.Offset), int64(s.Size)), nil
}

// Compressed reports whether the section is stored compressed.
func (s *Section) Compressed() bool {
	return s.Flags&elf.SHF_COMPRESSED != 0 || bytes.HasPrefix([]byte(s.Name), []byte(".zdebug_"))
}

// Data reads a whole section, decompressed, of at most limit bytes. A larger
// one gives an error that wraps ErrTooLarge, and costs no more than limit.
func (f *File) Data(s *Section, limit uint64) ([]byte, error) {
	r, err := f.Reader(s)
	if err != nil {
		return nil, err
	}
	if !s.Compressed() {
		if s.Size > limit {
			return nil, fmt.Errorf("read section %q of %d bytes: %w of %d", s.Name, s.Size, ErrTooLarge, limit)
		}
		return f.readAt(s.Offset, s.Size)
	}
	return decompress(s, r, limit)
}

func decompress(s *Section, r *io.SectionReader, limit uint64) ([]byte, error) {
	var method elf.CompressionType
	var size uint64
	if s.Flags&elf.SHF_COMPRESSED != 0 {
		var h [24]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return nil, &FormatError{s.Offset, fmt.Sprintf("compression header of section %q is cut off", s.Name)}
		}
		method = elf.CompressionType(binary.LittleEndian.Uint32(h[:]))
		size = binary.LittleEndian.Uint64(h[8:])
	} else { // .zdebug_*: "ZLIB" and the size, big-endian
		var h [12]byte
		if _, err := io.ReadFull(r, h[:]); err != nil || string(h[:4]) != "ZLIB" {
			return nil, &FormatError{s.Offset, fmt.Sprintf("compression header of section %q", s.Name)}
		}
		method, size = elf.COMPRESS_ZLIB, binary.BigEndian.Uint64(h[4:])
	}
	if size > limit {
		return nil, fmt.Errorf("decompress section %q to %d bytes: %w of %d", s.Name, size, ErrTooLarge, limit)
	}
	var d io.Reader
	switch method {
	case elf.COMPRESS_ZLIB:
		z, err := zlib.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("decompress section %q: %w", s.Name, err)
		}
		d = z
	case elf.COMPRESS_ZSTD:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(max(limit, 1)), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, fmt.Errorf("decompress section %q: %w", s.Name, err)
		}
		defer z.Close()
		d = z
	default:
		return nil, &UnsupportedError{fmt.Sprintf("section %q is compressed by method %d", s.Name, method)}
	}
	// Grown while data arrives: the declared size alone costs nothing. What is usual for debug
	// information is taken at once.
	const usual = 4
	var buf bytes.Buffer
	buf.Grow(int(min(size, usual*s.Size, limit)) + bytes.MinRead)
	n, err := io.Copy(&buf, io.LimitReader(d, int64(size)))
	if err != nil {
		return nil, fmt.Errorf("decompress section %q: %w", s.Name, err)
	}
	if uint64(n) != size {
		return nil, &FormatError{s.Offset, fmt.Sprintf("section %q decompresses to %d of %d bytes", s.Name, n, size)}
	}
	return buf.Bytes(), nil
}

// DebugSection finds a DWARF section by its plain name (".debug_info"), also
// where it is stored under its old compressed name (".zdebug_info"). It
// returns nil where there is none.
func (f *File) DebugSection(name string) *Section {
	if s := f.Section(name); s != nil {
		return s
	}
	if len(name) > 1 {
		return f.Section(".z" + name[1:])
	}
	return nil
}
