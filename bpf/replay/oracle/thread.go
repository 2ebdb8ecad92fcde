package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ccagent/bpf/replay/snapshot"
)

// DWARF numbers of x86-64 registers.
const (
	regRBX = 3
	regRBP = 6
	regRSP = 7
	regR12 = 12
	regR13 = 13
	regR14 = 14
	regR15 = 15
	regRA  = 16
)

// Registers are the registers that unwinding follows, by DWARF number.
type Registers map[uint8]uint64

// RegistersX86 takes them from a thread's registers in ptrace's order.
func RegistersX86(r []uint64) Registers {
	return Registers{
		regR15: r[0], regR14: r[1], regR13: r[2], regR12: r[3], regRBP: r[4], regRBX: r[5],
		regRA: r[16], regRSP: r[19],
	}
}

// Top is how the youngest STG frame was found.
type Top string

const (
	TopRow    Top = "row"    // by a row of GHC's call-frame table: exact
	TopScan   Top = "scan"   // code without rows: the first word from Sp up that is a return frame's info pointer
	TopReturn Top = "return" // the next instruction returns to the frame at Sp: exact
	TopSaved  Top = "saved"  // the thread's Sp was saved by the RTS
	TopNone   Top = "none"   // there is no Haskell stack
)

// Truth is what a record of the stopped thread must contain.
type Truth struct {
	Comment    string
	Frames     []Frame
	Top        Top
	TSO        uint64
	Capability int // -1 without one
	// Shift is the distance from Sp to the youngest frame in words, Scan the number of words
	// that a scan from Sp for a return frame's info pointer would skip.
	Shift, Scan int
	// Pending is the info pointer of an update frame that is just below Sp, 0 if there is
	// none: either a thunk is about to push it and its code already runs under it, or it is
	// a leftover. Only the code determines which, so a record may begin with it or not.
	Pending uint64
	// Rows are the unwinding rows that were used, and CStack the part of the C stack that was read.
	Rows   []snapshot.Row
	CStack snapshot.Range

	// Sp and above are for From: where the STG frames begin.
	Sp    uint64
	heap  *heap
	chunk *chunk
	above int // number of frames that are not on the STG stack
}

// Beyond returns the truth for the case that the youngest STG frame is the running code's
// own, and the row that says otherwise is wrong. Up to 9.0, GHC's rows are wrong around
// unsafe foreign calls.
func (t *Truth) Beyond() (*Truth, error) {
	if t.Top != TopRow || t.above+1 >= len(t.Frames) || len(t.Rows) == 0 {
		return nil, ErrNotInHaskell
	}
	own, next := t.Frames[t.above], t.Frames[t.above+1]
	other, err := t.From(next.Sp)
	if err != nil {
		return nil, err
	}
	words := int(next.Sp-own.Sp) / 8
	other.Shift += words
	other.Rows = slices.Clone(t.Rows)
	other.Rows[len(other.Rows)-1].CFAOffset += 8 * int64(words)
	other.Comment = fmt.Sprintf("%s\nGHC's row is wrong here: the caller is %d words further up", t.Comment, words)
	return other, nil
}

// From returns the truth for the case that the youngest STG frame is at sp.
func (t *Truth) From(sp uint64) (*Truth, error) {
	if t.chunk == nil {
		return nil, ErrNotInHaskell
	}
	other := *t
	frames, err := t.heap.walk(t.chunk, sp)
	other.Frames = slices.Concat(t.Frames[:t.above], frames)
	other.Pending = 0
	return &other, err
}

// Thread is a stopped thread of a process.
type Thread struct {
	Registers Registers
	Memory    Memory
	Program   *Program
	GHC       string
	Profiled  bool
	Threaded  bool
	Text      [2]snapshot.Range
	// Task is the address of the OS thread's Task, read from a capability while the thread
	// ran Haskell code; 0 if that was not seen.
	Task uint64
}

// ErrNotInHaskell is returned if the registers are not those of Haskell code.
var ErrNotInHaskell = errors.New("registers hold no Haskell context")

const (
	offsetCurrentTSO  = 872 // StgRegTable.rCurrentTSO
	offsetCapability  = 24  // of Capability.r
	offsetNo          = 944 // Capability.no
	offsetRunningTask = 952 // Capability.running_task
)

func (t *Thread) heap() (*heap, error) {
	h := &heap{reader: reader{t.Memory}, header: 8, text: t.Text, infos: t.Program.infos}
	if t.Profiled {
		h.header = 24
	}
	// StgTSO's payload: _link, stackobj, global_link, four u16 or, from 9.10,
	// two u16 and three u32, …
	h.tsoID = h.header + 40
	minor, err := minorVersion(t.GHC)
	if err != nil {
		return nil, err
	}
	if minor >= 10 {
		h.tsoID = h.header + 48
	}
	return h, nil
}

func minorVersion(v string) (int, error) {
	rest, ok := strings.CutPrefix(v, "9.")
	digits, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("no layout is known of GHC %q", v)
	}
	return minor, nil
}

// RunningTask reads the Task from the capability of a thread that is stopped in Haskell
// code.
func (t *Thread) RunningTask() (uint64, error) {
	return reader{t.Memory}.word(t.Registers[regR13] - offsetCapability + offsetRunningTask)
}

func (h *heap) thread(tso uint64) (c *chunk, id uint64, err error) {
	info, err := h.word(tso)
	if err != nil {
		return nil, 0, err
	}
	if kind, err := h.closureType(info); err != nil || kind != closureTSO {
		return nil, 0, fmt.Errorf("no thread object at %#x: type %d, %v", tso, kind, err)
	}
	if id, err = h.word(tso + h.tsoID); err != nil {
		return nil, 0, err
	}
	stack, err := h.word(tso + h.header + 16)
	if err != nil {
		return nil, 0, err
	}
	c, err = h.chunk(stack)
	return c, id, err
}

// Walk walks the stack of a stopped thread.
func (t *Thread) Walk() (*Truth, error) {
	h, err := t.heap()
	if err != nil {
		return nil, err
	}
	truth := &Truth{Top: TopNone, Capability: -1}
	regs := Registers{}
	for k, v := range t.Registers {
		regs[k] = v
	}
	truth.CStack = snapshot.Range{Lo: regs[regRSP], Hi: regs[regRSP]}
	truth.Frames = append(truth.Frames, Frame{Kind: "pc", Address: regs[regRA]})
	pc := regs[regRA] // the address whose row is looked up
	for len(truth.Frames) < 1000 {
		row, ok := t.Program.Row(pc)
		if ok && !row.Haskell {
			truth.Rows = append(truth.Rows, row)
			more, err := unwind(h.reader, &row, regs, &truth.CStack)
			if err != nil {
				return truth, fmt.Errorf("unwind C at %#x: %w", pc, err)
			}
			if !more {
				return truth, t.context(h, truth)
			}
			truth.Frames = append(truth.Frames, Frame{Kind: "c", Address: regs[regRA]})
			pc = regs[regRA]
			if !row.Signal {
				pc--
			}
			continue
		}
		if !h.inText(pc) {
			return truth, fmt.Errorf("no unwinding row for %#x (%s)", pc, t.Program.Name(pc))
		}
		return truth, t.haskell(h, regs, row, ok, truth)
	}
	return truth, errors.New("more than 1000 C frames")
}

// haskell walks the STG stack of code with these registers.
func (t *Thread) haskell(h *heap, regs Registers, row snapshot.Row, hasRow bool, truth *Truth) error {
	base, sp := regs[regR13], regs[regRBP]
	tso, err := h.word(base + offsetCurrentTSO)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotInHaskell, err)
	}
	if tso == 0 && len(truth.Frames) > 1 {
		// In a safe call suspendThread has detached the thread, and its stack may have moved
		// since.
		return t.context(h, truth)
	}
	c, id, err := h.thread(tso)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotInHaskell, err)
	}
	if !c.contains(sp) {
		return fmt.Errorf("%w: Sp %#x is outside of the thread's stack %#x…%#x", ErrNotInHaskell, sp, c.lo, c.hi)
	}
	no, err := h.half(base - offsetCapability + offsetNo)
	if err != nil {
		return err
	}
	truth.TSO, truth.Capability = id, int(no)
	scanned, err := h.scan(c, sp)
	truth.Scan = int(scanned-sp) / 8
	top := scanned
	if hasRow {
		truth.Top = TopRow
		truth.Rows = append(truth.Rows, row)
		base, ok := regs[row.CFARegister]
		if !ok {
			return fmt.Errorf("caller's Sp by way of register %d, which is not followed", row.CFARegister)
		}
		top = base + uint64(row.CFAOffset)
		if row.Deref {
			if top, err = h.word(top); err != nil {
				return err
			}
		}
	} else {
		truth.Top = TopScan
		if returning, readErr := h.returning(regs[regRA]); readErr == nil && returning {
			truth.Top, top, err = TopReturn, sp, nil
		}
		if err != nil {
			return err
		}
	}
	// The row of a thunk's code has the caller below the thunk's own update frame. The
	// update frame shows where forcing began, so it is kept.
	size := 8 + h.header // StgUpdateFrame: header, updatee
	if info, err := c.word(top - size); err == nil && truth.Top != TopReturn {
		if kind, err := h.frameType(info); err == nil && kind == closureUpdateFrame {
			switch {
			case top-size < sp:
				truth.Pending = info
			case truth.Top == TopRow:
				top -= size
			}
		}
	}
	truth.Shift = int(int64(top-sp)) / 8
	truth.Sp, truth.heap, truth.chunk, truth.above = sp, h, c, len(truth.Frames)
	frames, err := h.walk(c, top)
	truth.Frames = append(truth.Frames, frames...)
	return err
}

// returning reports whether the instruction at pc is jmp *0(%rbp).
func (h *heap) returning(pc uint64) (bool, error) {
	code, err := h.bytes(pc, 3)
	return err == nil && code[0] == 0xff && code[1] == 0x65 && code[2] == 0, err
}

// scan searches for a return frame's info pointer, starting at sp.
func (h *heap) scan(c *chunk, sp uint64) (uint64, error) {
	for i := range uint64(topScanWords) {
		info, err := c.word(sp + 8*i)
		if err != nil {
			return sp, err
		}
		if _, err := h.frameType(info); err == nil {
			return sp + 8*i, nil
		}
	}
	return sp, fmt.Errorf("no return frame in %d words from Sp %#x", topScanWords, sp)
}

// context adds the stack of the Haskell thread that waits for this OS thread's safe foreign
// call, if there is one.
func (t *Thread) context(h *heap, truth *Truth) error {
	if t.Task == 0 {
		return nil
	}
	// Task.incall, as suspendThread reads it in 9.0.2, 9.6.6 and 9.10.3.
	offset := uint64(8)
	if minor, err := minorVersion(t.GHC); err != nil {
		return err
	} else if t.Threaded && minor >= 2 {
		offset = 128
	} else if t.Threaded {
		offset = 120
	}
	incall, err := h.word(t.Task + offset)
	if err != nil {
		return err
	}
	// struct InCall_ { StgTSO *tso, *suspended_tso; …; struct InCall_ *prev_stack @48; … }:
	// a callback, or a GC, is an InCall on top of the foreign call's.
	var tso uint64
	for n := 0; tso == 0; n++ {
		if incall == 0 || n == 1000 {
			return t.held(h, offset-8, truth)
		}
		if tso, err = h.word(incall + 8); err != nil {
			return err
		}
		if incall, err = h.word(incall + 48); err != nil {
			return err
		}
	}
	c, id, err := h.thread(tso)
	if err != nil {
		return err
	}
	truth.TSO, truth.Top = id, TopSaved
	truth.Frames = append(truth.Frames, Frame{Kind: "context"})
	frames, err := h.walk(c, c.sp)
	truth.Frames = append(truth.Frames, frames...)
	return err
}

// held finds the capability that the OS thread holds while it runs the scheduler or a GC, by the
// Task's cap, which is at an offset.
func (t *Thread) held(h *heap, offset uint64, truth *Truth) error {
	cap, err := h.word(t.Task + offset)
	if err != nil || cap == 0 {
		return err
	}
	owner, err := h.word(cap + offsetRunningTask)
	if err != nil || owner != t.Task {
		return err
	}
	no, err := h.half(cap + offsetNo)
	truth.Capability = int(no)
	return err
}

// unwind steps from a C frame to its caller. It returns false at the outermost frame.
func unwind(r reader, row *snapshot.Row, regs Registers, used *snapshot.Range) (bool, error) {
	switch row.Return.Kind {
	case snapshot.RuleUnknown:
		return false, nil
	case snapshot.RuleOther:
		return false, errors.New("return address by an expression")
	}
	if row.CFARegister == noCFA {
		return false, errors.New("CFA by an expression")
	}
	base, ok := regs[row.CFARegister]
	if !ok {
		return false, fmt.Errorf("CFA in register %d, which is not followed", row.CFARegister)
	}
	cfa := base + uint64(row.CFAOffset)
	if row.Deref {
		var err error
		if cfa, err = r.word(cfa); err != nil {
			return false, err
		}
		used.Hi = max(used.Hi, base+uint64(row.CFAOffset)+8)
	}
	old := Registers{}
	for k, v := range regs {
		old[k] = v
	}
	regs[regRSP] = cfa
	apply := func(register uint8, rule snapshot.Rule) error {
		at := cfa + uint64(rule.Offset)
		if rule.Kind == snapshot.RuleFromCFARegister {
			at = base + uint64(rule.Offset)
		}
		switch rule.Kind {
		case snapshot.RuleAt, snapshot.RuleFromCFARegister:
			v, err := r.word(at)
			if err != nil {
				return err
			}
			if at >= used.Lo && at-used.Lo < 1<<20 {
				used.Hi = max(used.Hi, at+8)
			}
			regs[register] = v
		case snapshot.RuleValue:
			regs[register] = at
		case snapshot.RuleSame:
			regs[register] = old[register]
		case snapshot.RuleUnknown, snapshot.RuleOther:
			delete(regs, register)
		}
		return nil
	}
	for _, s := range row.Saved {
		if err := apply(s.Register, s.Rule); err != nil {
			return false, err
		}
	}
	if err := apply(regRA, row.Return); err != nil {
		return false, err
	}
	return regs[regRA] != 0, nil
}
