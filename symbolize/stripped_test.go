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

// A stripped program's C code is of two kinds: the collector's, and what may be anybody's.
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
	type code struct {
		name     string
		category eventlog.Category
	}
	collector, anybodys := code{symtab.NamelessGC, eventlog.CategoryGC}, code{symtab.NamelessC, eventlog.CategoryUnresolved}
	want := map[string]code{
		"evacuate": collector, "GarbageCollect": collector, "scheduleWaitThread": anybodys, "allocateMightFail": anybodys,
		// The program's, or Cmm code, which looks the same.
		"stg_upd_frame_info": {symtab.NamelessHaskell, eventlog.CategoryHaskell},
	}
	var addrs []Address
	at := map[string]uint64{}
	for _, s := range symbols {
		if _, ok := want[s.Name]; ok {
			at[s.Name] = s.Value + 4
			addrs = append(addrs, Address{Addr: s.Value + 4})
		}
	}
	copied := filepath.Join(t.TempDir(), "stripped")
	if out, err := exec.Command(strip, "-o", copied, exe).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	got, _ := resolve(t, Job{Modules: []Module{module(t, copied, addrs...)}})
	for name, c := range want {
		l := got.locations[1][at[name]]
		if l.Category != c.category || got.bindings[l.Binding].Name != c.name {
			t.Errorf("%s at %#x: %+v, %q", name, at[name], l, got.bindings[l.Binding].Name)
		}
	}
}
