package columns

import (
	"fmt"
	"strconv"
	"strings"
)

// Extent is a region of source text: 1-based lines and columns, EndCol one past the last
// column. The zero Extent is unknown.
type Extent struct{ Line, Col, EndLine, EndCol uint32 }

// String formats the region as "line:col-line:col", and the zero Extent as "".
func (x Extent) String() string {
	if x == (Extent{}) {
		return ""
	}
	if x.EndLine == 0 { // only the line is known
		return fmt.Sprint(x.Line)
	}
	return fmt.Sprintf("%d:%d-%d:%d", x.Line, x.Col, x.EndLine, x.EndCol)
}

// Contains reports whether x covers y.
func (x Extent) Contains(y Extent) bool {
	return !before(y.Line, y.Col, x.Line, x.Col) && !before(x.EndLine, x.EndCol, y.EndLine, y.EndCol)
}

func before(l1, c1, l2, c2 uint32) bool { return l1 < l2 || l1 == l2 && c1 < c2 }

// parseSrcLoc parses a source span as GHC prints it: "A.hs:3:5", "A.hs:3:5-9",
// "A.hs:(3,5)-(4,9)". GHC's end column is inclusive.
func parseSrcLoc(s string) (file string, x Extent, ok bool) {
	if i := strings.LastIndex(s, ":("); i > 0 {
		var nums []uint32
		for f := range strings.FieldsFuncSeq(s[i+1:], func(r rune) bool { return r < '0' || r > '9' }) {
			n, err := strconv.ParseUint(f, 10, 31)
			if err != nil {
				return "", x, false
			}
			nums = append(nums, uint32(n))
		}
		if len(nums) != 4 {
			return "", x, false
		}
		return s[:i], Extent{nums[0], nums[1], nums[2], nums[3] + 1}, true
	}
	col := strings.LastIndexByte(s, ':')
	if col < 0 {
		return "", x, false
	}
	line := strings.LastIndexByte(s[:col], ':')
	if line <= 0 {
		return "", x, false
	}
	from, to, span := strings.Cut(s[col+1:], "-")
	l, err1 := strconv.ParseUint(s[line+1:col], 10, 31)
	c, err2 := strconv.ParseUint(from, 10, 31)
	end := c
	var err3 error
	if span {
		end, err3 = strconv.ParseUint(to, 10, 31)
	}
	if err1 != nil || err2 != nil || err3 != nil {
		return "", x, false
	}
	return s[:line], Extent{uint32(l), uint32(c), uint32(l), uint32(end) + 1}, true
}
