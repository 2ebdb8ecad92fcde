package elftest

import (
	"strings"

	"ccagent/symbolize/elffile"
)

// Symbols are symbols that a test makes up, in place of a file's table.
type Symbols []elffile.Symbol

// Len is their number.
func (s Symbols) Len() int { return len(s) }

// Entry gives one.
func (s Symbols) Entry(i int) (elffile.Symbol, bool) { return s[i], true }

// Symbol gives one.
func (s Symbols) Symbol(i int) elffile.Symbol { return s[i] }

// Find knows nothing without looking at all.
func (s Symbols) Find(string) (defined, known bool) { return false, false }

// EachNamed visits those whose names contain a part and end in a suffix.
func (s Symbols) EachNamed(part, suffix string, visit func(i int, name string)) {
	for i := range s {
		if strings.Contains(s[i].Name, part) && strings.HasSuffix(s[i].Name, suffix) {
			visit(i, s[i].Name)
		}
	}
}
