package sources

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Extent is a stretch of source: lines and columns from 1, EndCol one past the
// last column. The zero Extent is unknown.
type Extent struct{ Line, Col, EndLine, EndCol uint32 }

// spanText matches spans as GHC prints them (pprUserRealSpan in
// GHC/Types/SrcLoc.hs): "3:7", "3:7-12", "(3,7)-(5,2)"; the last column is part
// of the span.
var spanText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([0-9]+):([0-9]+)(?:-([0-9]+))?|\(([0-9]+),([0-9]+)\)-\(([0-9]+),([0-9]+)\))$`)
})

// ParseExtent reads a span as GHC prints it; the zero Extent if it is none.
func ParseExtent(s string) Extent {
	m := spanText().FindStringSubmatch(s)
	if m == nil {
		return Extent{}
	}
	var n [8]uint32
	for i := 1; i < len(m); i++ {
		v, err := strconv.ParseUint(m[i], 10, 31)
		if m[i] != "" && err != nil {
			return Extent{}
		}
		n[i] = uint32(v)
	}
	var x Extent
	switch {
	case m[4] != "":
		x = Extent{n[4], n[5], n[6], n[7] + 1}
	case m[3] != "":
		x = Extent{n[1], n[2], n[1], n[3] + 1}
	default:
		x = Extent{n[1], n[2], n[1], n[2] + 1}
	}
	if x.Line == 0 || x.Col == 0 || x.EndLine < x.Line || x.EndLine == x.Line && x.EndCol <= x.Col {
		return Extent{}
	}
	return x
}

// ParseLocation reads "Main.hs:3:7-12". Without a span that can be read, there
// is no file either.
func ParseLocation(s string) (file string, x Extent) {
	for i := 0; i < len(s); i++ {
		if s[i] != ':' {
			continue
		}
		if x = ParseExtent(s[i+1:]); x != (Extent{}) {
			return strings.Clone(s[:i]), x
		}
	}
	return "", Extent{}
}
