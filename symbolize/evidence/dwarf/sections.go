package dwarf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
)

// reader reads the sections of a file. Those that the file has compressed, as distributions'
// debug files have them, it keeps decompressed in the cache: decompressing the C library's takes
// longer than all that is done with them.
type reader struct {
	f     *elffile.File
	opt   *Options
	limit uint64            // of what may still be read, in bytes
	kept  map[string][]byte // decompressed, by the cache
	fresh map[string][]byte // decompressed now
	keeps bool
}

func newReader(f *elffile.File, limit uint64, opt *Options) *reader {
	r := &reader{f: f, opt: opt, limit: limit, fresh: map[string][]byte{}}
	info := f.DebugSection(".debug_info")
	r.keeps = info != nil && info.Compressed() && opt.Cache != nil && info.Size >= worthUnpacking
	return r
}

// load takes what the cache has kept.
func (r *reader) load() {
	if !r.keeps {
		return
	}
	r.kept = LoadParts(r.opt.Cache, r.opt.Module, sectionsMagic, r.limit)
	for _, b := range r.kept {
		r.limit -= uint64(len(b)) // together they are at most the limit
	}
}

// worthUnpacking is the size of a compressed .debug_info from which on sections are kept.
const worthUnpacking = 64 << 10

// data reads a section, nil if there is none.
func (r *reader) data(name string) ([]byte, error) {
	s := r.f.DebugSection(name)
	if s == nil {
		return nil, nil
	}
	if b, ok := r.kept[name]; ok {
		return b, nil
	}
	b, err := r.f.Data(s, r.limit)
	if err != nil {
		return nil, err
	}
	r.limit -= min(r.limit, uint64(len(b)))
	if s.Compressed() {
		r.fresh[name] = b
	}
	return b, nil
}

// sections reads the sections that the index is built from. .debug_info is read piece by piece
// where it is not compressed.
func (r *reader) sections() (dwarfindex.Sections, error) {
	var s dwarfindex.Sections
	info := r.f.DebugSection(".debug_info")
	if info == nil {
		return s, nil
	}
	if info.Compressed() {
		data, err := r.data(".debug_info")
		if err != nil {
			return s, err
		}
		s.Info, s.InfoSize = bytes.NewReader(data), uint64(len(data))
	} else {
		raw, err := r.f.Reader(info)
		if err != nil {
			return s, err
		}
		s.Info, s.InfoSize = io.ReaderAt(raw), info.Size
	}
	for _, part := range []struct {
		name string
		to   *[]byte
	}{{".debug_abbrev", &s.Abbrev}, {".debug_line", &s.Line}, {".debug_str", &s.Str}, {".debug_line_str", &s.LineStr}} {
		data, err := r.data(part.name)
		if err != nil {
			return s, err
		}
		*part.to = data
	}
	return s, nil
}

// keep keeps what was decompressed.
func (r *reader) keep() {
	if !r.keeps || len(r.fresh) == 0 {
		return
	}
	for name, b := range r.kept {
		r.fresh[name] = b
	}
	if err := StoreParts(r.opt.Cache, r.opt.Module, sectionsMagic, r.fresh); err != nil {
		r.opt.Warn("%v", err)
	}
}

// Parts that are kept, as sections are, are a magic number, and for each part its name's length, 32
// bits, its own, 64 bits, the name and its bytes; last a checksum of all, 32 bits. All is
// little-endian.
const (
	sectionsMagic = "ccagent debug sections 1\n"
	// maxSections bounds what is kept of a file, in bytes.
	maxSections = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeSections(sections map[string][]byte) []byte {
	size := len(sectionsMagic) + 4
	for name, data := range sections {
		size += 12 + len(name) + len(data)
	}
	if size > maxSections {
		return nil
	}
	le := binary.LittleEndian
	b := append(make([]byte, 0, size), sectionsMagic...)
	for name, data := range sections {
		b = le.AppendUint64(le.AppendUint32(b, uint32(len(name))), uint64(len(data)))
		b = append(append(b, name...), data...)
	}
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeSections gives kept sections, which share b. It is nil for what is none.
func decodeSections(b []byte) map[string][]byte {
	le := binary.LittleEndian
	end := len(b) - 4
	if end < 0 || !bytes.HasPrefix(b, []byte(sectionsMagic)) || crc32.Checksum(b[:end], castagnoli) != le.Uint32(b[end:]) {
		return nil
	}
	out := map[string][]byte{}
	for b = b[min(len(sectionsMagic), end):end]; len(b) > 0; {
		if len(b) < 12 {
			return nil
		}
		name, size := uint64(le.Uint32(b)), le.Uint64(b[4:])
		b = b[12:]
		if name > uint64(len(b)) || size > uint64(len(b))-name {
			return nil
		}
		out[string(b[:name])] = b[name : name+size : name+size]
		b = b[name+size:]
	}
	return out
}

// LoadParts gives what StoreParts has kept of a module's files under a name, at most limit bytes, nil
// if there is nothing.
func LoadParts(c Cache, module uint32, name string, limit uint64) map[string][]byte {
	f := c.Open(module, cacheKey(name))
	if f == nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() > maxSections || uint64(st.Size()) > limit {
		return nil
	}
	b := make([]byte, st.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil
	}
	return decodeSections(b)
}

// StoreParts keeps what was made of a module's files under a name, which says what it is and in which
// version.
func StoreParts(c Cache, module uint32, name string, parts map[string][]byte) error {
	b := encodeSections(parts)
	if b == nil {
		return nil
	}
	f, err := c.Create(module)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		f.Close()
		return fmt.Errorf("write to the cache: %w", err)
	}
	return c.Keep(module, cacheKey(name), f)
}
