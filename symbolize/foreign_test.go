package symbolize

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

const foreignCPP = `namespace geo {
inline double square(double x) { volatile double y = x; return y * y; }
template <class T> struct Point {
  T x, y;
  double norm() const { return square(x) + square(y); }
  Point operator+(const Point &o) const;
};
template <class T> __attribute__((noinline)) Point<T> Point<T>::operator+(const Point &o) const {
  return {x + o.x * norm(), y};
}
}
extern "C" double cpp_work(long n) {
  geo::Point<double> p = {1, 2};
  for (long i = 0; i < n; i++)
    p = p + p;
  auto last = [&](double d) __attribute__((noinline)) { return d + p.norm(); };
  return last(2);
}
`

const foreignRust = `pub mod geo {
    pub struct P { pub x: f64, pub y: f64 }
    #[inline(always)]
    fn square(x: f64) -> f64 { let y = std::hint::black_box(x); y * y }
    impl P {
        #[inline(always)]
        pub fn norm(&self) -> f64 { square(self.x) + square(self.y) }
    }
    pub trait Shape { fn area(&self) -> f64; }
    impl Shape for P {
        #[inline(never)]
        fn area(&self) -> f64 { self.norm() * self.x }
    }
    #[inline(never)]
    pub fn fold<T: Shape>(all: &[T]) -> f64 { all.iter().map(|s| s.area() + 1.0).sum() }
}
#[no_mangle]
pub extern "C" fn rust_work(n: usize) -> f64 {
    let ps: Vec<geo::P> = (0..n).map(|i| geo::P { x: i as f64, y: 2.0 }).collect();
    geo::fold(&ps) + ps.iter().map(|p| p.norm()).sum::<f64>()
}
`

// C++ and Rust code in a shared library has its functions' names as people
// write them, and the functions that were inlined there, with lines, as
// binutils has them.
func TestForeignLanguages(t *testing.T) {
	addr2line := testprog.NeedTool(t, "addr2line", "binutils")
	for _, c := range []struct {
		language, file, source string
		compile                []string
		functions              []string // their names; of several the first that is there
		inlined                []string
	}{
		{"c++", "work.cpp", foreignCPP, []string{"g++", "-O2", "-g", "-shared", "-fPIC", "-o"},
			[]string{"cpp_work", "geo::Point<double>::operator+"}, []string{"geo::Point<double>::norm", "geo::square"}},
		{"rust", "work.rs", foreignRust, []string{"rustc", "-O", "-g", "--crate-type", "cdylib", "-o"},
			[]string{"rust_work", "work::geo::fold::<work::geo::P>|work::geo::fold", "<work::geo::P as work::geo::Shape>::area"}, []string{"<work::geo::P>::norm|work::geo::P::norm", "work::geo::square"}},
	} {
		t.Run(c.language, func(t *testing.T) {
			compiler := testprog.NeedTool(t, c.compile[0], "")
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.source), 0o644); err != nil {
				t.Fatal(err)
			}
			lib := filepath.Join(dir, "libwork.so")
			cmd := exec.Command(compiler, append(c.compile[1:], lib, c.file)...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, _ := resolve(t, Job{Modules: []Module{module(t, lib, functionAddresses(t, lib)...)}})
			named := map[string][]uint64{} // addresses by function
			inner := map[string]bool{}
			for addr, l := range got.locations[1] {
				name := got.bindings[l.Binding].Name
				if l.Quality == eventlog.QualityExact {
					named[name] = append(named[name], addr)
				}
				for _, line := range l.Lines[:max(0, len(l.Lines)-1)] {
					inner[got.bindings[line.Binding].Name] = true
				}
				if l.Category != eventlog.CategoryForeign {
					t.Fatalf("%#x in %s is called %v", addr, name, l.Category)
				}
			}
			for _, alternatives := range c.inlined {
				found := false
				for name := range strings.SplitSeq(alternatives, "|") {
					found = found || inner[name]
				}
				if !found {
					t.Errorf("%s is inlined nowhere; there are %v", alternatives, inner)
				}
			}
			var in bytes.Buffer
			for _, alternatives := range c.functions {
				var addrs []uint64
				for name := range strings.SplitSeq(alternatives, "|") {
					addrs = append(addrs, named[name]...)
				}
				if len(addrs) == 0 {
					t.Errorf("no address is in %s", alternatives)
				}
				for _, a := range addrs {
					fmt.Fprintf(&in, "%#x\n", a)
				}
			}
			cmd = exec.Command(addr2line, "-a", "-i", "-e", lib)
			cmd.Stdin = &in
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			deepest := 0
			for _, part := range strings.Split("\n"+string(out), "\n0x")[1:] {
				rows := strings.Split(strings.TrimSpace(part), "\n")
				addr, err := strconv.ParseUint(rows[0], 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				l := got.locations[1][addr]
				var have []string
				for _, line := range l.Lines {
					have = append(have, fmt.Sprintf("%s:%d", filepath.Base(got.files[line.File].Path), line.Line))
				}
				var want []string
				for _, row := range rows[1:] {
					row, _, _ = strings.Cut(filepath.Base(row), " ") // "(discriminator 2)"
					want = append(want, strings.Replace(row, "?", "0", 1))
				}
				deepest = max(deepest, len(want))
				if strings.Join(want, " ") != strings.Join(have, " ") {
					t.Errorf("%#x in %s: %v, addr2line has %v", addr, got.bindings[l.Binding].Name, have, want)
				}
			}
			if deepest < 3 {
				t.Errorf("the deepest chain has %d functions: the program tests nothing", deepest)
			}
		})
	}
}

// functionAddresses lists every address of a library's own functions.
func functionAddresses(t *testing.T, lib string) (out []Address) {
	t.Helper()
	f, err := elf.Open(lib)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range syms {
		if strings.Contains(s.Name, "geo") || strings.Contains(s.Name, "_work") {
			for a := s.Value; a < s.Value+s.Size; a++ {
				out = append(out, Address{Addr: a})
			}
		}
	}
	return out
}
