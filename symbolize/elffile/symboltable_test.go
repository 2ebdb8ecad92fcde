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
