package symbolize

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Code without source notes, built with -g1, has the procedure and the line that addr2line
// gives, and each of its procedures a binding of the source or a name of its own.
func TestCodeWithoutNotes(t *testing.T) {
	for _, release := range []string{"", "9.6.6", "9.10.3"} {
		t.Run("GHC "+release, func(t *testing.T) {
			exe := testprog.Build(t, "rev", testprog.Options{Release: release, NoDebug: true, Flags: []string{"-g1"}})
			var addrs []Address
			for _, u := range haskellUnits(t, exe) {
				for a := u[0]; a < u[1] && len(addrs) < 4000; a += 4 {
					addrs = append(addrs, Address{Addr: a})
				}
			}
			if len(addrs) < 100 {
				t.Fatalf("%d addresses", len(addrs))
			}
			got, _ := resolve(t, Job{Modules: []Module{module(t, exe, addrs...)}})
			names := map[string]string{} // symbols by name, of those that are of no source binding
			internal := regexp.MustCompile(`^[a-z][0-9A-Za-z]+_info$`)
			lines, procedures := 0, map[string]bool{}
			for a, w := range addr2line(t, exe, addrs) {
				l := got.locations[1][a]
				b := got.bindings[l.Binding]
				if l.Category != eventlog.CategoryHaskell {
					t.Errorf("%#x in %s is %v", a, w.function, l.Category)
				}
				if internal.MatchString(w.function) {
					procedures[w.function] = true
					if b.Symbol != w.function {
						t.Errorf("%#x is in %s, not in %q (%s)", a, w.function, b.Symbol, b.Name)
					}
				}
				if b.Parent == 0 && b.Name != "" && !strings.HasPrefix(b.Name, "(local code before") {
					if other, ok := names[b.Module+"."+b.Name]; ok && other != b.Symbol {
						t.Errorf("%s and %s are both named %s", other, b.Symbol, b.Name)
					}
					names[b.Module+"."+b.Name] = b.Symbol
				}
				if w.line != 0 {
					lines++
					if len(l.Lines) == 0 {
						t.Errorf("%#x has no line, it is at %s:%d", a, w.file, w.line)
						continue
					}
				}
				if len(l.Lines) > 0 {
					if line := l.Lines[0]; filepath.Base(got.files[line.File].Path) != w.file || line.Line != w.line {
						t.Errorf("%#x is at %s:%d, not at %s:%d", a, w.file, w.line, got.files[line.File].Path, line.Line)
					}
				}
			}
			if lines < 20 || len(procedures) < 3 {
				t.Errorf("%d of %d addresses have a line, %d procedures", lines, len(addrs), len(procedures))
			}
		})
	}
}

// haskellUnits gives the code of GHC's compilation units.
func haskellUnits(t *testing.T, exe string) (out [][2]uint64) {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	const haskell = 0x18
	for r := d.Reader(); ; r.SkipChildren() {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return out
		}
		if e.Tag != dwarf.TagCompileUnit || e.Val(dwarf.AttrLanguage) != int64(haskell) {
			continue
		}
		ranges, err := d.Ranges(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ranges...)
	}
}

type place struct {
	function, file string
	line           uint32
}

// addr2line asks binutils about addresses.
func addr2line(t *testing.T, exe string, addrs []Address) map[uint64]place {
	t.Helper()
	cmd := exec.Command(testprog.NeedTool(t, "addr2line", "binutils"), "-f", "-e", exe)
	var in strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a.Addr)
	}
	cmd.Stdin = strings.NewReader(in.String())
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(said) != 2*len(addrs) {
		t.Fatalf("addr2line gave %d lines for %d addresses", len(said), len(addrs))
	}
	out := map[uint64]place{}
	for i, a := range addrs {
		p := place{function: said[2*i]}
		at, _, _ := strings.Cut(said[2*i+1], " ")
		file, line, _ := strings.Cut(at, ":")
		n, _ := strconv.ParseUint(line, 10, 32)
		p.file, p.line = filepath.Base(file), uint32(n)
		out[a.Addr] = p
	}
	return out
}
