package symbolize

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"ccagent/internal/testprog"
)

// TestStretches resolves every fourth byte of programs' code by itself: in each stretch all of them are what the
// stretch's address is, and offsets count from its procedure.
func TestStretches(t *testing.T) {
	for _, c := range []struct {
		name    string
		program string
		options testprog.Options
		least   float64 // the share of addresses that must lie in stretches of every fiftieth
	}{
		{"notes", "example", testprog.Options{}, 0.6},
		{"lines", "rev", testprog.Options{NoDebug: true, Flags: []string{"-g1"}}, 0.3},
		{"symbols", "rev", testprog.Options{NoDebug: true}, 0.6},
		{"C with lines", "ffi", testprog.Options{}, 0.6},
		{"dynamic", "example", testprog.Options{Dynamic: true}, 0.1},
		{"stripped", "rev", testprog.Options{Strip: true}, 0.6},
		{"info table map", "example", testprog.Options{Release: "9.6.6", NoDebug: true, Flags: []string{"-finfo-table-map"}}, 0.6},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe := testprog.Build(t, c.program, c.options)
			addrs := codeAddresses(t, exe, 4)
			if most := 60_000; len(addrs) > most { // the program's own code comes first, its libraries behind it
				addrs = addrs[:most]
			}
			var some []Address
			for i := 0; i < len(addrs); i += 50 {
				some = append(some, addrs[i])
			}
			all, _ := resolve(t, Job{Modules: []Module{module(t, exe, addrs...)}})
			few, sum := resolve(t, Job{Modules: []Module{module(t, exe, some...)}, Stretches: true})
			slices.SortFunc(sum.Stretches, func(a, b Stretch) int { return cmp.Compare(a.Lo, b.Lo) })
			covered, i := 0, 0
			for _, a := range addrs {
				for i+1 < len(sum.Stretches) && sum.Stretches[i+1].Lo <= a.Addr {
					i++
				}
				if len(sum.Stretches) == 0 || a.Addr < sum.Stretches[i].Lo || a.Addr >= sum.Stretches[i].Hi {
					continue
				}
				covered++
				s := &sum.Stretches[i]
				if want, got := all.describe(a.Addr, s.Start), few.describe(s.Addr, s.Start); got != want {
					t.Fatalf("%#x is\n%s\nin a stretch %+v of\n%s", a.Addr, want, *s, got)
				}
			}
			t.Logf("%s: %d stretches of %d addresses have %d of %d", filepath.Base(exe), len(sum.Stretches), len(some), covered, len(addrs))
			if share := float64(covered) / float64(len(addrs)); share < c.least {
				t.Errorf("%.2f of the code is in stretches", share)
			}
		})
	}
}

// describe says what is known of an address of module 1, without numbers that depend on what else was asked. An offset
// must count from start, unless that is 0.
func (t *tables) describe(addr, start uint64) string {
	l := t.locations[1][addr]
	name := func(id uint32) string { b := t.bindings[id]; return b.Package + "|" + b.Module + "|" + b.Name }
	out := fmt.Sprint(name(l.Binding), l.Category, l.Quality)
	if start != 0 && addr-start != l.Offset {
		out += fmt.Sprintf(" offset %#x, not from %#x", l.Offset, start)
	}
	for _, line := range l.Lines {
		out += fmt.Sprint(" line ", t.files[line.File].Path, line.Line)
	}
	if b, ok := t.blocks[l.Block]; ok {
		out += fmt.Sprintf(" block %#x-%#x of %s", b.Lo, b.Hi, name(b.Binding))
		for _, e := range b.Enclosing {
			out += " in " + name(e)
		}
		for _, c := range b.Causes {
			s := t.spans[c.Span]
			out += fmt.Sprint(" ", t.files[s.File].Path, s.Line, s.Col, s.EndLine, s.EndCol, name(s.Binding), c.Distance)
		}
	}
	return out
}
