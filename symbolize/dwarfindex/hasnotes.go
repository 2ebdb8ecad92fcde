package dwarfindex

import (
	"debug/dwarf"
	"errors"
	"io"
)

// HasNotes reports whether a unit of GHC's within the first limit bytes of
// .debug_info has a source note.
func HasNotes(info io.ReaderAt, size uint64, abbrev []byte, limit uint64) bool {
	found := false
	eachUnit(info, size, abbrev, limit, func(u *unit, t *abbrevTable) bool {
		found = u.hasNote(t)
		return !found
	})
	return found
}

// NotedUnits calls visit with the linkage names of procedures in each unit of
// GHC's that has a source note, until visit has seen enough of the unit. It looks
// at the first limit bytes of .debug_info.
func NotedUnits(info io.ReaderAt, size uint64, abbrev []byte, limit uint64, visit func(linkage string) (enough bool)) {
	eachUnit(info, size, abbrev, limit, func(u *unit, t *abbrevTable) bool {
		if u.hasNote(t) {
			u.linkageNames(t, visit)
		}
		return true
	})
}

// maxScannedUnit bounds the units that eachUnit holds, one at a time.
const maxScannedUnit = 64 << 20

// eachUnit visits the units in the first limit bytes that can be read, until
// visit returns false.
func eachUnit(info io.ReaderAt, size uint64, abbrev []byte, limit uint64, visit func(*unit, *abbrevTable) bool) {
	us := units{r: info, size: size, limit: min(limit, maxScannedUnit)}
	memo := map[abbrevKey]*abbrevTable{}
	for us.off < limit {
		u, err := us.next()
		var skip *UnitError
		if errors.As(err, &skip) {
			continue
		}
		if err != nil {
			return
		}
		k := abbrevKey{u.abbrevOff, u.addrSize, u.offsetSize, u.version}
		t, known := memo[k]
		if !known {
			if len(memo) >= maxAbbrevMemo {
				clear(memo)
			}
			t, _ = parseAbbrevs(abbrev, u.abbrevOff, u.addrSize, u.offsetSize, u.version)
			memo[k] = t
		}
		if t != nil && !visit(&u, t) {
			return
		}
	}
}

func (u *unit) linkageNames(t *abbrevTable, visit func(string) bool) {
	c := u.body
	for c.off < len(c.b) {
		code := c.uleb()
		if code == 0 {
			continue
		}
		a := t.get(code)
		if a == nil || c.bad {
			return
		}
		for _, s := range a.specs {
			if s.attr != dwarf.AttrLinkageName && s.attr != attrMIPSLinkage || s.form != formString {
				u.skipForm(&c, s.form)
				continue
			}
			if visit(string(c.cstring())) {
				return
			}
		}
	}
}

func (u *unit) hasNote(t *abbrevTable) bool {
	c := u.body
	haskell := false
	for c.off < len(c.b) {
		code := c.uleb()
		if code == 0 {
			continue
		}
		a := t.get(code)
		if a == nil || c.bad {
			return false
		}
		if a.tag == tagGHCSrcNote && haskell {
			return true
		}
		if a.fixed >= 0 {
			c.skip(uint64(a.fixed))
			continue
		}
		for _, s := range a.specs {
			if s.attr == dwarf.AttrLanguage {
				haskell = u.number(&c, s) == languageHaskell
				continue
			}
			u.skipForm(&c, s.form)
		}
		if !haskell { // not GHC's: its unit's entry comes first and says so
			return false
		}
	}
	return false
}
