package testprog

import (
	"debug/dwarf"
	"debug/elf"
	"sort"
	"strings"
	"testing"
)

// The programs execute the shares of instructions that their head comments claim.
func TestClaimedShares(t *testing.T) {
	t.Run("rev", func(t *testing.T) {
		by := instructions(t, "rev", "220", "100")
		if share := by["rev"] / by.sum(); share < 0.95 {
			t.Errorf("rev executes %.1f %% of the Haskell instructions, want above 95 %%\n%v", 100*share, by)
		}
	})
	t.Run("spin31", func(t *testing.T) {
		by := instructions(t, "spin31", "100")
		if ratio := by["three"] / by["one"]; ratio < 2.99 || ratio > 3.01 {
			t.Errorf("three : one = %.3f, want 3\n%v", ratio, by)
		}
		if share := (by["three"] + by["one"]) / by.sum(); share < 0.99 {
			t.Errorf("three and one execute %.1f %% of the Haskell instructions, want above 99 %%\n%v", 100*share, by)
		}
	})
	t.Run("alloc31", func(t *testing.T) {
		by := instructions(t, "alloc31", "100")
		if ratio := by["three"] / by["one"]; ratio < 2.9 || ratio > 3.1 {
			t.Errorf("three : one = %.3f, want about 3\n%v", ratio, by)
		}
	})
}

type counts map[string]float64

func (c counts) sum() (s float64) {
	for _, n := range c {
		s += n
	}
	return s
}

// instructions counts, for each top-level source binding of the program's own modules,
// the instructions executed in its code and in that of its local bindings. Callgrind
// counts by address; the program's debug information says whose address it is.
func instructions(t *testing.T, name string, args ...string) counts {
	exe := Build(t, name, Options{Flags: []string{"-optl-no-pie"}})
	costs := CountInstructions(t, exe, args...)
	owners := ownersOf(t, exe)
	by := counts{}
	for addr, n := range costs {
		i := sort.Search(len(owners), func(i int) bool { return owners[i].lo > addr }) - 1
		if i >= 0 && addr < owners[i].hi {
			by[owners[i].name] += n
		}
	}
	if len(by) == 0 {
		t.Fatalf("callgrind counted nothing in the code of %s", name)
	}
	return by
}

type owner struct {
	lo, hi uint64
	name   string
}

// ownersOf lists the lexical blocks of GHC's code by address, each with the top-level
// binding that it was made from.
func ownersOf(t *testing.T, exe string) []owner {
	const (
		attrTickParent = dwarf.Attr(0x2b20)
		languageGHC    = 0x18
	)
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	type procedure struct {
		name   string
		parent dwarf.Offset // of the enclosing block; 0 = top level
	}
	var (
		procedures = map[dwarf.Offset]procedure{}
		inside     = map[dwarf.Offset]dwarf.Offset{} // block to its procedure
		blocks     []owner
		offsets    []dwarf.Offset
		current    dwarf.Offset
		haskell    bool
	)
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		switch e.Tag {
		case dwarf.TagCompileUnit:
			lang, _ := e.Val(dwarf.AttrLanguage).(int64)
			haskell = lang == languageGHC
		case dwarf.TagSubprogram:
			if !haskell {
				continue
			}
			current = e.Offset
			name, _ := e.Val(dwarf.AttrName).(string)
			parent, _ := e.Val(attrTickParent).(dwarf.Offset)
			procedures[current] = procedure{name, parent}
		case dwarf.TagLexDwarfBlock:
			if !haskell {
				continue
			}
			inside[e.Offset] = current
			if lo, ok := e.Val(dwarf.AttrLowpc).(uint64); ok {
				hi, _ := e.Val(dwarf.AttrHighpc).(uint64)
				blocks = append(blocks, owner{lo: lo, hi: hi})
				offsets = append(offsets, e.Offset)
			}
		}
	}
	for i, off := range offsets {
		p := procedures[inside[off]]
		for n := 0; p.parent != 0 && n < len(procedures); n++ {
			p = procedures[inside[p.parent]]
		}
		blocks[i].name, _, _ = strings.Cut(p.name, ".")
	}
	sort.Slice(blocks, func(i, j int) bool { return blocks[i].lo < blocks[j].lo })
	return blocks
}
