package symbolize

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/sources"
)

// On arm64 GHC writes no notes; the info table map is the only source map, and
// nothing else is asked for.
func TestInfoTableMapOnArm64(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	ghc := filepath.Join(cache, "ccagent", "hwtest", "tools-arm64", "ghc")
	if _, err := os.Stat(ghc); err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "GHC for arm64", Hint: "scripts/ghc-arm64"})
	}
	dir := t.TempDir()
	inputs := testprog.CopySource(t, "fusion", dir)
	cmd := exec.Command(ghc, append([]string{"-v0", "-O2", "-g3", "-finfo-table-map", "-fdistinct-constructor-tables", "-optl-static", "-o", "fusion"}, inputs...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	exe := filepath.Join(dir, "fusion")
	m := module(t, exe, codeAddresses(t, exe, 16)...)
	b, err := binary.Identify(m.File, m.Size)
	if err != nil || b.Arch != "arm64" || !b.HasIPE || !b.GHC {
		t.Fatalf("%+v, %v", b, err)
	}
	got, _ := resolve(t, Job{Modules: []Module{m}, ReadSource: sources.ReadOwn, SourceDirs: []string{dir}, EmbedSource: true})
	if ms := got.modules[1]; !ms.HasIPE || strings.Contains(ms.Problem, "-g3") {
		t.Errorf("module: %+v", ms)
	}
	// Of the program's own code most has a span; each lies in its source.
	own, placed := 0, 0
	files := map[string]bool{}
	for _, l := range got.locations[1] {
		if bd := got.bindings[l.Binding]; l.Category != eventlog.CategoryHaskell || bd.Module != "Main" && bd.Module != "Stream" {
			continue
		}
		own++
		if len(got.blocks[l.Block].Causes) > 0 {
			placed++
		}
		for _, c := range got.blocks[l.Block].Causes {
			span := got.spans[c.Span]
			file := got.files[span.File]
			files[filepath.Base(file.Path)] = true
			if lines := strings.Count(got.text[span.File], "\n"); span.Line == 0 || int(span.EndLine) > lines+1 {
				t.Errorf("%#x has span %+v of %s, which has %d lines", l.Addr, span, file.Path, lines)
			}
		}
	}
	t.Logf("%d addresses of the program's own code, %d with a span, of %v", own, placed, files)
	if own < 30 || placed*3 < own || !files["Main.hs"] {
		t.Errorf("%d of %d addresses of the program's own code have a span, of %v", placed, own, files)
	}
}
