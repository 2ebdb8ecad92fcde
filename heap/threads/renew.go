package threads

import (
	"encoding/binary"

	"ccagent/internal/ghc"
)

// Used are the pages of memory that the last reading used, code left out, in the order in which it first did. It is
// what has to be copied to read a process again as it was at a moment.
func (r *Reader) Used() []uint64 {
	seen := make(map[uint64]bool, len(r.pages.used))
	var out []uint64
	for _, at := range r.pages.used {
		if !seen[at] {
			seen[at] = true
			if !r.program.Code(at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// PageBytes is the size of a page of Used.
const PageBytes = pageBytes

// Running is a thread that is held while it runs Haskell code, by its registers.
type Running struct{ Base, Sp uint64 }

// RenewRunning reads where the stacks begin of threads that run, so that the memory that they are read through may keep it. It
// fails as soon as the memory does.
func (r *Reader) RenewRunning(running []Running) error {
	r.pages.begin()
	r.pages.ahead = false
	for i := range running {
		if err := r.renewRunning(&running[i]); err != nil {
			return err
		}
	}
	return nil
}

// Renew reads, to the same end, the threads that have come since a reading: they stand first in a generation's list. Where a
// generation was collected since, or one that is older, any thread may be another one. known is that reading; nil if there is none. It
// ends when over reports that there is no more time.
func (r *Reader) Renew(generations uint64, known *Reading, over func() bool) error {
	r.pages.begin()
	r.pages.ahead = false
	heads, counts, err := r.generationLists(generations)
	if err != nil {
		return err
	}
	left := r.limits.Threads
	moved := len(counts) // the oldest generation that was collected
	if known != nil && len(known.counts) == len(counts) {
		for moved--; moved >= 0 && counts[moved] == known.counts[moved]; moved-- {
		}
	}
	for n, at := range heads {
		for ; left > 0 && (n <= moved || known.Thread(at) < 0) && r.kindOf(at) == ghc.TSO && !over(); left-- {
			var t Thread
			if err := r.readTSO(at, &t.raw, &t.top); err != nil {
				return err
			}
			if c, ok := r.chunk(binary.LittleEndian.Uint64(t.raw[r.layout.TSOStackObj:])); ok {
				if err := r.touch(c.sp, c.hi); err != nil {
					return err
				}
			}
			at = binary.LittleEndian.Uint64(t.raw[r.layout.Header+ghc.TSOGlobalLink:])
		}
	}
	return nil
}

// renewRunning reads what a thread that runs has changed since it was last suspended.
func (r *Reader) renewRunning(run *Running) error {
	c, err := r.capability(run.Base - ghc.BaseOfCapability)
	if err != nil {
		return err
	}
	stack, err := r.word(c.Current + uint64(r.layout.TSOStackObj))
	if err != nil {
		return err
	}
	chunk, ok := r.chunk(stack)
	if !ok || !chunk.contains(run.Sp) {
		return nil // its walk says so
	}
	return r.touch(run.Sp, chunk.hi)
}

// touch reads a stretch of memory, or as much of it as a stack is looked at first.
func (r *Reader) touch(from, to uint64) error {
	var b [8]byte
	to = min(to, from+8*pieceWords)
	for at := from; at < to; at = at&^(pageBytes-1) + pageBytes {
		if err := r.pages.read(at, b[:]); err != nil {
			return err
		}
	}
	return nil
}
