package cfi

import (
	"bytes"
	"debug/elf"
	"errors"
	"sort"
	"testing"

	"ccagent/symbolize/elffile"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// Whatever the sections hold, there is a table or an error; and a table is in
// order, within its limits, and complete.
func FuzzCompile(f *testing.F) {
	eh := frames{eh: true}
	cie := eh.cie("zR", -8, regnum.AMD64_Rip, cRules...)
	eh.fde(cie, true, textAddr, 16, frame.DW_CFA_advance_loc|8, frame.DW_CFA_def_cfa_offset, 16, frame.DW_CFA_offset|regnum.AMD64_Rbp, 2)
	eh.fde(cie, true, textAddr+16, 16, frame.DW_CFA_def_cfa_expression, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22)
	dbg := frames{}
	ghc := ghcCommon(&dbg)
	dbg.fde(ghc, false, textAddr+0x3f, 8, append(setLoc(textAddr+0x48), frame.DW_CFA_def_cfa_offset, 16)...)
	text := append(make([]byte, 0x40), 0x48, 0x83, 0xc5, 0x08, 0xff, 0x65, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x24, 0xcd, 0, 0, 0x70, 0)
	f.Add(eh.b, dbg.b, text, []byte{0x40, 0x10, 0x40, 0, 0, 0, 0, 0, 0x58, 0x10, 0x40, 0, 0, 0, 0, 0}, false)
	f.Add([]byte{}, dbg.b, text, []byte{}, false)
	f.Add(eh.b, []byte{}, []byte{0x90}, []byte{}, true)
	f.Fuzz(func(t *testing.T, eh, dbg, text, data []byte, arm bool) {
		m := image{text: text, eh: eh, dbg: dbg, data: data}
		if arm {
			m.machine = elf.EM_AARCH64
		}
		b := m.bytes()
		e, err := elffile.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		for i, r := range Functions(e, 1<<16) {
			if r.Lo >= r.Hi || i > 0 && r.Lo < last {
				t.Fatalf("function at %#x up to %#x, after %#x", r.Lo, r.Hi, last)
			}
			last = r.Hi
		}
		limits := Limits{Bytes: 1 << 16, Rows: 1 << 10, Instructions: 1 << 14}
		if pages, err := OpenPages(e, limits); err == nil {
			for page := range uint32(3) {
				if rows := pages.Rows(page); rows != nil {
					checkPage(t, pages.Table(), page, rows)
				}
			}
		}
		table, err := Compile(e, limits)
		if (table == nil) == (err == nil) {
			t.Fatalf("table %v and error %v", table, err)
		}
		if err != nil {
			if !errors.Is(err, ErrNone) && !errors.Is(err, elffile.ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		if len(table.Rows) == 0 || len(table.Rows) > limits.Rows {
			t.Fatalf("%d rows", len(table.Rows))
		}
		if !sort.SliceIsSorted(table.Rows, func(i, j int) bool { return table.Rows[i].Addr < table.Rows[j].Addr }) {
			t.Fatal("rows out of order")
		}
		for i, r := range table.Rows {
			if int(r.Rule) >= len(table.Rules) || i > 0 && (r.Addr == table.Rows[i-1].Addr || r.Rule == table.Rows[i-1].Rule) {
				t.Fatalf("row %d of %v", i, table.Rows)
			}
		}
		if table.Rules[0] != (Rule{}) || table.Rows[len(table.Rows)-1].Rule != 0 {
			t.Fatalf("the last row is %v", table.Rows[len(table.Rows)-1])
		}
	})
}
