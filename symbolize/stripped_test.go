package symbolize

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/symbolize/evidence/symtab"
)

// A stripped program's C code is told apart, and its category is not guessed.
func TestStrippedC(t *testing.T) {
	strip := testprog.NeedTool(t, "strip", "binutils")
	exe := testprog.Build(t, "rev", testprog.Options{})
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	isC := map[string]bool{"evacuate": true, "GarbageCollect": true, "stg_upd_frame_info": false}
	var addrs []Address
	at := map[string]uint64{}
	for _, s := range symbols {
		if _, ok := isC[s.Name]; ok {
			at[s.Name] = s.Value + 4
			addrs = append(addrs, Address{Addr: s.Value + 4})
		}
	}
	copied := filepath.Join(t.TempDir(), "stripped")
	if out, err := exec.Command(strip, "-o", copied, exe).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	got, _ := resolve(t, Job{Modules: []Module{module(t, copied, addrs...)}})
	for name, c := range isC {
		l := got.locations[1][at[name]]
		want, category := symtab.NamelessC, eventlog.CategoryUnresolved
		if !c { // the program's, or Cmm code, which nothing tells from it
			want, category = symtab.NamelessHaskell, eventlog.CategoryHaskell
		}
		if l.Category != category || got.bindings[l.Binding].Name != want {
			t.Errorf("%s at %#x: %+v, %q", name, at[name], l, got.bindings[l.Binding].Name)
		}
	}
}
