package cfi

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
)

// What is left of a stripped program distinguishes its C code from Haskell's.
func TestFunctionsOfStrippedProgram(t *testing.T) {
	strip := testprog.NeedTool(t, "strip", "binutils")
	exe := testprog.Build(t, "rev", testprog.Options{})
	stripped := filepath.Join(t.TempDir(), "stripped")
	if out, err := exec.Command(strip, "-o", stripped, exe).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	f := elftest.Open(t, stripped)
	c := Functions(f, 64<<20)
	whole, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	symbols, err := whole.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"GarbageCollect": true, "evacuate": true, "scheduleWaitThread": true, "hs_init_ghc": true}
	haskell := 0
	for _, s := range symbols {
		switch {
		case want[s.Name]:
			delete(want, s.Name)
			if !c.Contains(s.Value) || !c.Contains(s.Value+s.Size-1) {
				t.Errorf("%s at %#x is not taken for C", s.Name, s.Value)
			}
		case strings.HasSuffix(s.Name, "_info") && s.Value != 0 && s.Section < elf.SHN_LORESERVE:
			haskell++
			if c.Contains(s.Value) {
				t.Errorf("%s at %#x is taken for C", s.Name, s.Value)
			}
		}
	}
	if len(want) > 0 || haskell < 1000 {
		t.Errorf("the program has no %v, and %d Haskell symbols", want, haskell)
	}
	if Functions(f, 100) != nil {
		t.Error("the budget was not kept")
	}
}

// Overlapping ranges are joined, adjacent ones are not, and all contain what any of them did.
func TestRanges(t *testing.T) {
	r := Ranges{{10, 20}, {15, 18}, {20, 30}, {40, 41}}.joined()
	for addr, want := range map[uint64]bool{9: false, 10: true, 29: true, 30: false, 39: false, 40: true, 41: false} {
		if r.Contains(addr) != want {
			t.Errorf("%d in %v: %v", addr, r, !want)
		}
	}
	if len(r) != 3 || r.Index(20) != 1 || Ranges(nil).Contains(0) {
		t.Errorf("joined: %v", r)
	}
}
