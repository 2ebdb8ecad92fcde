package cfi

import (
	"ccagent/symbolize/elffile"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestZCmp(t *testing.T) {
	for _, p := range strings.Fields(os.Getenv("ZZ")) {
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		st, _ := f.Stat()
		e, err := elffile.Open(f, st.Size())
		if err != nil {
			t.Fatal(err)
		}
		c := &compiler{f: e, arch: amd64, limits: DefaultLimits, rules: make([]Rule, 1), index: map[Rule]uint32{{}: 0}}
		c.machine.arch = amd64
		c.machine.row = c.row
		ss, _ := c.sections()
		for i := range ss {
			c.read(&ss[i])
		}
		c.extendHaskell()
		lim := c.limits
		c.limits.Bytes = lim.Bytes
		t0 := time.Now()
		code := c.analyse()
		d := time.Since(t0)
		base := c.joined()
		bt, err := c.table(base)
		if err != nil {
			fmt.Println(p, err)
			continue
		}
		over := c.overlay(base, code)
		ft, _ := c.table(over)
		var bytes, agree, dis, none, uncov int
		shown := 0
		kinds := map[string]int{}
		for i, r := range code {
			if r.end || i+1 == len(code) {
				continue
			}
			for a := r.addr; a < code[i+1].addr; a++ {
				bytes++
				b := bt.Lookup(a)
				if b.Kind == KindNone {
					none++
					continue
				}
				if b.Kind == KindHaskell && b.Offset == r.off {
					agree++
					continue
				}
				dis++
				if a == r.addr {
					kinds[fmt.Sprint(b.Offset-r.off)]++
					if shown < 15 {
						shown++
						fmt.Printf("  %x len %d derived %d group %d base %v\n", r.addr, code[i+1].addr-r.addr, r.off, r.group, b)
					}
				}
			}
		}
		// DWARF Haskell bytes not covered
		for _, s := range c.spans {
			if !s.haskell {
				continue
			}
			for a := s.lo; a < s.hi; a++ {
				if a-c.spans[0].lo > 1<<40 {
					break
				}
				if ft.Lookup(a) == bt.Lookup(a) && bt.Lookup(a).Kind == KindHaskell {
				} else {
				}
			}
		}
		fk := map[Kind]int{}
		for i, r := range ft.Rows {
			if i+1 < len(ft.Rows) {
				fk[ft.Rules[r.Rule].Kind] += int(ft.Rows[i+1].Addr - r.Addr)
			}
		}
		fmt.Println(p, "size", st.Size(), "code rows", len(code), "bytes", bytes, "agree", agree, "disagree", dis, "nobase", none, "uncov", uncov, d, "rows", len(base), "->", len(over), fk, kinds)
	}
}
