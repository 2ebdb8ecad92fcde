package cfi

import (
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// StgRun as GHC's releases have it, with the two rows that it is described by.
func TestStgRunHasRows(t *testing.T) {
	c := code{b: nil}
	type place struct {
		addr   uint64
		offset int32
		saved  bool
	}
	var places []place
	at := func(offset int32, saved bool) { places = append(places, place{c.here(), offset, saved}) }
	at(8, false)
	c.asm(t, "4883ec30") // sub $0x30,%rsp
	at(56, false)
	c.asm(t, "4889e0 4881ec00400000") // mov %rsp,%rax; sub $0x4000,%rsp
	at(16440, false)
	// mov %rbx,(%rax) … mov %r15,0x28(%rax)
	c.asm(t, "488918 48896808 4c896010 4c896818 4c897020 4c897828")
	body := c.here()
	at(16440, true)
	c.asm(t, "4989f5 4889f8 ffe0 4889d8") // mov %rsi,%r13; mov %rdi,%rax; jmp *%rax; mov %rbx,%rax
	at(16440, true)
	c.asm(t, "4881c400400000") // add $0x4000,%rsp
	at(56, true)
	c.asm(t, "488b1c24 488b6c2408") // mov (%rsp),%rbx; mov 8(%rsp),%rbp
	at(56, true)
	c.asm(t, "4883c430") // add $0x30,%rsp
	at(8, false)
	c.asm(t, "c3")
	end := c.here()

	f := frames{eh: true}
	cie := f.cie("z", -8, regnum.AMD64_Rip, cRules...)
	f.fde(cie, true, textAddr, end-textAddr, frame.DW_CFA_advance_loc|byte(body-textAddr), frame.DW_CFA_def_cfa_offset, 0xb8, 0x80, 1, frame.DW_CFA_offset|regnum.AMD64_Rbp, 6, frame.DW_CFA_offset|regnum.AMD64_Rbx, 7)
	m := image{text: c.b, eh: f.b}
	table, err := m.compile(DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		want := cFrame(KindFrame, regnum.AMD64_Rsp, p.offset)
		if p.saved {
			want.Saved[1], want.Saved[2] = -6, -7 // rbp, rbx
		}
		if got := table.Lookup(p.addr); got != want {
			t.Errorf("at %#x: %v, want %v", p.addr-textAddr, got, want)
		}
	}
	if table.Stats.Repaired != 1 {
		t.Errorf("%d descriptions were repaired", table.Stats.Repaired)
	}
}
