package ipe

import (
	"debug/elf"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/evidence/symtab"
	"ccagent/symbolize/sources"
)

// A continuation is part of the procedure whose table is before it: its causes are its own
// span, then the procedure's. Code after a symbol without a table is nobody's.
func TestEvidenceOfTables(t *testing.T) {
	span := func(line uint32) sources.Extent {
		return sources.Extent{Line: line, Col: 1, EndLine: line, EndCol: 9}
	}
	f := &elffile.File{Segments: []elffile.Segment{{Type: elf.PT_LOAD, Flags: elf.PF_X, Addr: 0x1000, Memsz: 0x1000}}}
	symbols := symtab.NewTable(f, elftest.Symbols{
		{Name: "Main_fac_info", Addr: 0x1000, Size: 0x40, Type: elf.STT_FUNC, Bind: elf.STB_GLOBAL, Section: 1},
		{Name: "c_work", Addr: 0x1300, Type: elf.STT_FUNC, Bind: elf.STB_GLOBAL, Section: 1},
	}, false)
	e := &Evidence{symbols: symbols, byPath: map[string]sources.FileID{}, spans: map[placed]evidence.SpanID{}, entries: []Entry{
		{Info: 0x1000, Table: "Main_fac_info", Closure: 14, Type: "Int -> Int", Label: "fac", Module: "Main", File: "./Main.hs", Span: span(3)},
		{Info: 0x1100, Table: "block_c1_info", Label: "fac", Module: "Main", File: "Main.hs", Span: span(4)},
		{Info: 0x1200, Table: "sat_s1_info", Label: "fac.go", Module: "Main"},
	}}
	for _, c := range []struct {
		addr   uint64
		block  bool
		offset uint64
		kind   evidence.Kind
		lines  []uint32
	}{
		{0x1010, true, 0x10, evidence.Exported, []uint32{3}},
		{0x1110, true, 0x110, evidence.Exported, []uint32{4, 3}},
		{0x1210, false, 0x10, evidence.Tabled, nil},
	} {
		got, ok := e.At(c.addr)
		if !ok || c.addr-got.Start != c.offset || (got.Block != 0) != c.block || e.Procedure(got.Proc).Kind != c.kind {
			t.Errorf("%#x: %+v, %v; procedure %+v", c.addr, got, ok, e.Procedure(got.Proc))
			continue
		}
		if !c.block {
			continue
		}
		b := e.Block(got.Block)
		if b.Proc != got.Proc || c.addr < b.Lo || c.addr >= b.Hi || len(b.Causes) != len(c.lines) {
			t.Errorf("%#x is in block %+v", c.addr, b)
			continue
		}
		for i, cause := range b.Causes {
			s := e.Span(cause.Span)
			if s.Line != c.lines[i] || int(cause.Distance) != i || e.File(s.File).Path != "Main.hs" {
				t.Errorf("%#x: cause %d is %+v in %s", c.addr, i, s, e.File(s.File).Path)
			}
		}
	}
	for _, addr := range []uint64{0xfff, 0x1310} {
		if got, ok := e.At(addr); ok {
			t.Errorf("%#x has no table, but is in %+v", addr, got)
		}
	}
	if got := e.Closures(0x1000); got != "function of type Int -> Int" || e.Closures(0x1001) != "" {
		t.Errorf("closures at 0x1000: %q", got)
	}
}
