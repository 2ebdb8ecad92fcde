package symbolize

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"

	"github.com/google/go-cmp/cmp"
)

// Wherever debug information lies and however it is packed, it says the same:
// the tables of a program are those of its stripped copy with a debug file
// beside, and those of copies with compressed sections.
func TestSeparateDebugFiles(t *testing.T) {
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	exe := testprog.Build(t, "example", testprog.Options{})
	addrs := codeAddresses(t, exe, 8)
	want, sum := resolve(t, Job{Modules: []Module{module(t, exe, addrs...)}})
	if sum.InBlocks < 500 {
		t.Fatalf("only %d addresses in blocks", sum.InBlocks)
	}
	dir := t.TempDir()
	run := func(t *testing.T, args ...string) {
		t.Helper()
		cmd := exec.Command(objcopy, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("objcopy %q: %v\n%s", args, err, out)
		}
	}
	// open gives the module as the agent does, with what it finds beside it.
	open := func(t *testing.T, name string) Module {
		t.Helper()
		m := module(t, filepath.Join(dir, name), addrs...)
		b, err := binary.Identify(m.File, m.Size)
		if err != nil {
			t.Fatal(err)
		}
		if f := binary.OpenDebugFile(nil, m.Path, &b); f != nil {
			t.Cleanup(func() { f.Close() })
			st, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			m.Debug, m.DebugSize = f, st.Size()
		}
		return m
	}
	same := func(t *testing.T, m Module) {
		t.Helper()
		got, _ := resolve(t, Job{Modules: []Module{m}})
		if reflect.DeepEqual(want, got) {
			return
		}
		for what, d := range map[string]string{
			"modules": cmp.Diff(want.modules, got.modules), "bindings": cmp.Diff(want.bindings, got.bindings),
			"spans": cmp.Diff(want.spans, got.spans), "blocks": cmp.Diff(want.blocks, got.blocks),
			"locations": cmp.Diff(want.locations, got.locations),
		} {
			if d != "" {
				t.Errorf("%s differ (-whole +got):\n%.2000s", what, d)
			}
		}
	}
	run(t, "--remove-section", ".note.gnu.build-id", exe, "anonymous")
	for _, c := range []struct{ name, from, link string }{
		{"by build-id and link", exe, "named.debug"},
		{"by checksum", "anonymous", "checked.debug"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, "--only-keep-debug", c.from, c.link)
			run(t, "--strip-all", "--add-gnu-debuglink="+c.link, c.from, "stripped")
			m := open(t, "stripped")
			if m.Debug == nil {
				t.Fatalf("%s is not found", c.link)
			}
			same(t, m)

			// In the folder that the GDB manual names.
			if err := os.MkdirAll(filepath.Join(dir, ".debug"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, c.link), filepath.Join(dir, ".debug", c.link)); err != nil {
				t.Fatal(err)
			}
			same(t, open(t, "stripped"))

			// Another program's under the right name is not taken.
			other := testprog.Build(t, "fac", testprog.Options{})
			run(t, "--only-keep-debug", other, c.link)
			if m := open(t, "stripped"); m.Debug == nil {
				t.Error("a wrong file hides the right one")
			} else {
				same(t, m)
			}
			if err := os.RemoveAll(filepath.Join(dir, ".debug")); err != nil {
				t.Fatal(err)
			}
			if m := open(t, "stripped"); m.Debug != nil {
				t.Error("another program's debug file is taken for its own")
			}
		})
	}
	for _, how := range []string{"zlib", "zlib-gnu", "zlib-gabi", "zstd"} {
		t.Run(how, func(t *testing.T) {
			if out, err := exec.Command(objcopy, "--compress-debug-sections="+how, exe, filepath.Join(dir, how)).CombinedOutput(); err != nil {
				testprog.Skip(t, &testprog.UnsupportedError{Need: "an objcopy that compresses by " + how, Hint: string(out)})
			}
			same(t, open(t, how))
			run(t, "--only-keep-debug", how, how+".debug")
			run(t, "--strip-all", "--add-gnu-debuglink="+how+".debug", exe, "stripped")
			same(t, open(t, "stripped"))
		})
	}
}

// A debug file alone gives all names: the code itself need not be there.
func TestDebugFileAlone(t *testing.T) {
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	exe := testprog.Build(t, "example", testprog.Options{})
	alone := filepath.Join(t.TempDir(), "example.debug")
	if out, err := exec.Command(objcopy, "--only-keep-debug", exe, alone).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	addrs := codeAddresses(t, exe, 8)
	want, _ := resolve(t, Job{Modules: []Module{module(t, exe, addrs...)}})
	got, _ := resolve(t, Job{Modules: []Module{module(t, alone, addrs...)}})
	for addr, l := range want.locations[1] {
		g := got.locations[1][addr]
		if w, h := want.bindings[l.Binding], got.bindings[g.Binding]; w.Symbol != h.Symbol || l.Quality != g.Quality || l.Category != g.Category {
			t.Errorf("%#x is %v %v %s, by the debug file alone %v %v %s", addr, l.Quality, l.Category, w.Symbol, g.Quality, g.Category, h.Symbol)
		}
		if a, b := want.blocks[l.Block], got.blocks[g.Block]; a.Lo != b.Lo || a.Hi != b.Hi {
			t.Errorf("%#x is in block %#x-%#x, by the debug file alone %#x-%#x", addr, a.Lo, a.Hi, b.Lo, b.Hi)
		}
	}
}
