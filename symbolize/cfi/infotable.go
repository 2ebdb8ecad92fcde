package cfi

import (
	"debug/elf"
	"encoding/binary"

	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
)

// text is a module's executable bytes, or a part of them.
type text struct {
	base uint64
	code []byte
	f    *elffile.File
	far  *farTables // nil if all of the code is here
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

// infoAt reads the info table that ends at addr, if one does.
func (t *text) infoAt(addr uint64) info {
	switch {
	case addr&7 != 0:
		return info{}
	case t.contains(addr) && (t.far == nil || addr-t.base >= maxTableBytes):
		return t.infoBefore(addr, t.code[:addr-t.base])
	case t.far != nil && t.far.contains(addr):
		return t.far.infoAt(t, addr)
	}
	return info{}
}

// maxTableBytes is how much of an info table is read: a function's of the profiling way.
const maxTableBytes = 40 + ghc.InfoProfiled

// farTables reads info tables of code that is not in a text.
type farTables struct {
	lo, hi uint64 // all of the code
	known  map[uint64]info
}

// maxFarTables bounds the tables that are remembered.
const maxFarTables = 1 << 16

func (far *farTables) contains(addr uint64) bool { return addr >= far.lo && addr < far.hi }

func (far *farTables) infoAt(t *text, addr uint64) info {
	in, ok := far.known[addr]
	if !ok {
		n := min(maxTableBytes, addr-far.lo)
		if b := t.f.ReadAddr(addr-n, n); uint64(len(b)) == n {
			in = t.infoBefore(addr, b)
		}
		if len(far.known) < maxFarTables {
			far.known[addr] = in
		}
	}
	return in
}

// infoBefore reads the info table that ends at addr, the end of the bytes. The fields that are
// read first lie at the same place in the profiling way.
func (t *text) infoBefore(addr uint64, end []byte) info {
	if len(end) < 32 {
		return info{}
	}
	le := binary.LittleEndian
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
		if n, ok := funWords(end); ok {
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

// funWords is how many words of arguments the function takes whose info table ends the bytes.
func funWords(table []byte) (words int, ok bool) {
	le := binary.LittleEndian
	// The profiling way has two more words between.
	for _, prof := range []int{0, ghc.InfoProfiled} {
		if len(table) < 40+prof {
			break
		}
		end := table[:len(table)-prof]
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

// codePointers passes every word of data that may be a pointer to code from lo to hi.
func codePointers(f *elffile.File, lo, hi, limit uint64, visit func(addr uint64)) {
	le := binary.LittleEndian
	for _, p := range f.Segments {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X != 0 || p.Addr&7 != 0 {
			continue
		}
		n := min(p.Filesz, limit)
		limit -= n
		_ = f.Scan(p.Offset, n, n, 0, func(chunk []byte) bool {
			for ; len(chunk) >= 8; chunk = chunk[8:] {
				if a := le.Uint64(chunk); a >= lo && a < hi {
					visit(a)
				}
			}
			return true
		})
	}
}
