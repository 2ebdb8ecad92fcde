package symbolize

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ccagent/internal/testprog"
	"ccagent/symbolize/sources"
)

// Where debug information has a source's checksum (DWARF 5, as clang writes it), that
// decides whether the file is the one that was compiled, and its time does not.
func TestSourceChecksum(t *testing.T) {
	clang := testprog.NeedTool(t, "clang", "clang")
	for _, c := range []struct {
		name    string
		after   string // appended to the source since
		problem string
	}{{"same", "", ""}, {"changed", "/* since */\n", "its checksum is another"}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			source, lib := filepath.Join(dir, "work.c"), filepath.Join(dir, "libwork.so")
			text := "long c_work(long n) { long s = 0; while (n) s += n-- * s; return s; }\n"
			if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(clang, "-gdwarf-5", "-shared", "-fPIC", "-o", lib, "work.c")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if err := os.WriteFile(source, []byte(text+c.after), 0o644); err != nil {
				t.Fatal(err)
			}
			m := module(t, lib, Address{Addr: symbolAddress(t, lib, "c_work")})
			later := time.Now().Add(time.Hour)
			if c.after == "" { // a fresh checkout
				if err := os.Chtimes(source, later, later); err != nil {
					t.Fatal(err)
				}
			} else {
				m.ModTime = later
			}
			got, sum := resolve(t, Job{Modules: []Module{m}, ReadSource: sources.ReadOwn, EmbedSource: true})
			found := false
			for id, f := range got.files {
				if filepath.Base(f.Path) != "work.c" {
					continue
				}
				found = true
				if got.text[id] != text+c.after {
					t.Errorf("the text in the log is %q", got.text[id])
				}
				if !strings.Contains(f.Problem, c.problem) || c.problem == "" && f.Problem != "" {
					t.Errorf("the problem is %q, want %q", f.Problem, c.problem)
				}
			}
			if !found {
				t.Errorf("work.c is not among %+v; %+v %+v", got.files, sum.Problems, got.locations)
			}
		})
	}
}
