package dwarfindex

import (
	"regexp"
	"testing"

	"ccagent/internal/testprog"
)

var internalLabel = regexp.MustCompile(`^(_.*|[a-zA-Z][0-9A-Za-z]*_[a-z]+)$`)

// TestSymbolsAndBlocks checks against the symbol table, which the linker made:
// at an exported procedure's symbol lies a block of that procedure, and a
// procedure whose symbol was dropped has no live code; whether procedures have a
// section each or not, and wherever dropped ones say they are.
func TestSymbolsAndBlocks(t *testing.T) {
	testprog.Each(t, func(t *testing.T, release string) {
		for name, flags := range map[string][]string{
			"one section":    nil,
			"split sections": {"-split-sections", "-optl-Wl,--gc-sections"},
		} {
			exe := testprog.Build(t, "example", testprog.Options{Release: release, Flags: flags})
			x, f := build(t, exe)
			syms, err := f.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			at := map[string]uint64{}
			for _, s := range syms {
				at[s.Name] = s.Value
			}
			kept, dropped := 0, 0
			for i := 1; i <= x.Procs(); i++ {
				p := x.Proc(ProcID(i))
				if internalLabel.MatchString(p.Linkage) {
					continue // in no symbol table
				}
				addr, ok := at[p.Linkage]
				switch {
				case ok:
					kept++
					if b := x.Lookup(addr); b == NoBlock || x.Block(b).Proc != p.ID {
						t.Errorf("%s: at %s (%#x) lies block %d of procedure %d, want %d", name, p.Linkage, addr, b, x.Block(b).Proc, p.ID)
					}
				case p.Live:
					t.Errorf("%s: %s has no symbol, yet live code at %#x", name, p.Linkage, x.Block(p.Root).Lo)
				default:
					dropped++
				}
			}
			t.Logf("%s: %d procedures with a symbol, %d dropped", name, kept, dropped)
			if kept < 15 {
				t.Errorf("%s: only %d procedures compared", name, kept)
			}
			if flags != nil && dropped == 0 {
				t.Errorf("%s: the linker dropped nothing: the program tests nothing", name)
			}
		}
	})
}
