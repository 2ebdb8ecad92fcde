package modulecode

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Encode writes the map as text, a line for each module: its first and last place in hexadecimal, whether it ends there, the
// unit, the module.
func (m *Map) Encode() []byte {
	var b bytes.Buffer
	for _, d := range m.bounds {
		fmt.Fprintf(&b, "%x %x %t %s %s\n", d.since, d.until, d.closed, d.module.Unit, d.module.Name)
	}
	return b.Bytes()
}

// Decode reads what Encode has written; nil if it is malformed.
func Decode(b []byte) *Map {
	m := &Map{}
	var last bound
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var d bound
		n, err := fmt.Sscanf(lines.Text(), "%x %x %t %s %s", &d.since, &d.until, &d.closed, &d.module.Unit, &d.module.Name)
		if n != 5 || err != nil || !d.follows(last) || !d.module.valid() {
			return nil
		}
		m.bounds, last = append(m.bounds, d), d
	}
	m.bounds = slices.Clip(m.bounds)
	return m
}

// valid reports whether the names can be a module's: printable, without spaces.
func (m Module) valid() bool {
	plain := func(s string) bool {
		return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || c == 0xfffd })
	}
	return plain(m.Unit) && plain(m.Name)
}
