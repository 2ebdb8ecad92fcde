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

// RenewRunning walks the stacks of threads that run, so that the memory that they are read through may keep what is used of them. known
// is a reading before, nil if there is none, whose objects are of no use afterwards. It ends when over reports that there is no more time.
func (r *Reader) RenewRunning(running []Running, known *Reading, over func() bool) {
	r.pages.begin()
	r.pages.ahead = false
	for i := 0; i < len(running) && !over(); i++ {
		r.renewRunning(&running[i], known)
	}
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

// renewRunning reads what a thread that runs has changed since it was last suspended, and what its stack refers to.
func (r *Reader) renewRunning(run *Running, known *Reading) {
	c, err := r.capability(run.Base - ghc.BaseOfCapability)
	if err != nil {
		return
	}
	g := Reading{Threads: make([]Thread, 1)}
	if known != nil {
		g.Objects, g.objects = known.Objects, known.objects
	}
	if r.thread(&g.Threads[0], c.Current) == nil {
		r.walkRunning(&g, 0, run.Sp, renewedWords)
	}
}

// renewedWords bounds what is walked of a stack while its thread stands: what lies deeper is seldom newer than the reading before.
const renewedWords = 8 * pieceWords

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
