package dwarf

import (
	"context"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/evidence/symtab"
)

// What the evidence says of an address agrees with itself: the block covers it and is of
// the procedure, and spans lie in files that the evidence describes.
func TestEvidenceOfProgram(t *testing.T) {
	f := elftest.Open(t, testprog.Build(t, "fusion", testprog.Options{}))
	all, err := f.SymbolTable(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	symbols := symtab.NewTable(f, all, true)
	e, problems := Open(context.Background(), f, f, symbols, Options{Memory: 1 << 30, Warn: t.Errorf})
	if e == nil || len(problems) > 0 {
		t.Fatalf("%v", problems)
	}
	exported, files := map[string]bool{}, map[string]bool{}
	text := f.Section(".text")
	for addr := text.Addr; addr < text.Addr+text.Size; addr += 8 {
		c, ok := e.At(addr)
		if !ok {
			continue
		}
		if c.Block == 0 { // between blocks: a procedure's info table, or alignment
			if id := dwarfindex.ProcID(c.Proc); e.x.Start(id) != c.Start || c.Start > addr || symbols.Begins(e.x.Start(id)+8, addr+1) {
				t.Fatalf("%#x is in %+v, which begins at %#x", addr, c, e.x.Start(id))
			}
			continue
		}
		b := e.Block(c.Block)
		if b.Proc != c.Proc || addr < b.Lo || addr >= b.Hi {
			t.Fatalf("%#x is in %+v, whose block is %+v", addr, c, b)
		}
		p := e.Procedure(c.Proc)
		if p.Kind == evidence.Exported {
			exported[p.Linkage.Module+"."+p.Linkage.Name] = true
		}
		for i, cause := range b.Causes {
			s := e.Span(cause.Span)
			d := e.File(s.File)
			files[d.Path] = true
			if d.Path == "" || d.Module == "" || i > 0 && cause.Distance < b.Causes[i-1].Distance {
				t.Fatalf("%#x: cause %+v is %+v of %+v", addr, cause, s, d)
			}
		}
	}
	if !exported["Main.main"] && !exported["Main.main1"] || !files["Main.hs"] || !files["Stream.hs"] {
		t.Errorf("procedures %v, files %v", exported, files)
	}
}
