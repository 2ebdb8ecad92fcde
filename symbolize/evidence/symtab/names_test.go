package symtab

import (
	"strconv"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/symbolize/elffile"
)

// The set has each name that it was made of, however often, and no other.
func TestNames(t *testing.T) {
	var all elftest.Symbols
	for i := range 3000 {
		all = append(all, elffile.Symbol{Name: strconv.Itoa(i / 3)})
	}
	n := newNames(all)
	for i := range 3000 {
		if got := n.has(strconv.Itoa(i)); got != (i < 1000) {
			t.Errorf("%d: %v", i, got)
		}
	}
	if newNames(elftest.Symbols(nil)).has("") {
		t.Error("the empty set has a name")
	}
}
