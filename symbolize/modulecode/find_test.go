package modulecode_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/modulecode"
)

// What is said without symbols is what the symbols say, of all code that has an exported symbol: the module where one is named,
// else one of the two that are named or one without a mark.
func TestFind(t *testing.T) {
	ways := map[string]testprog.Options{
		"plain": {}, "profiled": {Prof: true}, "threaded": {Threaded: true, NoDebug: true},
	}
	testprog.Each(t, func(t *testing.T, release string) {
		for name, o := range ways {
			t.Run(name, func(t *testing.T) {
				o.Release = release
				f := elftest.Open(t, testprog.Build(t, "leaks", o))
				m, err := modulecode.Find(t.Context(), f, o.Prof)
				if err != nil {
					t.Fatal(err)
				}
				checkModules(t, f, m)
			})
		}
	})
}

// In position-independent files addresses stand in relocations, and on arm64 info tables are not aligned to words. Debian's
// static libraries are position-independent there.
func TestFindPositionIndependentOnArm64(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	ghc := filepath.Join(cache, "ccagent", "hwtest", "tools-arm64", "ghc")
	if _, err := os.Stat(ghc); err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "GHC for arm64", Hint: "scripts/ghc-arm64"})
	}
	dir := t.TempDir()
	inputs := testprog.CopySource(t, "leaks", dir)
	cmd := exec.Command(ghc, append([]string{"-v0", "-O2", "-fPIC", "-pie", "-optl-static-pie", "-o", "leaks"}, inputs...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f := elftest.Open(t, filepath.Join(dir, "leaks"))
	if f.Type != elf.ET_DYN {
		t.Fatalf("the program is %v", f.Type)
	}
	m, err := modulecode.Find(t.Context(), f, false)
	if err != nil {
		t.Fatal(err)
	}
	checkModules(t, f, m)
}

func checkModules(t *testing.T, f *elffile.File, m *modulecode.Map) {
	t.Helper()
	symbols, err := f.Symbols(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	type code struct {
		name   string
		module modulecode.Module
		home   modulecode.Home
	}
	var all []code
	marked := map[modulecode.Module]bool{}
	for _, s := range symbols {
		n, ok := hsname.Parse(s.Name)
		if !ok || n.Internal || !n.Kind.Code() || !f.Executable(s.Addr) {
			continue
		}
		if n.Unit == "" {
			n.Unit = "main"
		}
		h, ok := m.At(s.Addr)
		if !ok {
			continue
		}
		all = append(all, code{s.Name, modulecode.Module{Unit: n.Unit, Name: n.Module}, h})
		if h.Known() {
			marked[h.Last] = true
		}
	}
	known, named := 0, 0
	for _, c := range all {
		switch h := c.home; {
		case h.Known():
			known++
			if h.Last != c.module {
				t.Errorf("%s is said to be of %v", c.name, h.Last)
			}
		case c.module == h.First || c.module == h.Last:
			named++
		case marked[c.module]:
			t.Errorf("%s is said to lie between %v and %v", c.name, h.First, h.Last)
		}
		if c.home.Unit != "" && c.home.Unit != c.module.Unit {
			t.Errorf("%s is said to be of package %s", c.name, c.home.Unit)
		}
	}
	t.Logf("%d symbols of code: %.1f %% of them of the module that is said, %.1f %% of one of two, %d modules",
		len(all), 100*float64(known)/float64(len(all)), 100*float64(named)/float64(len(all)), len(marked))
	if len(marked) < 10 || known < len(all)/5 || known+named < len(all)/2 {
		t.Error("too little was found")
	}
}

// BenchmarkFind reads the program of CCAGENT_BENCH_ELF, or one of 20 MB.
func BenchmarkFind(b *testing.B) {
	path := os.Getenv("CCAGENT_BENCH_ELF")
	if path == "" {
		path = testprog.Build(b, "leaks", testprog.Options{})
	}
	f := elftest.Open(b, path)
	for b.Loop() {
		if _, err := modulecode.Find(b.Context(), f, false); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(f.Size()))
}
