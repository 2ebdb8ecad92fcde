package symtab

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ccagent/symbolize/coderefs"
	"ccagent/symbolize/elffile"
)

// MaxMakers bounds the places that are kept for a standard thunk. One that is made in more places is not named by them.
const MaxMakers = 64

// StandardThunk reports whether a symbol is of an info table of the run-time system's that GHC uses for thunks which only apply a
// variable to others, or take a field out of a record (rts/StgStdThunks.cmm), in place of one with source notes.
func StandardThunk(symbol string) bool {
	name, ok := strings.CutSuffix(symbol, "_info")
	if !ok {
		return false
	}
	for _, end := range []string{"_upd", "_noupd"} {
		if rest, is := strings.CutSuffix(name, end); is {
			name = rest
			break
		}
	}
	n, ap := strings.CutPrefix(name, "stg_ap_")
	if !ap {
		if n, ok = strings.CutPrefix(name, "stg_sel_"); !ok {
			return false
		}
	} else if !strings.HasSuffix(symbol, "_upd_info") {
		return false // applies on the stack
	}
	return n != "" && strings.Trim(n, "0123456789") == ""
}

// ThunkMakers gives the code of f that refers to each standard thunk's info table, by its address: where such thunks are made. Of those
// that are made in more than MaxMakers places there is nothing. All code is read for it, once for all of them: it can be kept.
func (t *Table) ThunkMakers(ctx context.Context, f *elffile.File) (map[uint64][]uint64, error) {
	if t.found.makers != nil {
		return t.found.makers, nil
	}
	var thunks []uint64
	t.all.EachNamed("stg_", "_info", func(i int, name string) {
		if s, ok := t.all.Entry(i); ok && StandardThunk(name) {
			thunks = append(thunks, s.Addr)
		}
	})
	refs, err := coderefs.Within(ctx, f, 0, ^uint64(0), thunks)
	if err != nil {
		return nil, fmt.Errorf("find where thunks are made: %w", err)
	}
	if len(refs) >= coderefs.MaxRefs {
		refs = nil
	}
	makers := map[uint64][]uint64{}
	for _, r := range refs {
		if at := thunks[r.Target]; len(makers[at]) <= MaxMakers {
			makers[at] = append(makers[at], r.From)
		}
	}
	maps.DeleteFunc(makers, func(_ uint64, from []uint64) bool { return len(from) > MaxMakers })
	for _, from := range makers {
		slices.Sort(from)
	}
	t.found.makers, t.found.fresh = makers, true
	return makers, nil
}

// encodeMakers writes varints: for each thunk, in order, the distance of its address from the one before, the number of its
// places, and of each its distance from the one before.
func encodeMakers(makers map[uint64][]uint64) []byte {
	b := []byte{}
	last := uint64(0)
	for _, at := range slices.Sorted(maps.Keys(makers)) {
		b = binary.AppendUvarint(binary.AppendUvarint(b, at-last), uint64(len(makers[at])))
		last = at
		before := uint64(0)
		for _, from := range makers[at] {
			b = binary.AppendUvarint(b, from-before)
			before = from
		}
	}
	return b
}

// decodeMakers reads what encodeMakers wrote; nil of anything else.
func decodeMakers(b []byte) map[uint64][]uint64 {
	makers, failed := map[uint64][]uint64{}, false
	next := func(before uint64, first bool) uint64 {
		x, n := binary.Uvarint(b)
		if n <= 0 || before+x < before || x == 0 && !first {
			failed = true
			return 0
		}
		b = b[n:]
		return before + x
	}
	for at, first := uint64(0), true; len(b) > 0; first = false {
		at = next(at, first)
		n := next(0, false)
		if failed || n > min(MaxMakers, uint64(len(b))) {
			return nil
		}
		from := make([]uint64, n)
		for i := range from {
			from[i] = next(from[max(i-1, 0)], i == 0)
		}
		if failed {
			return nil
		}
		makers[at] = from
	}
	return makers
}
