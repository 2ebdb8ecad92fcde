package cfi

import (
	"debug/elf"
	"encoding/binary"

	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
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

// infoAt reads the info table that ends at addr, if one does. The fields that are read
// first lie at the same place in the profiling way.
func (t *text) infoAt(addr uint64) info {
	if addr&7 != 0 || !t.contains(addr) || addr-t.base < 32 {
		return info{}
	}
	le := binary.LittleEndian
	end := t.code[:addr-t.base]
	layout := le.Uint64(end[len(end)-ghc.InfoLayout:])
	kind := ghc.ClosureType(le.Uint32(end[len(end)-ghc.InfoType:]))
	switch {
	case kind.In(ghc.Constr, ghc.ConstrNoCAF), kind.In(ghc.Thunk, ghc.ThunkSelector):
		// Pointers and non-pointers, or a selector's offset.
		if layout>>32 > 1<<16 || layout&0xffffffff > 1<<16 {
			return info{}
		}
		return info{kind: infoEntry}
	case kind.In(ghc.AP, ghc.IndStatic), kind == ghc.Blackhole:
		return info{kind: infoEntry}
	case kind.In(ghc.Fun, ghc.FunStatic):
		if n, ok := t.funWords(addr); ok {
			return info{infoFun, n}
		}
	case kind == ghc.UpdateFrame:
		return info{infoUpdate, 1 + int(layout&ghc.BitmapSize)}
	case kind == ghc.UnderflowFrame:
		// Its caller is in another chunk: it stands for it.
		return info{kind: infoReturn}
	case kind == ghc.RetSmall, kind == ghc.CatchFrame,
		kind.In(ghc.AtomicallyFrame, ghc.CatchSTMFrame), kind == ghc.AnnFrame:
		return info{infoReturn, 1 + int(layout&ghc.BitmapSize)}
	case kind == ghc.RetBig:
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
	case kind == ghc.RetFun:
		return info{kind: infoRetFun}
	case kind > ghc.ThunkSelector && kind < ghc.AnnFrame:
		return info{kind: infoOther}
	}
	return info{}
}

const unknownWords = -1

// funWords is how many words of arguments the function at an info pointer takes.
func (t *text) funWords(addr uint64) (words int, ok bool) {
	le := binary.LittleEndian
	// The profiling way has two more words between.
	for _, prof := range []uint64{0, ghc.InfoProfiled} {
		if addr-t.base < 40+prof {
			break
		}
		end := t.code[:addr-t.base-prof]
		bitmap, funType := le.Uint64(end[len(end)-ghc.FunBitmap:]), le.Uint32(end[len(end)-ghc.FunArgs:])
		arity := le.Uint32(end[len(end)-ghc.FunArity:])
		switch {
		case arity == 0 || arity > 1<<10:
		case funType == ghc.ArgGen:
			return int(bitmap & ghc.BitmapSize), true
		case funType == ghc.ArgGenBig, funType == ghc.ArgBCO:
			return unknownWords, true
		default:
			if words, ok := ghc.ArgWords(funType); ok {
				return words, true
			}
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
