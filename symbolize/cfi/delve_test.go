package cfi

import (
	"encoding/binary"
	"testing"

	"ccagent/internal/elftest"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// Delve's unwinder computes the same frames for the C library.
func TestAgainstDelve(t *testing.T) {
	path := systemLibraries(t)[0]
	f := elftest.Open(t, path)
	table, err := Compile(f, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	s := f.Section(".eh_frame")
	data, err := f.Data(s, DefaultLimits.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	fdes, err := frame.Parse(data, binary.LittleEndian, 0, 8, s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	compared, differ := 0, 0
	for _, fde := range fdes {
		for pc := fde.Begin(); pc < fde.End(); pc++ {
			got := table.Lookup(pc)
			if pc > fde.Begin() && got == table.Lookup(pc-1) && pc&63 != 0 {
				continue // compare each row, and some of what is between
			}
			context, err := fde.EstablishFrame(pc)
			if err != nil {
				t.Fatalf("delve at %#x: %v", pc, err)
			}
			want, ok := delveRule(context)
			if !ok {
				continue
			}
			compared++
			if got != want {
				if differ++; differ <= 5 {
					t.Errorf("at %#x: %v, delve has %v", pc, got, want)
				}
			}
		}
	}
	if differ > 5 || compared < 1000 {
		t.Errorf("%d of %d places differ", differ, compared)
	}
}

func delveRule(c *frame.FrameContext) (rule Rule, ok bool) {
	if c.CFA.Rule != frame.RuleCFA {
		return rule, false
	}
	rule = Rule{Kind: KindFrame, Reg: uint8(c.CFA.Reg), Offset: int32(c.CFA.Offset)}
	for reg, r := range c.Regs {
		slot := amd64.slot(reg)
		if slot < 0 {
			continue
		}
		switch r.Rule {
		case frame.RuleOffset:
			rule.Saved[slot] = int16(r.Offset / 8)
		case frame.RuleUndefined:
			if slot == 0 {
				return Rule{Kind: KindRoot}, true
			}
			// Delve's word for a register that has been restored to a
			// rule that was never given: preserved, by the ABI.
		case frame.RuleSameVal:
		default:
			return rule, false
		}
	}
	return rule, true
}
