package symbolize

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/symbolize/evidence/symtab"
	"ccagent/symbolize/hsname"
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

// Haskell code of a stripped program is known by its module, or by the modules between which it is linked. No symbol says
// otherwise.
func TestStrippedHaskell(t *testing.T) {
	strip := testprog.NeedTool(t, "strip", "binutils")
	exe := testprog.Build(t, "leaks", testprog.Options{NoDebug: true})
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	truth := map[uint64]hsname.Name{}
	var addrs []Address
	for _, s := range symbols {
		if n, ok := hsname.Parse(s.Name); ok && n.Kind == hsname.KindInfo && !n.Internal {
			truth[s.Value] = n
			addrs = append(addrs, Address{Addr: s.Value})
		}
	}
	copied := filepath.Join(t.TempDir(), "stripped")
	if out, err := exec.Command(strip, "-o", copied, exe).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	got, _ := resolve(t, Job{Modules: []Module{module(t, copied, addrs...)}})
	known, packages := 0, 0
	for addr, want := range truth {
		b := got.bindings[got.locations[1][addr].Binding]
		if b.Package != "" {
			packages++
			if b.Package != want.Package {
				t.Errorf("%v is said to be of package %s", want, b.Package)
			}
		}
		if b.Name != symtab.NamelessOf || b.Module == "" || strings.Contains(b.Module, " ") {
			continue
		}
		known++
		if b.Module != want.Module {
			t.Errorf("%v is said to be of module %s", want, b.Module)
		}
	}
	t.Logf("of %d functions %d have a package, %d a module", len(truth), packages, known)
	if packages < len(truth)/2 || known < len(truth)/10 {
		t.Error("too little is known")
	}
}
