package dwarfindex

import (
	"bytes"
	"context"
	"path"
	"sort"
)

// Place is a source position from a line table.
type Place struct {
	CompDir string
	File    string
	MD5     []byte // checksum of the file, nil if the line table has none
	Line    uint32 // 0 where the compiler did not know: code that it merged or moved

	unit uint64 // offset of the unit whose line table has it, in .debug_info
}

// placesBudget bounds the bytes of line programs that Places runs.
const placesBudget = 256 << 20

// CleanPath is a path as the index gives it: shortest, without "./" before it.
func CleanPath(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// Places finds the positions of addresses (sorted) in the line tables of units
// that are not GHC's. Addresses without one are left out.
func Places(ctx context.Context, s Sections, x *Index, addrs []uint64) map[uint64]Place {
	out := map[uint64]Place{}
	if len(addrs) == 0 {
		return out
	}
	var t lineTable
	spent := 0
	for i := range x.units {
		u := &x.units[i]
		if u.Haskell || !u.HasLines || ctx.Err() != nil || spent > placesBudget {
			continue
		}
		if u.Hi > u.Lo { // one stretch of code: skip units that hold no address
			k := sort.Search(len(addrs), func(k int) bool { return addrs[k] >= u.Lo })
			if k == len(addrs) || addrs[k] >= u.Hi {
				continue
			}
		}
		t.reset()
		if err := t.read(s.Line, u.StmtList, s.Str, s.LineStr); err != nil {
			x.problem("%v", err)
		}
		spent += 32 * (len(t.rows) + 1)
		if len(t.rows) == 0 {
			continue
		}
		first, last := t.rows[0].addr, t.rows[len(t.rows)-1].addr
		for k := sort.Search(len(addrs), func(k int) bool { return addrs[k] >= first }); k < len(addrs) && addrs[k] < last; k++ {
			row, ok := t.covering(addrs[k])
			if !ok {
				continue
			}
			if _, known := out[addrs[k]]; known {
				continue
			}
			name := t.file(row.file)
			if len(name) == 0 || bytes.IndexByte(name, 0) >= 0 {
				continue
			}
			dir := u.CompDir
			if dir == "" {
				dir = string(t.dir)
			}
			out[addrs[k]] = Place{CompDir: dir, File: CleanPath(string(name)), MD5: bytes.Clone(t.sum(row.file)), Line: row.line, unit: u.Offset}
		}
	}
	return out
}
