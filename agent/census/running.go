package census

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"

	"ccagent/agent/hold"
	"ccagent/agent/process"
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// stopped is an OS thread that was stopped.
type stopped struct {
	hold.Registers
	waited bool // in the kernel
}

// Bounds of what is read of a running thread's stacks.
const (
	maxCalls   = 64 << 10 // bytes of C's frames on those of Haskell code
	redZone    = 128      // bytes below C's stack pointer that a C function may use
	belowSp    = 64       // words below Sp that Haskell code may have written before it moves Sp, where that is not seen
	maxRunning = 1 << 20  // bytes of a stack object
	// maxStacks bounds the bytes that are read and kept of all running threads together. A word takes up to 21 characters where
	// it is sent to the child that analyses the copy: all of them take 44 MB at the most, and that child's request may have 64 MB.
	maxStacks = 16 << 20
)

// room is how many more bytes may be read of running threads.
type room uint64

// take reports whether there is room for so many bytes, and takes it.
func (r *room) take(bytes uint64) bool {
	ok := bytes <= uint64(*r)
	if ok {
		*r -= room(bytes)
	}
	return ok
}

// runCode finds out whether addresses are those to which StgRun returns.
type runCode struct {
	code  []Range // of the run-time system's module
	known map[uint64]bool
	// never is set where it is certain that no address is one: what running threads hold is never known.
	never bool
}

func newRunCode(im *process.Image) runCode {
	c := runCode{known: map[uint64]bool{}, never: runtime.GOARCH != "amd64"}
	for _, s := range im.RTS.Segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
			start := im.BiasOf(im.RTS) + s.Addr
			c.code = append(c.code, Range{start, start + s.Memsz})
		}
	}
	return c
}

// maxKnown bounds how many words are remembered that are in code.
const maxKnown = 1 << 12

// maxRunCode bounds the bytes of code in which StgRun is looked for.
const maxRunCode = 256 << 20

// can reports whether the run-time system may have an StgRun that is known here.
func (c *runCode) can(m *process.Memory) bool {
	piece := make([]byte, 1<<20)
	left := uint64(maxRunCode)
	for _, r := range c.code {
		for at := r.Start; at < r.End; at += uint64(len(piece) - len(ghc.RunCode)) { // it may lie across two pieces
			part := piece[:min(uint64(len(piece)), r.End-at)]
			if left < uint64(len(part)) {
				return true // that is not known
			}
			left -= uint64(len(part))
			if _, err := m.ReadAt(part, int64(at)); err != nil || bytes.Contains(part, ghc.RunCode) {
				return true
			}
		}
	}
	return false
}

// returns reports whether a word is the address behind a call of StgRun.
func (c *runCode) returns(m *process.Memory, word uint64) bool {
	if c.never || !slices.ContainsFunc(c.code, func(r Range) bool { return word >= r.Start+5 && word < r.End }) {
		return false
	}
	is, known := c.known[word]
	if !known && len(c.known) < maxKnown {
		var call [5]byte
		begin := make([]byte, len(ghc.RunCode))
		if _, err := m.ReadAt(call[:], int64(word-5)); err == nil && call[0] == 0xe8 {
			to := word + uint64(int64(int32(binary.LittleEndian.Uint32(call[1:]))))
			_, err = m.ReadAt(begin, int64(to))
			is = err == nil && bytes.Equal(begin, ghc.RunCode)
		}
		c.known[word] = is
	}
	return is
}

// cStack is what an OS thread has on its C stack for the Haskell code that it runs.
type cStack struct {
	*stopped
	calls []uint64 // words of C functions that the code has called
	// room is words that the code itself keeps there, from the lower end on. The upper half of the room is left out: no code is
	// known that keeps so much, and it is where the collector's functions had their own before.
	room []uint64
}

// cStackOf finds what is on the C stack of an OS thread that runs Haskell code, or C code for it; false if it does neither, or that
// is too deep in C code, or there is no more room.
func (r *Reader) cStackOf(t *stopped, left *room) (c cStack, ok bool) {
	const most = redZone + maxCalls + ghc.RunReturn + 8
	words := make([]uint64, 0, most/8)
	from := (t.CSp - redZone) &^ 7
	if t.CSp < redZone || t.CSp%8 != 0 {
		return c, false
	}
	piece := make([]uint64, 512)
	for at := redZone/8 + ghc.RunReturn/8; ; at++ {
		for at >= len(words) {
			if len(words) >= most/8 {
				return c, false
			}
			// A page at a time: the stack may end.
			start := from + 8*uint64(len(words))
			piece = piece[:(4096-start%4096)/8]
			if !left.take(8*uint64(len(piece))) || r.Memory.Words(start, piece) != nil {
				return c, false
			}
			words = append(words, piece...)
			piece = piece[:cap(piece)]
		}
		if r.run.returns(r.Memory, words[at]) {
			room := at - ghc.RunReturn/8
			c = cStack{stopped: t, calls: words[:room], room: words[room : room+ghc.RunRoom/2/8]}
			if room == redZone/8 {
				c.calls = nil // it runs Haskell code, which uses nothing below
			}
			return c, true
		}
	}
}

// has reports whether a word is in a register, or in what C functions have put away.
func (c *cStack) has(word uint64) bool {
	return slices.Contains(c.General, word) || slices.Contains(c.calls, word)
}

// between visits the words in registers, and in what C functions have put away, that are addresses of words from one up to another.
func (c *cStack) between(from, to uint64, visit func(uint64)) {
	for _, all := range [][]uint64{c.General, c.calls} {
		for _, w := range all {
			if w >= from && w < to && w%8 == 0 {
				visit(w)
			}
		}
	}
}

// running finds what the threads hold that run Haskell code, of capabilities of which these BaseRegs are given, each once. unknown
// counts those of which that was not found.
func (r *Reader) running(bases []uint64, all map[int]*stopped) (found []heap.Running, unknown int) {
	if len(bases) == 0 {
		return nil, 0
	}
	left := room(maxStacks)
	threads := r.candidates(all)
	for _, base := range bases {
		run, ok := r.runningOf(base, threads, &left)
		if ok {
			found = append(found, run)
		} else {
			unknown++
		}
	}
	return found, unknown
}

// candidates are the OS threads that may run Haskell code, by pthread id. In a program that is not threaded, any may be the one
// that runs all of it: there they are all under 0, the first that the program had before the others.
func (r *Reader) candidates(all map[int]*stopped) map[uint64][]*stopped {
	order := slices.Sorted(maps.Keys(all))
	if i := slices.Index(order, r.PID); i > 0 {
		order = slices.Insert(slices.Delete(order, i, i+1), 0, r.PID)
	}
	threads := map[uint64][]*stopped{}
	for _, tid := range order {
		id := uint64(0)
		if r.threaded {
			id = all[tid].Thread
		}
		threads[id] = append(threads[id], all[tid])
	}
	return threads
}

// runningOf finds the OS thread that works for a capability, and what the Haskell thread holds that it runs. It is no candidate
// for another capability then.
func (r *Reader) runningOf(base uint64, threads map[uint64][]*stopped, left *room) (run heap.Running, ok bool) {
	id := uint64(0)
	if r.threaded {
		task, err := r.Memory.Word(base + ghc.BaseRunningTask)
		if err != nil {
			return run, false
		}
		if id, err = r.Memory.Word(task + ghc.TaskID); err != nil {
			return run, false
		}
	}
	for i, t := range threads[id] {
		// What the kernel has of a thread that waits in the scheduler is not read: Haskell code is only below it.
		if c, found := r.cStackOf(t, left); found && c.isOf(base) {
			threads[id] = slices.Delete(threads[id], i, i+1)
			return r.runs(base, &c, left)
		}
	}
	return run, false
}

// isOf reports whether the OS thread may run the capability that has this BaseReg.
func (c *cStack) isOf(base uint64) bool {
	return c.calls == nil && c.Base == base || c.calls != nil && c.has(base)
}

// runs reads what the thread holds that a capability runs; false if what its registers say is not of a thread that runs, as
// where it begins or ends to, or if there is no more room.
func (r *Reader) runs(base uint64, c *cStack, left *room) (run heap.Running, ok bool) {
	var regs [ghc.BaseRegisters]uint64
	word := func(at uint64) (w uint64) {
		if ok {
			var err error
			w, err = r.Memory.Word(at)
			ok = err == nil
		}
		return w
	}
	ok = true
	run.TSO = word(base + ghc.BaseCurrentTSO)
	run.Stack = word(run.TSO + uint64(r.layout.TSOStackObj))
	size := word(run.Stack+uint64(r.layout.StackSize)) & (1<<32 - 1)
	block := word(base + ghc.BaseCurrentNursery)
	start, free, blocks := word(block+ghc.BlockStart), word(block+ghc.BlockFree), word(block+ghc.BlockCount)&(1<<32-1)
	low := run.Stack + uint64(r.layout.StackFirst)
	end := start + blocks*ghc.BlockBytes
	if !ok || size > maxRunning/8 || blocks > ghc.BlocksPerMegablock || free < start || free > end || free%8 != 0 || r.Memory.Words(base, regs[:]) != nil {
		return run, false
	}
	high := low + 8*size
	hp := uint64(0) // the last word that is allocated
	if run.Exact = c.calls == nil; run.Exact {
		run.Sp, hp = c.Sp, c.Hp
		run.Code = []uint64{c.PC}
	} else { // C functions put Sp and Hp away, but not where nobody finds them
		run.Sp = high
		c.between(low, high, func(w uint64) { run.Sp = min(run.Sp, w) })
		c.between(free-8, end, func(w uint64) { hp = max(hp, w) })
		run.Code = append([]uint64{c.PC}, c.calls...) // behind a call, or in what the kernel keeps for a signal's handler
	}
	// Where a heap check fails, Hp is beyond the block.
	if run.Sp < low || run.Sp >= high || run.Sp%8 != 0 || hp+8 < free || hp >= end+ghc.BlockBytes || hp%8 != 0 {
		return run, false
	}
	run.Filling = [2]uint64{free, min(hp+8, end)}
	below := uint64(8 * belowSp)
	if run.Exact {
		below = r.pushes(c.PC)
	}
	run.At = run.Sp - min(below, run.Sp-low)
	// The words that C functions have put away are kept twice: among those held, and as addresses of code.
	if !left.take(run.Filling[1] - free + high - run.At + 8*uint64(len(c.General)+2*len(c.calls)+len(c.room)+len(regs))) {
		return run, false
	}
	filled := make([]uint64, (run.Filling[1]-free)/8)
	run.Words = make([]uint64, (high-run.At)/8)
	if r.Memory.Words(free, filled) != nil || r.Memory.Words(run.At, run.Words) != nil {
		return run, false
	}
	run.Held = slices.Concat(c.General, c.calls, c.room, regs[:], filled)
	return run, true
}

// extend has groups of blocks end where threads that ran had filled them.
func extend(g *heap.Group, running []heap.Running) {
	for i := range running {
		if f := &running[i].Filling; g != nil && f[0] == g.Free && f[1] <= g.Start+uint64(g.Blocks)*ghc.BlockBytes {
			g.Free = f[1]
		}
	}
}

// prune leaves out of what threads hold that ran what is no address of the heap or of static data, and no code.
func (r *Reader) prune(d *Descriptors, running []heap.Running) {
	for i := range running {
		run := &running[i]
		in := func(w uint64, data bool) bool {
			return slices.ContainsFunc(r.segments, func(s Segment) bool { return s.Data == data && w >= s.Start && w-s.Start < s.Length })
		}
		run.Held = slices.DeleteFunc(run.Held, func(w uint64) bool { return (w < d.Space[0] || w >= d.Space[1]) && !in(w, true) })
		slices.Sort(run.Held)
		run.Held = slices.Compact(run.Held)
		run.Code = slices.DeleteFunc(run.Code, func(w uint64) bool { return !in(w, false) })
		slices.Sort(run.Code)
		run.Code = slices.Compact(run.Code)
	}
}
