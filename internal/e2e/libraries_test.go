package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Sources of a program, a Haskell package and C code, each in a file of its own. GHC inlines
// a loop of the package into Main.
var librarySources = map[string]string{
	"Main.hs": `module Main (main) where
import Data.Word (Word64)
import Work (iter, spin)
foreign import ccall unsafe "c_work" cWork :: Word64 -> Word64 -> IO Word64
main :: IO ()
main = do
  c <- cWork 1 60000000
  print (c + spin 60000000 c + own 60000000 c)
{-# NOINLINE own #-}
own :: Int -> Word64 -> Word64
own n = iter n (\x -> x * 2862933555777941757 + 1)
`,
	"work/Work.hs": `module Work (iter, spin) where
import Data.Word (Word64)
{-# NOINLINE spin #-}
spin :: Int -> Word64 -> Word64
spin n = iter n (\x -> x * 2862933555777941757 + 3037000493)
{-# INLINE iter #-}
iter :: Int -> (Word64 -> Word64) -> Word64 -> Word64
iter n0 f = go n0
  where
    go 0 x = x
    go n x = go (n - 1) (f x)
`,
	"work/work.c": `#include <stdint.h>
static inline uint64_t turn(uint64_t x, uint64_t n) {
  while (n--) x = x * UINT64_C(2862933555777941757) + 3037000493u;
  return x;
}
uint64_t c_work(uint64_t x, uint64_t n) { return turn(x, n) + 1; }
`,
	"work/work.conf": `name: work
version: 1.0
id: work-1.0
key: work-1.0
exposed: True
exposed-modules: Work
import-dirs: ${pkgroot}
dynamic-library-dirs: ${pkgroot}
hs-libraries: HSwork-1.0
depends: BASE
`,
}

// buildLibraries links a program dynamically with all Haskell libraries, one of
// them its own, and with a C library.
func buildLibraries(t *testing.T) string {
	t.Helper()
	ghc, version := testprog.GHC(t, "")
	pkg := testprog.NeedTool(t, "ghc-pkg", "ghc")
	gcc := testprog.NeedTool(t, "gcc", "gcc")
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	in := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	base := strings.Fields(in(dir, pkg, "field", "base", "id", "--simple-output"))
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range librarySources {
		text = strings.ReplaceAll(text, "BASE", base[len(base)-1])
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in(work, gcc, "-O2", "-g", "-shared", "-fPIC", "-o", "libcwork.so", "work.c")
	lib := "libHSwork-1.0-ghc" + version + ".so"
	in(work, ghc, "-v0", "-O2", "-g3", "-dynamic", "-shared", "-fPIC", "-this-unit-id", "work-1.0", "-hisuf", "dyn_hi", "-osuf", "dyn_o", "-o", lib, "Work.hs")
	in(work, pkg, "init", "db")
	in(work, pkg, "--package-db", "db", "register", "work.conf", "--force")
	in(dir, ghc, "-v0", "-O2", "-g3", "-dynamic", "-package-db", "work/db", "-package", "work", "-o", "libraries", "Main.hs", "-Lwork", "-lcwork", "-optl-Wl,-rpath,"+work)
	return filepath.Join(dir, "libraries")
}

// One log has the causes of the program and of its Haskell library, and the inlined
// functions of a C library.
func TestSharedLibrariesHaveCauses(t *testing.T) {
	exe := buildLibraries(t)
	log, _ := record(t, []string{"--max-overhead", "0", "-F", "1999"}, exe)
	l := readLog(t, log)
	l.wantWhole(t)
	modules := map[string]map[uint32]bool{} // by the source of the causes at the leaf
	own, shared, inC, inlined := 0, 0, 0, 0
	for _, s := range l.samples {
		frames := l.frames(s)
		if len(frames) == 0 {
			continue
		}
		leaf := frames[0]
		files := l.causeFiles(leaf)
		for f := range files {
			if modules[f] == nil {
				modules[f] = map[uint32]bool{}
			}
			modules[f][leaf.Module] = true
		}
		loc := l.locations[place{leaf.Module, leaf.Addr}]
		switch name := l.source(leaf); {
		case files["Main.hs"]:
			own++
			if files["Work.hs"] {
				shared++
			}
		case loc.Category == eventlog.CategoryForeign && name == "c_work":
			inC++
			if n := len(loc.Lines); n == 2 && l.bindings[loc.Lines[0].Binding].Name == "turn" && filepath.Base(l.files[loc.Lines[0].File].Path) == "work.c" {
				inlined++
			}
		}
	}
	t.Logf("%d samples: %d of own, %d of them of iter too, %d in C, %d of them of turn; modules by cause %v", len(l.samples), own, shared, inC, inlined, modules)
	if own < 20 {
		t.Errorf("%d samples have causes in Main.hs", own)
	}
	wantShareAbove(t, "samples of Main.hs with causes in Work.hs", shared, own, 0.9)
	if inC < 20 {
		t.Errorf("%d samples are in the C library", inC)
	}
	wantShareAbove(t, "samples of the C library in what was inlined there", inlined, inC, 0.9)
	if len(modules["Main.hs"]) != 1 || len(modules["Work.hs"]) != 2 {
		t.Errorf("causes in Main.hs and Work.hs are of the files %v", modules)
	}
	h := hotOf(t, log)
	wantConsistent(t, h)
	if spin, iter := h.element(t, "Work.spin"), h.element(t, "Work.iter"); spin.Samples < 20 || iter.Samples < 20 {
		t.Errorf("spin has %d samples, iter %d", spin.Samples, iter.Samples)
	}

	// The doctor names those libraries that have no notes.
	r := run(t, command(t, ccagent, "doctor", exe))
	wantLine(t, r.stdout, "libraries", "without source notes", "base-")
	if strings.Contains(r.stdout, "work-1.0") {
		t.Errorf("a library with notes is said to have none:\n%s", r.stdout)
	}
}
