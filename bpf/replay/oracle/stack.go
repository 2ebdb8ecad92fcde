package oracle

import (
	"encoding/binary"
	"fmt"

	"ccagent/bpf/replay/snapshot"
)

// Frame is one true frame.
type Frame struct {
	Kind    string // named like the walker's frame kinds: "return", "update", …
	Address uint64 // info pointer, PC or return address
	// Sp is the address of an STG frame, Chunk the index of its stack chunk, 0 for the
	// youngest.
	Sp    uint64
	Chunk int
}

// Closure types, from rts/include/rts/storage/ClosureTypes.h.
const (
	closureRetBCO        = 29
	closureRetSmall      = 30
	closureRetBig        = 31
	closureRetFun        = 32
	closureUpdateFrame   = 33
	closureCatchFrame    = 34
	closureUnderflow     = 35
	closureStopFrame     = 36
	closureTSO           = 52
	closureStack         = 53
	closureAtomically    = 55
	closureCatchRetry    = 56
	closureCatchSTM      = 57
	closureAnn           = 65
	infoTypeOffset       = 8  // StgInfoTable_.type, before the info pointer
	infoLayoutOffset     = 16 // StgInfoTable_.layout
	bitmapSizeMask       = 0x3f
	maxFrames            = 10_000_000
	maxChunks            = 1_000_000
	maxChunkWords        = 1 << 27
	topScanWords         = 32
	stackStructFirstWord = 16 // of StgStack's payload: stack_size and dirty, sp, stack[]
)

var frameKinds = map[uint32]string{
	closureRetBCO: "ret_bco", closureRetSmall: "return", closureRetBig: "return", closureRetFun: "ret_fun",
	closureUpdateFrame: "update", closureCatchFrame: "catch", closureUnderflow: "underflow",
	closureStopFrame: "stop", closureAtomically: "stm", closureCatchRetry: "stm", closureCatchSTM: "stm",
	closureAnn: "ann",
}

// heap is the layout of objects in a version and way of the RTS.
type heap struct {
	reader
	header uint64 // bytes
	tsoID  uint64
	text   [2]snapshot.Range
	infos  map[uint64]info // seen before; code does not change
}

// info is a closure's type and layout, from its info table.
type info struct {
	layout uint64
	kind   uint32 // closure type
}

func (h *heap) inText(address uint64) bool {
	for _, t := range h.text {
		if address >= t.Lo && address < t.Hi {
			return true
		}
	}
	return false
}

// info reads the info table of an info pointer.
func (h *heap) info(pointer uint64) (info, error) {
	if i, ok := h.infos[pointer]; ok {
		return i, nil
	}
	if !h.inText(pointer) {
		return info{}, fmt.Errorf("%#x is not in the text", pointer)
	}
	b, err := h.reader.bytes(pointer-infoLayoutOffset, infoLayoutOffset)
	if err != nil {
		return info{}, err
	}
	i := info{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[infoLayoutOffset-infoTypeOffset:])}
	h.infos[pointer] = i
	return i, nil
}

func (h *heap) closureType(pointer uint64) (uint32, error) {
	i, err := h.info(pointer)
	return i.kind, err
}

// chunk is a stack chunk, read as a whole.
type chunk struct {
	lo, hi uint64 // of stack[]
	sp     uint64 // as saved
	bytes  []byte
}

func (h *heap) chunk(stack uint64) (*chunk, error) {
	info, err := h.word(stack)
	if err != nil {
		return nil, err
	}
	if t, err := h.closureType(info); err != nil || t != closureStack {
		return nil, fmt.Errorf("no stack object at %#x: type %d, %v", stack, t, err)
	}
	words, err := h.half(stack + h.header)
	if err != nil {
		return nil, err
	}
	if words > maxChunkWords {
		return nil, fmt.Errorf("stack object at %#x of %d words", stack, words)
	}
	c := &chunk{lo: stack + h.header + stackStructFirstWord}
	c.hi = c.lo + 8*uint64(words)
	if c.sp, err = h.word(stack + h.header + 8); err != nil {
		return nil, err
	}
	c.bytes, err = h.reader.bytes(c.lo, int(8*words))
	return c, err
}

func (c *chunk) contains(sp uint64) bool { return sp >= c.lo && sp < c.hi && sp%8 == 0 }

func (c *chunk) word(address uint64) (uint64, error) {
	if !c.contains(address) {
		return 0, fmt.Errorf("%#x is outside of the stack chunk %#x…%#x", address, c.lo, c.hi)
	}
	return binary.LittleEndian.Uint64(c.bytes[address-c.lo:]), nil
}

// frameWords is stack_frame_sizeW.
func (h *heap) frameWords(c *chunk, sp, info uint64, kind uint32) (uint64, error) {
	switch kind {
	case closureRetFun:
		size, err := c.word(sp + 8)
		return 3 + size, err // StgRetFun: info, size, fun
	case closureRetBig:
		i, err := h.info(info)
		if err != nil {
			return 0, err
		}
		size, err := h.word(info + uint64(int64(int32(uint32(i.layout)))))
		return 1 + size, err
	case closureRetBCO:
		bco, err := c.word(sp + 8)
		if err != nil {
			return 0, err
		}
		// StgBCO: header, instrs, literals, ptrs, arity and size; bitmap,
		// which begins with the number of words it covers.
		size, err := h.word(bco + h.header + 32)
		return 2 + size, err
	}
	i, err := h.info(info)
	return 1 + i.layout&bitmapSizeMask, err
}

// frameType returns the closure type of a return frame, or an error if the info pointer is
// not a return frame's.
func (h *heap) frameType(info uint64) (uint32, error) {
	t, err := h.closureType(info)
	if err != nil {
		return 0, err
	}
	if _, ok := frameKinds[t]; !ok {
		return 0, fmt.Errorf("info table %#x is of closure type %d, no return frame", info, t)
	}
	return t, nil
}

// walk returns every frame from sp, which must be at one, to the stop frame.
func (h *heap) walk(c *chunk, sp uint64) ([]Frame, error) {
	var frames []Frame
	for chunks := 0; len(frames) < maxFrames; {
		info, err := c.word(sp)
		if err != nil {
			return frames, err
		}
		t, err := h.frameType(info)
		if err != nil {
			return frames, fmt.Errorf("frame %d at %#x: %w", len(frames), sp, err)
		}
		frames = append(frames, Frame{frameKinds[t], info, sp, chunks})
		switch t {
		case closureStopFrame:
			return frames, nil
		case closureUnderflow:
			if sp+16 != c.hi {
				return frames, fmt.Errorf("underflow frame at %#x is not at the end of its chunk, %#x", sp, c.hi)
			}
			next, err := c.word(sp + 8)
			if err != nil {
				return frames, err
			}
			if c, err = h.chunk(next); err != nil {
				return frames, fmt.Errorf("chunk below the underflow frame at %#x: %w", sp, err)
			}
			if chunks++; chunks > maxChunks {
				return frames, fmt.Errorf("more than %d stack chunks", maxChunks)
			}
			sp = c.sp
		default:
			words, err := h.frameWords(c, sp, info, t)
			if err != nil {
				return frames, err
			}
			if words > maxChunkWords {
				return frames, fmt.Errorf("frame at %#x of %d words", sp, words)
			}
			sp += 8 * words
		}
	}
	return frames, fmt.Errorf("more than %d frames", maxFrames)
}
