package nursery

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/agent/closures"
	"ccagent/agent/process"
	"ccagent/eventlog"
	"ccagent/heap"
	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
)

// Where a module of info tables is mapped, and where it says that it is.
const (
	bias = 0x10000
	text = 0x400000
)

// imageOf makes an image that has mapped a file with the given contents.
func imageOf(t *testing.T, contents []byte) *process.Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "module")
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	size := uint64(len(contents))
	mod := &process.Module{ID: 7, Path: path, File: f, Segments: []elffile.Segment{{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Addr: text, Filesz: size, Memsz: size}}}
	im := process.NewImage(1, 1)
	im.Mappings = []process.Mapping{{Start: text + bias, End: text + bias + size, Bias: bias, Module: mod}}
	im.RTS = mod
	return im
}

// addTable adds an info table and returns its info pointer in the process.
func addTable(contents []byte, at int, t ghc.ClosureType, ptrs, nonPtrs uint32, name string) uint64 {
	binary.LittleEndian.PutUint32(contents[at-16:], ptrs)
	binary.LittleEndian.PutUint32(contents[at-12:], nonPtrs)
	binary.LittleEndian.PutUint32(contents[at-8:], uint32(t))
	if name != "" {
		binary.LittleEndian.PutUint32(contents[at-24:], uint32(16))
		copy(contents[at+16:], name)
	}
	return uint64(text + bias + at)
}

// A block is counted by closure, each is defined once, its code is to be named, and the payload
// is nowhere in what is written.
func TestCount(t *testing.T) {
	contents := make([]byte, 4096)
	node := addTable(contents, 128, ghc.Constr20, 2, 0, "main:Main.Node")
	thunk := addTable(contents, 512, ghc.Thunk10, 1, 0, "")
	const secret = 0x7365637265740000
	w := newWalker(imageOf(t, contents), heap.Layout{Header: 1, TSO: 15, TRecChunk: 51}, closures.NewRegistry())
	words := []uint64{node, secret, secret + 1, thunk, 0, secret, node, secret, secret, secret, secret}
	var written, named []string
	emit := func(e eventlog.Event) error {
		c := e.(*eventlog.Closure)
		written = append(written, fmt.Sprintf("%d %d %#x %d %s", c.ID, c.Module, c.Addr, c.Type, c.Name))
		return nil
	}
	code := func(module uint32, addr uint64) { named = append(named, fmt.Sprintf("%d %#x", module, addr)) }
	const want = "[{1 2 48} {2 1 24} {0 1 16}]"
	for range 2 {
		counts, err := w.count(words, emit, code)
		if got := fmt.Sprint(counts); err != nil || got != want {
			t.Errorf("the block has %s, %v; want %s", got, err, want)
		}
	}
	if got := strings.Join(written, "; "); got != "1 7 0x400080 4 main:Main.Node; 2 7 0x400200 16 " {
		t.Errorf("definitions %q", got)
	}
	if got := strings.Join(named, "; "); got != "7 0x400080; 7 0x400200" {
		t.Errorf("to be named %q", got)
	}
	w.all.ForgetWritten()
	written = nil
	if _, err := w.count(words, emit, code); err != nil || len(written) != 2 {
		t.Errorf("the next log has %d definitions, %v", len(written), err)
	}
}

// A program can have figures that no nursery has.
func TestCountIsBounded(t *testing.T) {
	for _, c := range [][2]uint64{{0, 1}, {1, 0}, {1 << 40, 1 << 40}, {1<<64 - 1, 1}} {
		if n, ok := multiply(c[0], c[1], 1); ok {
			t.Errorf("%d blocks of %d capabilities are %d places", c[0], c[1], n)
		}
	}
}

// FuzzCount counts a block of any words, with any info tables in a module's file: no byte is
// counted twice, and none is left out.
func FuzzCount(f *testing.F) {
	contents := make([]byte, 256)
	node := addTable(contents, 128, ghc.Constr20, 2, 0, "main:Main.Node")
	f.Add(contents, binary.LittleEndian.AppendUint64(nil, node), false)
	f.Add(contents, binary.LittleEndian.AppendUint64(make([]byte, 8), node+8), true)
	f.Fuzz(func(t *testing.T, contents, block []byte, profiled bool) {
		l := heap.Layout{Header: 1, TSO: 15, TRecChunk: 51}
		if profiled {
			l.Header = 3
		}
		w := newWalker(imageOf(t, contents), l, closures.NewRegistry())
		var words []uint64
		for ; len(block) >= 8 && len(words) < ghc.BlockBytes/8; block = block[8:] {
			words = append(words, binary.LittleEndian.Uint64(block))
		}
		counts, err := w.count(words, func(eventlog.Event) error { return nil }, func(uint32, uint64) {})
		if err != nil {
			t.Fatal(err)
		}
		var sum int
		for _, c := range counts {
			sum += int(c.Bytes)
		}
		if sum != 8*len(words) {
			t.Errorf("%d of %d bytes are counted", sum, 8*len(words))
		}
	})
}
