package dwarfindex

import (
	"bytes"
	"context"
	"debug/dwarf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"

	"github.com/ianlancetaylor/demangle"

	"github.com/go-delve/delve/pkg/dwarf/dwarfbuilder"
	"github.com/google/go-cmp/cmp"
)

const inlinedCPP = `#include <cstdio>
namespace geo {
inline __attribute__((always_inline)) double square(double x) {
  volatile double y = x;
  return y * y;
}
struct P {
  double x, y;
  inline __attribute__((always_inline)) double norm() const {
    return square(x) + square(y);
  }
};
}
__attribute__((noinline)) double work(geo::P *p, long n) {
  double s = 0;
  for (long i = 0; i < n; i++)
    s += p[i % 7].norm();
  return s;
}
int main() {
  geo::P p[7] = {};
  std::printf("%f\n", work(p, 100));
}
`

// TestInlinesAgainstAddr2line compares chains of inlined functions, with their
// lines, with binutils'.
func TestInlinesAgainstAddr2line(t *testing.T) {
	gxx := testprog.NeedTool(t, "g++", "")
	addr2line := testprog.NeedTool(t, "addr2line", "binutils")
	for _, dialect := range []string{"-gdwarf-3", "-gdwarf-4", "-gdwarf-5"} {
		t.Run(dialect, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.cpp"), []byte(inlinedCPP), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(gxx, "-O2", dialect, "-no-pie", "-o", "a", "a.cpp")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			exe := filepath.Join(dir, "a")
			got, addrs := inlinesOf(t, exe, "_Z4work", "main")
			var in bytes.Buffer
			for _, a := range addrs {
				fmt.Fprintf(&in, "%#x\n", a)
			}
			cmd = exec.Command(addr2line, "-a", "-i", "-f", "-e", exe)
			cmd.Stdin = &in
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			deepest := 0
			for _, part := range strings.Split(string(out), "0x")[1:] {
				lines := strings.Split(strings.TrimSpace(part), "\n")
				addr, err := strconv.ParseUint(lines[0], 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				var want []Inlined
				for i := 1; i+1 < len(lines); i += 2 {
					file, rest, _ := strings.Cut(lines[i+1], ":")
					n, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
					w := Inlined{Name: lines[i], File: filepath.Base(file), Line: uint32(n)}
					if i+3 > len(lines) {
						w.Name = "" // the function itself
					}
					want = append(want, w)
				}
				deepest = max(deepest, len(want))
				if len(want) < 2 {
					want = nil
				}
				have := slices.Clone(got[addr])
				for i := range have {
					have[i].File = filepath.Base(have[i].File)
				}
				if diff := cmp.Diff(want, have); diff != "" {
					t.Fatalf("%#x:\n%s", addr, diff)
				}
			}
			if deepest < 3 {
				t.Errorf("the deepest chain has %d functions: the program tests nothing", deepest)
			}
		})
	}
}

const scopedCPP = `#include <cstdio>
namespace geo {
namespace {
static inline __attribute__((always_inline)) double hidden(double x) {
  volatile double y = x;
  return y * y;
}
struct Q {
  static inline __attribute__((always_inline)) double twice(double x) { return hidden(x) * 2; }
  double outside(double x) const;
};
inline __attribute__((always_inline)) double Q::outside(double x) const { return twice(x) + 1; }
}
namespace flat {
static inline __attribute__((always_inline)) double square(double x) {
  Q q;
  return q.outside(x) * x;
}
}
}
static inline __attribute__((always_inline)) double global(double x) { return geo::flat::square(x) + 1; }
__attribute__((noinline)) double work(double *p, long n) {
  double s = 0;
  for (long i = 0; i < n; i++)
    s += global(p[i % 7]);
  return s;
}
int main() {
  double p[7] = {};
  std::printf("%f\n", work(p, 100));
}
`

// TestInlinesAgainstGDB compares names of inlined functions that have no linkage name, with their namespaces and classes, with GDB's.
func TestInlinesAgainstGDB(t *testing.T) {
	gxx, gdb := testprog.NeedTool(t, "g++", ""), testprog.NeedTool(t, "gdb", "")
	for _, dialect := range []string{"-gdwarf-4", "-gdwarf-5"} {
		t.Run(dialect, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.cpp"), []byte(scopedCPP), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(gxx, "-O2", dialect, "-no-pie", "-o", "a", "a.cpp")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			exe := filepath.Join(dir, "a")
			got, addrs := inlinesOf(t, exe, "_Z4work")
			script := "python\nfor a in ["
			for _, a := range addrs {
				script += fmt.Sprintf("%d,", a)
			}
			script += `]:
    names, b = [], gdb.block_for_pc(a)
    while b:
        if b.function: names.append(b.function.name)
        b = b.superblock
    print("%d|%s" % (a, "|".join(names)))
end
`
			if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(gdb, "-nx", "-batch", "-x", filepath.Join(dir, "script"), exe).Output()
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for line := range strings.Lines(string(out)) {
				parts := strings.Split(strings.TrimSpace(line), "|")
				addr, err := strconv.ParseUint(parts[0], 10, 64)
				if err != nil || len(parts) < 3 {
					continue
				}
				for i, want := range parts[1 : len(parts)-1] {
					want, _, _ = strings.Cut(want, "(double")
					want = strings.TrimPrefix(want, "static ")
					if i >= len(got[addr]) || plainName(got[addr][i].Name) != want {
						t.Fatalf("%#x: %+v, want %q", addr, got[addr], parts[1:])
					}
					seen[want] = true
				}
			}
			for _, name := range []string{"global", "geo::flat::square", "geo::(anonymous namespace)::hidden", "geo::(anonymous namespace)::Q::twice", "geo::(anonymous namespace)::Q::outside"} {
				if !seen[name] {
					t.Errorf("GDB names no %s", name)
				}
			}
		})
	}
}

// plainName is a name as a reader sees it.
func plainName(name string) string { return demangle.Filter(name, demangle.NoParams) }

// inlinesOf gives the chains at all addresses of the functions whose symbols begin so, and those addresses.
func inlinesOf(t *testing.T, exe string, prefixes ...string) (map[uint64][]Inlined, []uint64) {
	t.Helper()
	x, f := build(t, exe)
	s, _ := load(t, exe)
	extra := map[string][]byte{}
	for _, name := range []string{".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"} {
		if sec := f.Section(name); sec != nil {
			data, err := sec.Data()
			if err != nil {
				t.Fatal(err)
			}
			extra[name] = data
		}
	}
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var addrs []uint64
	for _, sym := range syms {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(sym.Name, p) }) {
			for a := sym.Value; a < sym.Value+sym.Size; a++ {
				addrs = append(addrs, a)
			}
		}
	}
	slices.Sort(addrs)
	got, err := Inlines(context.Background(), s, extra, Places(context.Background(), s, x, addrs), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return got, addrs
}

// builtInlines is debug information of a function at 0x1000 into which two functions are
// inlined, one within the other, from 0x1010 on.
func builtInlines(tb testing.TB) (info, abbrev []byte) {
	tb.Helper()
	b := dwarfbuilder.New()
	b.Attr(dwarf.AttrLowpc, dwarfbuilder.Address(0x1000))
	b.Attr(dwarf.AttrHighpc, dwarfbuilder.Address(0x1100))
	abstract := func(name string) dwarf.Offset {
		off := b.TagOpen(dwarf.TagSubprogram, name)
		b.Attr(dwarf.AttrInline, uint8(1))
		b.TagClose()
		return off
	}
	norm, square := abstract("norm"), abstract("square")
	inlined := func(origin dwarf.Offset, lo, hi uint64, line uint8) {
		b.TagOpen(dwarf.TagInlinedSubroutine, "")
		b.Attr(dwarf.AttrAbstractOrigin, origin)
		b.Attr(dwarf.AttrLowpc, dwarfbuilder.Address(lo))
		b.Attr(dwarf.AttrHighpc, dwarfbuilder.Address(hi))
		b.Attr(dwarf.AttrCallLine, line)
	}
	b.AddSubprogram("work", 0x1000, 0x1100)
	inlined(norm, 0x1010, 0x1040, 20)
	inlined(square, 0x1020, 0x1030, 9)
	b.TagClose()
	b.TagClose()
	b.TagClose()
	abbrev, _, _, info, _, _, _, _, _, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return info, abbrev
}

// A chain of inlined functions is innermost first; each has the line that it is at, and
// the function that has the code no name.
func TestInlinesOfBuiltInformation(t *testing.T) {
	info, abbrev := builtInlines(t)
	s := Sections{Info: bytes.NewReader(info), InfoSize: uint64(len(info)), Abbrev: abbrev}
	places := map[uint64]Place{}
	for _, addr := range []uint64{0x1000, 0x1010, 0x1020, 0x1030, 0x1040} {
		places[addr] = Place{File: "a.c", Line: 3}
	}
	got, err := Inlines(context.Background(), s, nil, places, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	norm := []Inlined{{Name: "norm", File: "a.c", Line: 3}, {Line: 20}}
	want := map[uint64][]Inlined{
		0x1010: norm, 0x1030: norm,
		0x1020: {{Name: "square", File: "a.c", Line: 3}, {Name: "norm", Line: 9}, {Line: 20}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Any bytes give chains of bounded length that end in the function itself.
func FuzzInlines(f *testing.F) {
	info, abbrev, line := seed()
	f.Add(info, abbrev, line, []byte{})
	info, abbrev = builtInlines(f)
	f.Add(info, abbrev, line, []byte{})
	f.Fuzz(func(t *testing.T, info, abbrev, line, ranges []byte) {
		s := Sections{Info: bytes.NewReader(info), InfoSize: uint64(len(info)), Abbrev: abbrev, Line: line}
		places := map[uint64]Place{0x1000: {File: "a.c", Line: 3}, 0x1005: {File: "a.c", Line: 4}}
		got, _ := Inlines(context.Background(), s, map[string][]byte{".debug_ranges": ranges}, places, 1<<20)
		for a, chain := range got {
			if len(chain) < 2 || len(chain) > maxInlineDepth || chain[len(chain)-1].Name != "" {
				t.Fatalf("%#x: %v", a, chain)
			}
		}
	})
}
