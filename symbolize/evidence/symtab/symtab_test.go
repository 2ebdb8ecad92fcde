package symtab

import (
	"debug/elf"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/elftest"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence"
)

// code is a file whose code is from 0x1000 to 0x3000, with the symbols given.
func code(symbols ...elffile.Symbol) (*elffile.File, *Table) {
	f := &elffile.File{Machine: elf.EM_X86_64, Segments: []elffile.Segment{{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Addr: 0x1000, Memsz: 0x2000}}}
	for i := range symbols {
		symbols[i].Section = 1
		if symbols[i].Type == elf.STT_NOTYPE {
			symbols[i].Type = elf.STT_FUNC
		}
	}
	return f, NewTable(f, elftest.Symbols(symbols), true)
}

func global(name string, addr, size uint64) elffile.Symbol {
	return elffile.Symbol{Name: name, Addr: addr, Size: size, Bind: elf.STB_GLOBAL}
}

// The name at an address is that of the symbol which begins there. To ask for it finds out of no symbol whose code it is.
func TestNameAt(t *testing.T) {
	_, table := code(global("stg_ap_2_upd_info", 0x1000, 0x100), global("evacuate", 0x1200, 0x100), global("c_work", 0x2800, 0))
	for addr, want := range map[uint64]string{0x1000: "stg_ap_2_upd_info", 0x1200: "evacuate", 0x1001: "", 0x11ff: "", 0x1300: "", 0x0fff: ""} {
		if got := table.NameAt(addr); got != want {
			t.Errorf("at %#x begins %q, want %q", addr, got, want)
		}
	}
	if len(table.understood) != 0 || len(table.settled) != 0 {
		t.Errorf("%d symbols were understood and %d settled", len(table.understood), len(table.settled))
	}
}

// An address in a symbol's code is exactly that symbol's; one between two symbols is
// only near them, and never takes their name for Haskell code.
func TestEvidenceOfAddresses(t *testing.T) {
	f, table := code(
		global("base_GHCziBase_map_info", 0x1000, 0x100), global("base_GHCziBase_zpzp_info", 0x1200, 0x100),
		global("main_info_without_size", 0x2000, 0), global("c_work", 0x2800, 0x40),
	)
	e := New(t.Context(), table, f, &binary.Info{GHC: true}, 0)
	for _, c := range []struct {
		addr     uint64
		ok       bool
		quality  eventlog.Quality
		category eventlog.Category
		offset   uint64
		kind     evidence.Kind
		symbol   string
		path     string
	}{
		{addr: 0x1010, ok: true, quality: eventlog.QualityExact, category: eventlog.CategoryHaskell, offset: 0x10, kind: evidence.Exported, symbol: "base_GHCziBase_map_info"},
		{addr: 0x1180, ok: true, quality: eventlog.QualityNear, category: eventlog.CategoryHaskell, kind: evidence.Stretch, path: "(local code before ++)"},
		{addr: 0x2010, ok: true, quality: eventlog.QualityNear, category: eventlog.CategoryForeign, offset: 0x10, kind: evidence.Foreign, symbol: "main_info_without_size"},
		{addr: 0x283f, ok: true, quality: eventlog.QualityExact, category: eventlog.CategoryForeign, offset: 0x3f, kind: evidence.Foreign, symbol: "c_work"},
		{addr: 0x3000}, {addr: 0},
	} {
		got, ok := e.At(c.addr)
		if ok != c.ok || got.Quality != c.quality || got.Category != c.category || (got.Start != 0) != (c.offset != 0) || got.Start != 0 && c.addr-got.Start != c.offset || got.Block != 0 {
			t.Errorf("%#x: %+v, %v", c.addr, got, ok)
			continue
		}
		if !ok {
			continue
		}
		if p := e.Procedure(got.Proc); p.Kind != c.kind || p.Symbol != c.symbol || p.Path != c.path {
			t.Errorf("%#x is in %+v", c.addr, p)
		}
		if again, _ := e.At(c.addr); again.Proc != got.Proc {
			t.Errorf("%#x: procedure %d, then %d", c.addr, got.Proc, again.Proc)
		}
	}
}

// Find gives the covering symbol also where shorter ones begin within it, and the
// neighbours on both sides.
func TestFindCoveringSymbol(t *testing.T) {
	_, table := code(global("outer", 0x1000, 0x100), global("inner", 0x1010, 0x10), global("last", 0x2000, 0x10))
	name := func(s *Symbol) string {
		if s == nil {
			return ""
		}
		return s.Name
	}
	for addr, want := range map[uint64][3]string{
		0xfff: {"", "", "outer"}, 0x1000: {"outer", "outer", "inner"}, 0x1018: {"inner", "inner", "last"},
		0x1080: {"outer", "inner", "last"}, 0x1100: {"", "inner", "last"}, 0x200f: {"last", "last", ""}, 0x2010: {"", "last", ""},
	} {
		covering, before, after := table.Find(addr)
		if got := [3]string{name(covering), name(before), name(after)}; got != want {
			t.Errorf("%#x: %q, want %q", addr, got, want)
		}
	}
}

// Of several symbols at an address the one that people know is kept: sized and global.
func TestSymbolsOfOneAddress(t *testing.T) {
	_, table := code(
		elffile.Symbol{Name: "alias", Addr: 0x1000, Type: elf.STT_OBJECT}, global("work", 0x1000, 16),
		elffile.Symbol{Name: "local", Addr: 0x1000, Size: 16, Type: elf.STT_FUNC, Bind: elf.STB_LOCAL},
	)
	if s, _, _ := table.Find(0x1000); s == nil || s.Name != "work" {
		t.Errorf("kept %+v", s)
	}
	if !table.Defines("alias") || table.Defines("other") {
		t.Error("names that are not kept as code must still be defined, and no others")
	}
}
