package dump

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"time"

	"ccagent/agent/process"
	"ccagent/heap/threads"
	"ccagent/internal/ghc"
)

// Generations gives the value of the run-time system's variable of that name: by its symbol, or else
// (searched) by what the program's data point to. It is 0 before the run-time system has begun.
func Generations(ctx context.Context, im *process.Image, r *threads.Reader) (at uint64, searched bool, err error) {
	symbols, err := im.RTS.RTSSymbols()
	if err != nil {
		return 0, false, err
	}
	bias := im.BiasOf(im.RTS)
	if at := symbols.Addr(ghc.SymGenerations); at != 0 {
		at, err = im.Memory.Word(at + bias)
		return at, false, err
	}
	f := finder{ctx: ctx, im: im, reader: r, left: maxData}
	for _, s := range im.RTS.Segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_W != 0 {
			f.search(s.Addr+bias, s.Memsz)
		}
	}
	// A program that collects most of the time shows its threads between two collections.
	for range findTries {
		for _, at := range f.found {
			if r.Generations(at) {
				return at, true, nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, true, context.Cause(ctx)
		case <-time.After(findWait):
		}
	}
	return 0, true, ErrNoThreads
}

// findTries is how often it is looked for threads, findWait apart.
const (
	findTries = 250
	findWait  = time.Millisecond
)

// finder searches a program's data.
type finder struct {
	ctx    context.Context
	im     *process.Image
	reader *threads.Reader
	left   int      // bytes that may be searched
	found  []uint64 // what may be generations
}

// maxFound bounds found: of data that lie, too, few look like generations.
const maxFound = 64

// maxData bounds the bytes of data that are searched. The run-time system's own lie together.
const maxData = 16 << 20

// search looks for pointers to what may be generations in a stretch of data.
func (f *finder) search(at, size uint64) {
	buf := make([]byte, 64<<10)
	tried := map[uint64]bool{}
	for size > 0 && f.left > 0 {
		if err := f.ctx.Err(); err != nil {
			return
		}
		n := min(uint64(len(buf)), size)
		if _, err := f.im.Memory.ReadAt(buf[:n], int64(at)); err != nil {
			return
		}
		for i := uint64(0); i+8 <= n; i += 8 {
			w := binary.LittleEndian.Uint64(buf[i:])
			if w < 1<<16 || w >= 1<<48 || w%8 != 0 || tried[w] {
				continue
			}
			tried[w] = true
			if len(f.found) < maxFound && f.reader.Numbered(w) {
				f.found = append(f.found, w)
			}
		}
		at, size, f.left = at+n, size-n, f.left-int(n)
	}
}
