package elffile

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/testprog"

	"github.com/google/go-cmp/cmp"
)

// A table gives the symbols that Symbols gives, whether all names are held or each is read when it
// is asked for, and knows their names.
func TestSymbolTable(t *testing.T) {
	exe := testprog.Build(t, "rev", testprog.Options{})
	dynamic := filepath.Join(t.TempDir(), "stripped")
	strip := testprog.NeedTool(t, "strip", "binutils")
	if out, err := exec.Command(strip, "-o", dynamic, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range []string{exe, dynamic} {
		for _, held := range []bool{true, false} {
			f := openFile(t, path)
			whole, err := f.SymbolTable(1 << 30)
			if err != nil {
				t.Fatal(err)
			}
			known := f.KnownSymbolTable(whole.Files(), 1<<30)
			if !held {
				whole.names = ""
			}
			if known.Len() != whole.Len() || known.Len() == 0 {
				t.Fatalf("%d symbols are known, of %d", known.Len(), whole.Len())
			}
			step := 1 + 3*whole.Len()/manyAlone // two reads a symbol
			for i := 0; i < whole.Len(); i += step {
				want, wantOK := whole.Entry(i)
				if got, ok := known.Entry(i); got != want || ok != wantOK || known.Symbol(i) != whole.Symbol(i) {
					t.Fatalf("symbol %d is known as %+v, and is %+v", i, known.Symbol(i), whole.Symbol(i))
				}
			}
			if known.raw != nil {
				t.Error("all of a known table was read")
			}
			for i := range whole.Len() {
				if known.Symbol(i) != whole.Symbol(i) {
					t.Fatalf("symbol %d is known as %+v, and is %+v", i, known.Symbol(i), whole.Symbol(i))
				}
			}
			if read := known.raw != nil; read != (whole.Len() >= manyAlone) {
				t.Errorf("after all of %d symbols the table was read as a whole: %v", whole.Len(), read)
			}
			known = f.KnownSymbolTable(whole.Files(), 1<<30)
			n, all := 0, 0
			known.EachNamed("_", "_info", func(int, string) { n++ })
			whole.EachNamed("_", "_info", func(int, string) { all++ })
			if n != all {
				t.Errorf("%d names of a known table, of %d", n, all)
			}
		}
		for _, held := range []bool{true, false} {
			f := openFile(t, path)
			want, err := f.Symbols(1 << 30)
			if err != nil {
				t.Fatal(err)
			}
			table, err := f.SymbolTable(1 << 30)
			if err != nil {
				t.Fatal(err)
			}
			if !held {
				table.names = ""
			}
			var got []Symbol
			for i := range table.Len() {
				e, ok := table.Entry(i)
				if !ok {
					continue
				}
				s := table.Symbol(i)
				got = append(got, s)
				if s.Name, s.File = "", ""; s != e {
					t.Fatalf("entry %d is %+v, and with its name %+v", i, e, s)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s, names held %v: %.2000s", filepath.Base(path), held, diff)
			}
			for _, c := range [][2]string{{"", ""}, {"base", "_info"}, {"lib", ""}, {"stg_", "stg_upd_frame_info"}} {
				var wanted, named []string
				for _, s := range want {
					if strings.Contains(s.Name, c[0]) && strings.HasSuffix(s.Name, c[1]) {
						wanted = append(wanted, s.Name)
					}
				}
				table.EachNamed(c[0], c[1], func(i int, name string) {
					if table.Symbol(i).Name != name {
						t.Errorf("symbol %d is %q, not %q", i, table.Symbol(i).Name, name)
					}
					named = append(named, name)
				})
				if !slices.Equal(wanted, named) {
					t.Errorf("%s, names held %v: %d names with %q, not %d", filepath.Base(path), held, len(named), c, len(wanted))
				}
			}
			for _, s := range want {
				if defined, known := table.Find(s.Name); known && !defined {
					t.Errorf("%s is not found", s.Name)
				}
			}
			if defined, known := table.Find("not a name"); defined || known != (path == dynamic) {
				t.Errorf("%s: a name that is not there: %v, %v", filepath.Base(path), defined, known)
			}
		}
	}
}
