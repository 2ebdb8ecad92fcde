package dump

import (
	"debug/elf"
	"encoding/binary"

	"ccagent/internal/ghc"
)

// find gives the value of the run-time system's variable generations: by its symbol, or else by
// what the program's data point to.
func (t *taker) find() (uint64, error) {
	symbols, err := t.im.RTS.RTSSymbols()
	if err != nil {
		return 0, err
	}
	bias := t.im.BiasOf(t.im.RTS)
	if at := symbols.Addr(ghc.SymGenerations); at != 0 {
		return t.im.Memory.Word(at + bias)
	}
	t.d.Searched = true
	left := maxData
	for _, s := range t.im.RTS.Segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_W != 0 {
			if at, ok := t.search(s.Addr+bias, s.Memsz, &left); ok {
				return at, nil
			}
		}
	}
	return 0, ErrNoThreads
}

// maxData bounds the bytes of data that are searched. The run-time system's own lie together.
const maxData = 16 << 20

// search looks for a pointer to generations with threads in a stretch of data.
func (t *taker) search(at, size uint64, left *int) (generations uint64, ok bool) {
	buf := make([]byte, 64<<10)
	tried := map[uint64]bool{}
	for size > 0 && *left > 0 {
		if err := t.ctx.Err(); err != nil {
			return 0, false
		}
		n := min(uint64(len(buf)), size)
		if _, err := t.im.Memory.ReadAt(buf[:n], int64(at)); err != nil {
			return 0, false
		}
		for i := uint64(0); i+8 <= n; i += 8 {
			w := binary.LittleEndian.Uint64(buf[i:])
			if w < 1<<16 || w >= 1<<47 || w%8 != 0 || tried[w] {
				continue
			}
			tried[w] = true
			if t.reader.Generations(w) {
				return w, true
			}
		}
		at, size, *left = at+n, size-n, *left-int(n)
	}
	return 0, false
}
