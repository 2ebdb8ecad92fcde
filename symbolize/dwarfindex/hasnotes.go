package dwarfindex

import (
	"errors"
	"io"
)

// HasNotes reports whether a unit of GHC's within the first limit bytes of
// .debug_info has a source note.
func HasNotes(info io.ReaderAt, size uint64, abbrev []byte, limit uint64) bool {
	us := units{r: info, size: size, limit: limit}
	for us.off < limit {
		u, err := us.next()
		var skip *UnitError
		if errors.As(err, &skip) {
			continue
		}
		if err != nil {
			return false
		}
		t, ok := parseAbbrevs(abbrev, u.abbrevOff, u.addrSize, u.offsetSize, u.version)
		if ok && u.hasNote(t) {
			return true
		}
	}
	return false
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
			if s.attr == attrLanguage {
				haskell = u.number(&c, s) == languageHaskell
				continue
			}
			u.skipForm(&c, s.form)
		}
		if !haskell { // not GHC's: its unit's entry comes first and tells
			return false
		}
	}
	return false
}
