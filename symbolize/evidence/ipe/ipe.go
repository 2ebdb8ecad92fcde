package ipe

import (
	"ccagent/symbolize/sources"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Entry describes one info table.
type Entry struct {
	Info    uint64 // address of the code that follows the table
	Table   string // its label: "Main_zdwfac_info", "sat_s2VX_info"
	Closure uint32 // closure type, as the run-time system numbers them
	Type    string // Haskell type of the closure; empty if not known
	Label   string // binding it is of, or what is around: "fac"
	Unit    string // empty before GHC 9.10
	Module  string
	File    string         // as compiled; empty if not known
	Span    sources.Extent // zero if not known
}

// Memory is a loaded image of a file.
type Memory interface {
	// Bytes gives up to n bytes at addr, fewer at a segment's end.
	Bytes(addr, n uint64) []byte
	// Pointer gives the word at addr as it is after relocation; false if there
	// is none.
	Pointer(addr uint64) (uint64, bool)
}

// Buffer is where a module's map lies.
type Buffer struct {
	Addr uint64
	Name string // of its symbol, for messages
}

// Limits of a map, over all modules.
const (
	maxEntries = 1 << 22
	maxString  = 1 << 12
	maxBuffer  = 256 << 20
)

// ErrVersion is returned for a compiler whose layout is not known.
var ErrVersion = errors.New("the info table map of this GHC is not known")

// FormatError reports a malformed buffer, which is left out.
type FormatError struct {
	Buffer Buffer
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("info table map %s at %#x: %s", e.Buffer.Name, e.Buffer.Addr, e.Reason)
}

// Read reads the buffers of modules that a GHC of that version compiled, and
// gives their entries by address. limit bounds the bytes held. Malformed
// buffers are left out and reported by the error, which joins *FormatErrors.
func Read(ctx context.Context, mem Memory, buffers []Buffer, version string, limit uint64) ([]Entry, error) {
	layout, err := layoutOf(version)
	if err != nil {
		return nil, err
	}
	r := reader{mem: mem, room: min(limit, maxBuffer), strings: map[string]string{}}
	var errs []error
	for _, b := range buffers {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n := len(r.out)
		if reason := layout(&r, b.Addr); reason != "" {
			r.out = r.out[:n]
			if len(errs) < 8 {
				errs = append(errs, &FormatError{b, reason})
			}
		}
	}
	slices.SortStableFunc(r.out, func(a, b Entry) int { return cmp.Compare(a.Info, b.Info) })
	r.out = slices.CompactFunc(r.out, func(a, b Entry) bool { return a.Info == b.Info })
	return r.out, errors.Join(errs...)
}

type reader struct {
	mem     Memory
	room    uint64 // bytes that may still be held
	out     []Entry
	strings map[string]string // what is repeated: modules, files, types
}

// take accounts for n bytes.
func (r *reader) take(n uint64) bool {
	if n > r.room {
		return false
	}
	r.room -= n
	return true
}

// block reads n bytes at addr, or what a zstd frame there unpacks to.
func (r *reader) block(addr, n uint64, compressed bool) ([]byte, string) {
	if !r.take(n) {
		return nil, "over the memory budget"
	}
	if !compressed {
		b := r.mem.Bytes(addr, n)
		if uint64(len(b)) < n {
			return nil, fmt.Sprintf("%d bytes at %#x are not in the file", n, addr)
		}
		return b, ""
	}
	d, err := zstd.NewReader(&stream{mem: r.mem, at: addr}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err.Error()
	}
	defer d.Close()
	b, err := io.ReadAll(io.LimitReader(d, int64(n))) // grows with the data: the size alone costs nothing
	if uint64(len(b)) < n {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Sprintf("decompress at %#x: %v", addr, err)
	}
	return b, ""
}

// stream reads memory from an address on.
type stream struct {
	mem Memory
	at  uint64
}

func (s *stream) Read(p []byte) (int, error) {
	b := s.mem.Bytes(s.at, uint64(min(len(p), 64<<10)))
	if len(b) == 0 {
		return 0, io.EOF
	}
	s.at += uint64(len(b))
	return copy(p, b), nil
}

// text is the string at an offset of a table.
func (r *reader) text(table []byte, off uint32) string {
	if uint64(off) >= uint64(len(table)) {
		return ""
	}
	b := table[off:min(len(table), int(off)+maxString)]
	end := slices.Index(b, 0)
	if end < 0 {
		return ""
	}
	return r.intern(b[:end])
}

// cstring is the string at an address.
func (r *reader) cstring(addr uint64) string {
	const usual = 128
	for _, n := range [...]uint64{usual, maxString} {
		b := r.mem.Bytes(addr, n)
		if end := slices.Index(b, 0); end >= 0 {
			return r.intern(b[:end])
		}
	}
	return ""
}

// pointee is the string that the word at addr points to.
func (r *reader) pointee(addr uint64) string {
	p, ok := r.mem.Pointer(addr)
	if !ok || p == 0 {
		return ""
	}
	return r.cstring(p)
}

func (r *reader) intern(b []byte) string {
	if s, ok := r.strings[string(b)]; ok {
		return s
	}
	if !r.take(uint64(len(b)) + 64) {
		return ""
	}
	s := string(b)
	r.strings[s] = s
	return s
}
