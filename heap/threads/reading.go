package threads

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"ccagent/internal/ghc"
)

// Thread is a Haskell thread.
type Thread struct {
	Address  uint64 // of its TSO
	ID       uint64
	Label    string // empty if it has none, or the release keeps none in the thread
	WhatNext uint16
	Why      ghc.WhyBlocked
	// BlockInfo belongs to Why: a file descriptor, a time, or an object.
	BlockInfo uint64
	On        int    // index of the object that it waits for, in Reading.Objects; −1 for none
	InCall    uint64 // of a bound thread
	Cap       int    // index in Reading.Capabilities; −1 if that could not be read
	Stack     Stack
	// Stood is set by Check: the thread was as it is throughout. Moved is set by it if a collection may have moved the thread.
	Stood, Moved bool
	// Late is set if something of it was read that is late (Program.Late).
	Late bool

	generation int
	trec       uint64
	lateSelf   bool         // Late, but for its stack
	raw        [maxTSO]byte // as it was read
	top        [16]byte     // of the stack object: size and sp
}

// maxTSO is above the size of every release's TSO, in bytes.
const maxTSO = 32 * 8

// Ended reports whether the thread has run to its end, or was killed.
func (t *Thread) Ended() bool {
	return t.WhatNext == ghc.ThreadComplete || t.WhatNext == ghc.ThreadKilled
}

// Capability is one that threads belong to.
type Capability struct {
	Address   uint64
	Number    uint32
	InHaskell bool   // it runs Haskell code, or an unsafe foreign call
	Current   uint64 // the TSO that it runs, if InHaskell
	Task      uint64 // that holds it; 0: it is idle
	OSID      uint64 // the pthread_t of the OS thread that holds it, 0 if not known
}

// Base is what BaseReg is while the capability runs Haskell code.
func (c *Capability) Base() uint64 { return c.Address + ghc.BaseOfCapability }

// Call is a safe foreign call, or a call of Haskell from C.
type Call struct {
	TSO    uint64 // address
	OSID   uint64 // the pthread_t of its OS thread, 0 if not known
	InCall uint64
	Bound  bool // a call of Haskell from C: the thread is bound
}

// Reading is what was read of a process.
type Reading struct {
	Threads      []Thread
	Capabilities []Capability
	Objects      []Object
	Calls        []Call // of foreign calls that run, and of bound threads
	Collections  uint64 // the number of them so far
	// More is set when there are more threads than the limit.
	More bool

	generations uint64   // the address of the first
	counts      []uint64 // collections of each generation
	heads       []uint64
	byAddress   map[uint64]int
	end         uint64 // the closure that ends lists
	objects     map[uint64]int
}

// Thread returns the index of the thread whose TSO is at an address, −1 if there is none.
func (g *Reading) Thread(address uint64) int {
	if i, ok := g.byAddress[address]; ok {
		return i
	}
	return -1
}

// maxGenerations bounds the generations; the run-time system takes no larger -G that is of any use.
const maxGenerations = 64

// lists reads where the generations' lists of threads begin, and counts collections.
func (r *Reader) lists(generations uint64) (heads []uint64, collections uint64, err error) {
	heads, counts, err := r.generationLists(generations)
	for _, n := range counts {
		collections += n
	}
	return heads, collections, err
}

// generationLists does so for each generation.
func (r *Reader) generationLists(generations uint64) (heads, counts []uint64, err error) {
	for at := generations; ; {
		var raw [ghc.GenerationCollections + 4]byte
		if err := r.pages.read(at, raw[:]); err != nil {
			return nil, nil, fmt.Errorf("read generation %d: %w", len(heads), err)
		}
		if no := binary.LittleEndian.Uint32(raw[ghc.GenerationNo:]); no != uint32(len(heads)) {
			return nil, nil, fmt.Errorf("read generation %d at %#x: it says that it is number %d", len(heads), at, no)
		}
		heads = append(heads, binary.LittleEndian.Uint64(raw[ghc.GenerationThreads:]))
		counts = append(counts, uint64(binary.LittleEndian.Uint32(raw[ghc.GenerationCollections:])))
		to := binary.LittleEndian.Uint64(raw[ghc.GenerationTo:])
		if to == at {
			return heads, counts, nil
		}
		if len(heads) == maxGenerations {
			return nil, nil, fmt.Errorf("read generations: more than %d", maxGenerations)
		}
		at = to
	}
}

// Numbered reports whether what lies at an address is an array of generations, by their numbers and what follows what: for
// programs without symbols.
func (r *Reader) Numbered(at uint64) bool {
	_, _, err := r.lists(at)
	return err == nil
}

// Generations reports whether an array that is Numbered has threads at this moment. While a collection runs the lists of threads
// are taken apart, and the answer is no.
func (r *Reader) Generations(at uint64) bool {
	r.pages.forget()
	heads, _, err := r.lists(at)
	if err != nil {
		return false
	}
	some := false
	for _, head := range heads {
		switch k := r.kindOf(head); {
		case k == ghc.TSO:
			some = true
		case !k.In(ghc.Constr, ghc.ConstrNoCAF):
			return false
		}
	}
	return some
}

// Read reads all threads. generations is the value of the run-time system's variable of that name.
// An error means that nothing could be read as a whole, as while a collection runs: ErrMoving.
func (r *Reader) Read(generations uint64) (*Reading, error) {
	r.pages.begin()
	r.pages.ahead = true
	g := &Reading{generations: generations, byAddress: map[uint64]int{}, objects: map[uint64]int{}}
	var err error
	if g.heads, g.counts, err = r.generationLists(generations); err != nil {
		return nil, err
	}
	for _, n := range g.counts {
		g.Collections += n
	}
	for n, head := range g.heads {
		if err := r.list(g, n, head); err != nil {
			return nil, err
		}
	}
	if len(g.Threads) == 0 {
		return nil, ErrMoving // a program has its main thread at least
	}
	r.capabilities(g)
	for i := range g.Threads {
		t, late := &g.Threads[i], r.pages.lateUses
		r.object(g, i)
		t.Late = t.Late || r.pages.lateUses != late
		t.lateSelf = t.Late
	}
	budget := r.limits.StackWords
	for i := range g.Threads {
		t := &g.Threads[i]
		if t.Ended() {
			continue
		}
		late := r.pages.lateUses
		r.stack(g, i, &budget)
		t.Late = t.Late || r.pages.lateUses != late
	}
	return g, nil
}

// list adds the threads of a generation's list.
func (r *Reader) list(g *Reading, generation int, at uint64) error {
	for {
		switch kind := r.kindOf(at); {
		case kind == ghc.TSO:
		case kind.In(ghc.Constr, ghc.ConstrNoCAF) && (g.end == 0 || g.end == at):
			g.end = at
			return nil
		default:
			return ErrMoving
		}
		if _, again := g.byAddress[at]; again {
			return fmt.Errorf("read threads: a list comes back to the thread at %#x: %w", at, ErrMoving)
		}
		if len(g.Threads) >= r.limits.Threads {
			g.More = true
			return nil
		}
		g.byAddress[at] = len(g.Threads)
		g.Threads = append(g.Threads, Thread{})
		t := &g.Threads[len(g.Threads)-1]
		late := r.pages.lateUses
		if err := r.thread(t, at); err != nil {
			return err
		}
		t.generation, t.Late = generation, r.pages.lateUses != late
		at = binary.LittleEndian.Uint64(t.raw[r.layout.Header+ghc.TSOGlobalLink:])
	}
}

// thread reads a TSO.
func (r *Reader) thread(t *Thread, at uint64) error {
	t.Address, t.On, t.Cap = at, -1, -1
	if err := r.readTSO(at, &t.raw, &t.top); err != nil {
		return err
	}
	r.fields(t)
	if r.layout.TSOLabel != 0 {
		t.Label = r.label(binary.LittleEndian.Uint64(t.raw[r.layout.TSOLabel:]))
	}
	return nil
}

// fields sets what the TSO itself says.
func (r *Reader) fields(t *Thread) {
	l := &r.layout
	t.WhatNext = binary.LittleEndian.Uint16(t.raw[l.TSOWhatNext:])
	t.Why = ghc.WhyBlocked(binary.LittleEndian.Uint16(t.raw[l.WhyBlocked:]))
	if l.WhyBlockedWide {
		t.Why = ghc.WhyBlocked(binary.LittleEndian.Uint32(t.raw[l.WhyBlocked:]))
	}
	t.BlockInfo = binary.LittleEndian.Uint64(t.raw[l.TSOBlockInfo:])
	t.ID = binary.LittleEndian.Uint64(t.raw[l.TSOID:])
	t.InCall = binary.LittleEndian.Uint64(t.raw[l.TSOBound:])
	t.trec = binary.LittleEndian.Uint64(t.raw[l.TSOTRec:])
}

// tsoBytes is the size of a TSO.
func (r *Reader) tsoBytes() int { return min(int(r.layout.TSOWords)*8, maxTSO) }

// readTSO reads a TSO, and of its stack object size and sp.
func (r *Reader) readTSO(at uint64, raw *[maxTSO]byte, top *[16]byte) error {
	if err := r.pages.read(at, raw[:r.tsoBytes()]); err != nil {
		return fmt.Errorf("read thread at %#x: %w", at, err)
	}
	stack := binary.LittleEndian.Uint64(raw[r.layout.TSOStackObj:])
	if r.kindOf(stack) != ghc.Stack {
		return nil // the stack says so itself
	}
	return r.pages.read(stack+uint64(r.layout.StackSize), top[:])
}

// maxLabel bounds the bytes of a thread's label.
const maxLabel = 255

// label reads a label: an array of bytes.
func (r *Reader) label(at uint64) string {
	if at == 0 || r.kindOf(at) != ghc.ArrWords {
		return ""
	}
	n, err := r.field(at, 0)
	if err != nil {
		return ""
	}
	b := make([]byte, min(n, maxLabel))
	if r.pages.read(at+uint64(r.layout.Header)+8, b) != nil {
		return ""
	}
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.ToValidUTF8(string(b), "�")
}

// maxCapabilities bounds the capabilities that are read.
const maxCapabilities = 1024

// maxCalls bounds the foreign calls that are read of a capability.
const maxCalls = 1 << 16

// capabilities reads the capabilities that threads belong to.
func (r *Reader) capabilities(g *Reading) {
	known := map[uint64]int{}
	for i := range g.Threads {
		t := &g.Threads[i]
		at := binary.LittleEndian.Uint64(t.raw[r.layout.TSOCap:])
		n, ok := known[at]
		if !ok {
			n = -1
			if c, err := r.capability(at); err == nil && len(g.Capabilities) < maxCapabilities {
				n = len(g.Capabilities)
				g.Capabilities = append(g.Capabilities, c)
				r.calls(g, &g.Capabilities[n])
			}
			if len(known) < 2*maxCapabilities {
				known[at] = n
			}
		}
		t.Cap = n
		if t.InCall != 0 && !t.Ended() {
			g.Calls = append(g.Calls, Call{TSO: t.Address, InCall: t.InCall, OSID: r.osThread(t.InCall), Bound: true})
		}
	}
}

func (r *Reader) capability(at uint64) (c Capability, err error) {
	c.Address = at
	var raw [ghc.BaseInHaskell + 1]byte
	if err := r.pages.read(c.Base(), raw[:]); err != nil {
		return c, err
	}
	c.Number = binary.LittleEndian.Uint32(raw[ghc.BaseCapabilityNo:])
	if c.Number >= maxCapabilities {
		return c, fmt.Errorf("read capability at %#x: it says that it is number %d", at, c.Number)
	}
	c.InHaskell = raw[ghc.BaseInHaskell] == 1
	c.Task = binary.LittleEndian.Uint64(raw[ghc.BaseRunningTask:])
	if c.InHaskell {
		c.Current = binary.LittleEndian.Uint64(raw[ghc.BaseCurrentTSO:])
	}
	c.OSID = r.osid(c.Task)
	return c, nil
}

// calls reads the safe foreign calls of a capability's threads.
func (r *Reader) calls(g *Reading, c *Capability) {
	at, err := r.word(c.Base() + ghc.BaseSuspended)
	for n := 0; err == nil && at != 0 && n < maxCalls; n++ {
		var tso uint64
		if tso, err = r.word(at + ghc.InCallSuspendedTSO); err != nil {
			return
		}
		if g.Thread(tso) < 0 {
			return // not the list that it is taken for
		}
		g.Calls = append(g.Calls, Call{TSO: tso, InCall: at, OSID: r.osThread(at)})
		at, err = r.word(at + ghc.InCallNext)
	}
}

// osThread reads the pthread_t of the OS thread of an InCall.
func (r *Reader) osThread(incall uint64) uint64 {
	if !r.program.Threaded {
		return 0
	}
	task, err := r.word(incall + ghc.InCallTask)
	if err != nil || task == 0 {
		return 0
	}
	return r.osid(task)
}

// Running reports whether a BaseReg is that of a capability that runs Haskell code.
func (r *Reader) Running(base uint64) bool {
	r.pages.forget()
	c, err := r.capability(base - ghc.BaseOfCapability)
	return err == nil && c.InHaskell && r.kindOf(c.Current) == ghc.TSO
}

// osid reads the pthread_t of a Task; 0 if it cannot be read, or the run-time system keeps none.
func (r *Reader) osid(task uint64) uint64 {
	if !r.program.Threaded || task == 0 {
		return 0
	}
	id, err := r.word(task + ghc.TaskID)
	if err != nil {
		return 0
	}
	return id
}

// Overtaken reports whether all generations were collected since a reading: nothing that it has read is where it was.
func (r *Reader) Overtaken(g *Reading) bool {
	r.pages.forget()
	_, counts, err := r.generationLists(g.generations)
	return err == nil && len(counts) == len(g.counts) && counts[len(counts)-1] != g.counts[len(counts)-1]
}

// Check compares the process's memory with a reading, and sets Thread.Stood and Object.Stood. It
// returns ErrMoving if a collection has begun since: that moves what is of its generation or a younger one, none of which
// has stood then. The memory that is compared does not show whether a collection runs that began before the reading.
func (r *Reader) Check(g *Reading) error {
	r.pages.forget()
	_, counts, err := r.generationLists(g.generations)
	if err != nil {
		return err
	}
	if len(counts) != len(g.counts) {
		return ErrMoving
	}
	moved := -1 // the oldest generation that was collected
	for n := range counts {
		if counts[n] != g.counts[n] {
			moved, err = n, ErrMoving
		}
	}
	for i := range g.Threads {
		t := &g.Threads[i]
		if t.Stood, t.Moved = t.generation > moved, t.generation <= moved; t.Moved {
			continue
		}
		var raw [maxTSO]byte
		var top [16]byte
		if r.kindOf(t.Address) != ghc.TSO {
			t.Stood, t.Moved, err = false, true, ErrMoving
			continue
		}
		t.Stood = r.readTSO(t.Address, &raw, &top) == nil && raw == t.raw && top == t.top
	}
	for i := range g.Objects {
		o := &g.Objects[i]
		now := Object{Kind: o.Kind, Address: o.Address}
		r.examine(g, &now)
		o.Stood = o.same(&now)
		if moved >= 0 && (o.Kind == BlackHole || o.Kind == Exception) {
			o.Stood = false // a message leads to it, which a collection may have made to lead elsewhere
		}
	}
	return err
}

// Refresh reads capabilities again: which threads run now.
func (r *Reader) Refresh(g *Reading) {
	r.pages.forget()
	for i := range g.Capabilities {
		c := &g.Capabilities[i]
		if now, err := r.capability(c.Address); err == nil {
			*c = now
		}
	}
}
