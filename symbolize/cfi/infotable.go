package cfi

import (
	"debug/elf"
	"encoding/binary"

	"ccagent/symbolize/elffile"
)

// GHC's closure types, the same numbers from 8.10 to 9.14
// (rts/include/rts/storage/ClosureTypes.h).
const (
	typeConstr         = 1
	typeConstrNoCAF    = 7
	typeFun            = 8
	typeFunStatic      = 14
	typeThunk          = 15
	typeThunkSelector  = 22
	typeAP             = 24
	typeIndStatic      = 28
	typeRetSmall       = 30
	typeRetBig         = 31
	typeRetFun         = 32
	typeUpdateFrame    = 33
	typeCatchFrame     = 34
	typeUnderflowFrame = 35
	typeStopFrame      = 36
	typeBlackhole      = 38
	typeAtomically     = 55
	typeCatchRetry     = 56
	typeCatchSTM       = 57
	typeAnn            = 65
)

// text is a module's executable bytes.
type text struct {
	base uint64
	code []byte
	f    *elffile.File
	// Large bitmaps read: a file may make us read as many as it has
	// instructions.
	bitmaps int
}

const maxBitmaps = 1 << 20

func (t *text) contains(addr uint64) bool {
	return addr >= t.base && addr-t.base < uint64(len(t.code))
}

// infoKind is what code an info pointer begins.
type infoKind uint8

const (
	infoNone   infoKind = iota
	infoEntry           // of a thunk or constructor: nothing on the stack
	infoFun             // of a function
	infoReturn          // a continuation
	infoUpdate          // an update frame's
	infoRetFun          // of a saved call: the frame's size is in its second word
	infoOther           // of another frame whose size is not in its table
)

type info struct {
	kind infoKind
	// infoReturn, infoUpdate: the frame; infoFun: its arguments.
	words int
}

// infoAt reads the info table that ends at addr, if one does (tables next to
// code: rts/include/rts/storage/InfoTables.h). Prof: profiling way or not, the
// fields up to 16 bytes below are the same.
func (t *text) infoAt(addr uint64) info {
	if addr&7 != 0 || !t.contains(addr) || addr-t.base < 32 {
		return info{}
	}
	le := binary.LittleEndian
	b := t.code[addr-t.base-32:]
	layout, kind := le.Uint64(b[16:]), le.Uint32(b[24:])
	switch {
	case kind >= typeConstr && kind <= typeConstrNoCAF,
		kind >= typeThunk && kind <= typeThunkSelector:
		// Pointers and non-pointers, or a selector's offset.
		if layout>>32 > 1<<16 || layout&0xffffffff > 1<<16 {
			return info{}
		}
		return info{kind: infoEntry}
	case kind >= typeAP && kind <= typeIndStatic, kind == typeBlackhole:
		return info{kind: infoEntry}
	case kind >= typeFun && kind <= typeFunStatic:
		if n, ok := t.funWords(addr); ok {
			return info{infoFun, n}
		}
	case kind == typeUpdateFrame:
		return info{infoUpdate, 1 + int(layout&0x3f)}
	case kind == typeUnderflowFrame:
		// Its caller is in another chunk: it stands for it.
		return info{kind: infoReturn}
	case kind == typeRetSmall, kind == typeCatchFrame,
		kind >= typeAtomically && kind <= typeCatchSTM, kind == typeAnn:
		return info{infoReturn, 1 + int(layout&0x3f)}
	case kind == typeRetBig:
		if t.bitmaps++; t.bitmaps > maxBitmaps {
			return info{}
		}
		large := t.f.ReadAddr(addr+uint64(int64(int32(layout))), 8)
		if len(large) < 8 {
			return info{}
		}
		if n := le.Uint64(large); n < 1<<16 {
			return info{infoReturn, 1 + int(n)}
		}
	case kind == typeRetFun:
		return info{kind: infoRetFun}
	case kind > typeThunkSelector && kind < typeAnn:
		return info{kind: infoOther}
	}
	return info{}
}

// Words of arguments of the function types ARG_NONE … ARG_PPPPPPPP
// (rts/include/rts/storage/FunTypes.h).
var argWords = [...]int{3: 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 6, 7, 8}

const unknownWords = -1

// funWords is how many words of arguments a function takes; b begins 32 bytes
// before the info pointer, addr.
func (t *text) funWords(addr uint64) (words int, ok bool) {
	le := binary.LittleEndian
	// The profiling way has two more words between.
	for _, prof := range []uint64{0, 16} {
		if addr-t.base < 40+prof {
			break
		}
		b := t.code[addr-t.base-40-prof:]
		bitmap, funType, arity := le.Uint64(b[8:]), le.Uint32(b[16:]), le.Uint32(b[20:])
		switch {
		case arity == 0 || arity > 1<<10:
		case funType == 0: // ARG_GEN
			return int(bitmap & 0x3f), true
		case funType <= 2: // ARG_GEN_BIG, ARG_BCO
			return unknownWords, true
		case funType < uint32(len(argWords)):
			return argWords[funType], true
		}
	}
	return 0, false
}

// codePointers passes every word of data that may be a code pointer.
func (t *text) codePointers(limit uint64, visit func(addr uint64)) {
	le := binary.LittleEndian
	for _, p := range t.f.Segments {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X != 0 || p.Addr&7 != 0 {
			continue
		}
		n := min(p.Filesz, limit)
		limit -= n
		_ = t.f.Scan(p.Offset, n, n, 0, func(chunk []byte) bool {
			for ; len(chunk) >= 8; chunk = chunk[8:] {
				if a := le.Uint64(chunk); t.contains(a) {
					visit(a)
				}
			}
			return true
		})
	}
}
