package worker

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"

	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/sources"

	"github.com/klauspost/compress/zstd"
)

// names are the strings of a module's files that may name a source file or a folder. The
// parent looks for them itself, and understands nothing of the files but where their
// compressed sections are: the child's claims on debug information are not trusted.
type names struct {
	all   map[string]bool // what was found; and some of what was asked for: whether it is a string's end
	text  []byte          // all that was found, each with a zero byte behind it
	room  int             // bytes of names that may still be held
	total *int            // likewise, in all modules together
	asked int             // bytes that answers may still be remembered in
	ctx   context.Context // ends the search: a file can be made so that it takes hours
}

const (
	maxNames = 64 << 20     // bytes of names of a module
	maxTotal = 2 * maxNames // of all modules
	maxAsked = 4 << 20      // bytes of remembered answers of a module
	maxFrame = 64 << 20     // bytes that one compressed info table map unpacks to
	maxScan  = 4 << 30      // bytes that are looked through
)

// findNames looks through a module's file and its debug file. limit bounds what a
// compressed section may unpack to, total the bytes of names that may still be held. What
// is found when ctx ends is all.
func findNames(ctx context.Context, m *ModuleFile, limit uint64, total *int) *names {
	n := &names{all: map[string]bool{}, room: maxNames, total: total, asked: maxAsked, ctx: ctx}
	for _, f := range []*os.File{m.File, m.Debug} {
		if f == nil {
			continue
		}
		info, err := f.Stat()
		if err != nil {
			continue
		}
		size := min(info.Size(), maxScan)
		n.scan(f, size)
		n.compressed(f, size, limit)
	}
	return n
}

// compressed looks through what no plain scan sees.
func (n *names) compressed(r io.ReaderAt, size int64, limit uint64) {
	f, err := elffile.Open(r, size)
	if err != nil {
		return
	}
	for i := range f.Sections {
		s := &f.Sections[i]
		if n.ctx.Err() != nil {
			return
		}
		if !s.Compressed() || !strings.Contains(s.Name, "debug_") {
			continue
		}
		if b, err := f.Data(s, limit); err == nil {
			n.scan(bytes.NewReader(b), int64(len(b)))
		}
	}
}

// scan takes the strings that end in a zero byte, and those in zstd frames, as which an
// info table map may hold its.
func (n *names) scan(r io.ReaderAt, size int64) {
	const piece = 1 << 20
	buf := make([]byte, 0, piece+maxPath)
	var at int64 // of buf's beginning
	for end := int64(0); end < size && n.ctx.Err() == nil; {
		want := min(size-end, int64(cap(buf)-len(buf)))
		got, err := r.ReadAt(buf[len(buf):len(buf)+int(want)], end)
		buf, end = buf[:len(buf)+got], end+int64(got)
		if got == 0 || err != nil && err != io.EOF {
			return
		}
		n.frames(r, buf, at, size)
		rest := n.strings(buf)
		if len(rest) >= maxPath {
			rest = rest[len(rest)-maxPath+1:] // no name is as long
		}
		at = end - int64(len(rest))
		buf = buf[:copy(buf, rest)]
	}
}

// strings takes the strings of b and gives what follows the last one.
func (n *names) strings(b []byte) []byte {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return b
		}
		n.add(b[max(0, i-maxPath):i])
		b = b[i+1:]
	}
}

func (n *names) add(s []byte) {
	// What has neither is no path, and most bytes of a program are no strings at all.
	if len(s) < 2 || bytes.IndexByte(s, '/') < 0 && bytes.IndexByte(s, '.') < 0 {
		return
	}
	// Where no zero byte ends what precedes a string, bytes of that stand before it, all
	// or some of them no text: numbers of a unit's header, for example.
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < ' ' || s[i] == 0x7f {
			s = s[i+1:]
			break
		}
	}
	if bytes.IndexByte(s, '/') >= 0 || sources.Named(string(s)) {
		n.put(string(s))
		return
	}
	// The info table maps of GHC before 9.2.4 have "Main.hs:3:1-20".
	if file, _, ok := strings.Cut(string(s), ":"); ok && sources.Named(file) {
		n.put(file)
	}
}

func (n *names) put(s string) {
	for _, s := range []string{s, dwarfindex.CleanPath(s)} {
		if n.all[s] || min(n.room, *n.total) < len(s) {
			continue
		}
		n.room -= len(s)
		*n.total -= len(s)
		n.all[s] = true
		n.text = append(append(n.text, s...), 0)
	}
}

// has reports whether a string was found, or is the end of one: linkers keep a string
// that is another's end only once.
func (n *names) has(s string) bool {
	if s == "" || n.ctx.Err() != nil {
		return false
	}
	known, asked := n.all[s]
	if !asked {
		known = bytes.Contains(n.text, append([]byte(s), 0))
		// Who has taken over a child asks without end.
		const entry = 64
		if n.asked -= len(s) + entry; n.asked >= 0 {
			n.all[strings.Clone(s)] = known
		}
	}
	return known
}

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// frames takes the strings of zstd frames that begin in b, which is at an offset of r.
func (n *names) frames(r io.ReaderAt, b []byte, at, size int64) {
	for i := 0; n.ctx.Err() == nil; i += len(zstdMagic) {
		next := bytes.Index(b[i:], zstdMagic)
		if next < 0 {
			return
		}
		i += next
		begin := at + int64(i)
		d, err := zstd.NewReader(io.NewSectionReader(r, begin, size-begin), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderLowmem(true), zstd.IgnoreChecksum(true))
		if err != nil {
			continue
		}
		var out bytes.Buffer
		_, _ = io.CopyN(&out, d, int64(min(maxFrame, max(n.room, 0)))) // what follows the frame is no frame: an error
		d.Close()
		n.strings(out.Bytes())
	}
}

// file reports whether a source file's path is among the names: whole, or as a folder's
// and a file's.
func (n *names) file(path string) bool {
	if n.has(path) {
		return true
	}
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if n.has(path[i+1:]) && n.has(path[:i]) {
			return true
		}
	}
	return false
}

// dir reports whether a folder is among the names.
func (n *names) dir(path string) bool { return n.has(dwarfindex.CleanPath(path)) }
