package modulecode

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"slices"

	"ccagent/internal/ghc"
)

// tableBytes is how much of an info table is read.
const tableBytes = ghc.ConstrDesc + ghc.InfoProfiled

// alignment is that of info pointers, in bytes: on arm64 that of instructions.
func (im *image) alignment() uint64 {
	if im.Machine == elf.EM_AARCH64 {
		return 4
	}
	return 8
}

// readTables goes through the code once. It notes which info pointers in the data are functions', and finds the info tables
// of all constructors: few have static closures.
func (im *image) readTables(ctx context.Context) error {
	infos := make([]uint64, 0, len(im.statics))
	for _, s := range im.statics {
		infos = append(infos, s.info)
	}
	slices.Sort(infos)
	step := im.alignment()
	for _, p := range im.Segments {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
			continue
		}
		first, _ := slices.BinarySearch(infos, p.Addr)
		left := infos[first:]
		end, overlap := p.Addr, 0
		err := im.Scan(p.Offset, p.Filesz, maxCode, tableBytes, func(chunk []byte) bool {
			start := end - uint64(overlap)
			end = start + uint64(len(chunk))
			for at := (start + tableBytes + step - 1) &^ (step - 1); at <= end; at += step {
				b := chunk[at-start-tableBytes : at-start]
				kind := ghc.ClosureType(binary.LittleEndian.Uint32(b[tableBytes-ghc.InfoType:]))
				switch {
				case kind.In(ghc.Constr, ghc.ConstrNoCAF):
					im.readConstructor(at, b)
				case kind == ghc.FunStatic || kind == ghc.ThunkStatic:
					for len(left) > 0 && left[0] < at {
						left = left[1:]
					}
					// The run-time system's own code serves many closures: that of string literals, from 9.4 on.
					if len(left) > 0 && left[0] == at && (len(left) == 1 || left[1] != at) {
						im.tables[at] = table{}
					}
				}
			}
			overlap = min(tableBytes, len(chunk))
			return ctx.Err() == nil
		})
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// payloadMask has the counts of pointers and other words that a constructor's info table may give: far more than any has.
const payloadMask = 0xffff_0000_ffff

// readConstructor reads what may be a constructor's info table, whose last bytes are those before the info pointer.
func (im *image) readConstructor(info uint64, b []byte) {
	if binary.LittleEndian.Uint64(b[tableBytes-ghc.InfoLayout:])&^payloadMask != 0 {
		return
	}
	desc := ghc.ConstrDesc
	if im.profiled {
		desc += ghc.InfoProfiled
	}
	name := im.text(info + uint64(int64(int32(binary.LittleEndian.Uint32(b[tableBytes-desc:])))))
	if _, ok := moduleOf(name); ok {
		im.tables[info] = table{name}
	}
}

// moduleOf is the module that a constructor's full name says it is of.
func moduleOf(full string) (m Module, ok bool) {
	unit, module, _ := ghc.SplitConstructor(full)
	if m = (Module{unit, module}); !m.valid() {
		return Module{}, false
	}
	return m, true
}
