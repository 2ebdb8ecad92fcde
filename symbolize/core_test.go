package symbolize

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/symbolize/core"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/sources"
)

// coreTables is Core as Run emits it.
type coreTables struct {
	cores    []eventlog.Core
	text     map[uint32]string
	bindings map[uint32]eventlog.Binding
	spans    map[uint32]eventlog.Span
	files    map[uint32]eventlog.File
	sum      Summary
}

func resolveCore(t *testing.T, job Job) coreTables {
	t.Helper()
	c := coreTables{text: map[uint32]string{}, bindings: map[uint32]eventlog.Binding{}, spans: map[uint32]eventlog.Span{}, files: map[uint32]eventlog.File{}}
	job.ReadSource, job.EmbedSource = sources.ReadOwn, true
	if job.FindDumps == nil {
		job.FindDumps = func(_ uint32, dir string) ([]core.Dump, error) { return core.FindDumps(dir) }
	}
	var err error
	c.sum, err = Run(context.Background(), job, func(e eventlog.Event) error {
		switch e := e.(type) {
		case *eventlog.Core:
			dumped := *e
			dumped.Notes = slices.Clone(e.Notes)
			c.cores = append(c.cores, dumped)
		case *eventlog.CoreText:
			if e.Offset != uint64(len(c.text[e.Core])) {
				t.Errorf("text of core %d at %d after %d bytes", e.Core, e.Offset, len(c.text[e.Core]))
			}
			c.text[e.Core] += string(e.Text)
		case *eventlog.Binding:
			c.bindings[e.ID] = *e
		case *eventlog.Span:
			c.spans[e.ID] = *e
		case *eventlog.File:
			c.files[e.ID] = *e
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var coreFlags = []string{"-v0", "-O2", "-g3", "-ddump-simpl", "-ddump-to-file", "-dsuppress-all", "-dno-suppress-ticks"}

// The Core of each procedure is joined to it by its name, of internal ones by
// their unique, and its notes to the log's spans: of a loop that a rule fused,
// those of both modules.
func TestCoreOfProgram(t *testing.T) {
	testprog.Each(t, func(t *testing.T, release string) {
		dir := t.TempDir()
		inputs := testprog.CopySource(t, "fusion", dir)
		testprog.Compile(t, release, dir, append(append(coreFlags, "-outputdir", "dist/build", "-o", "fusion"), inputs...)...)
		exe := filepath.Join(dir, "fusion")
		job := Job{Modules: []Module{module(t, exe, codeAddresses(t, exe, 4)...)}}
		if release != "" {
			job.CoreDirs = []string{dir} // it was compiled in a folder of the chroot's
		}
		c := resolveCore(t, job)
		if len(c.cores) < 5 || c.sum.Cores != len(c.cores) {
			t.Fatalf("%d bindings of Core, %d counted; problems: %q", len(c.cores), c.sum.Cores, c.sum.Problems)
		}
		fused := false
		seen := map[uint32]bool{}
		for _, core := range c.cores {
			b := c.bindings[core.Binding]
			text := c.text[core.ID]
			if seen[core.Binding] || uint64(len(text)) != core.TextSize || !strings.HasPrefix(text, core.Name) || core.Problem != "" {
				t.Errorf("%+v of %+v", core, b)
			}
			seen[core.Binding] = true
			unique := core.Name[strings.LastIndexByte(core.Name, '_')+1:]
			if b.Symbol != unique+"_info" && b.Symbol != hsname.Linkage(b.Package, b.Module, core.Name)+"_info" {
				t.Errorf("Core of %s is taken for that of %s", core.Name, b.Symbol)
			}
			dump, err := os.ReadFile(core.Dump)
			if err != nil || !strings.Contains(string(dump), "\n"+text) {
				t.Errorf("%s is not in %s (%v)", core.Name, core.Dump, err)
			}
			files := map[string]bool{}
			for _, n := range core.Notes {
				span := c.spans[n.Span]
				file := c.files[span.File].Path
				files[file] = true
				// The note stands right before what it scopes over.
				end := fmt.Sprintf("%d:%d-%d>", span.Line, span.Col, span.EndCol-1)
				switch {
				case span.EndLine != span.Line:
					end = fmt.Sprintf("(%d,%d)-(%d,%d)>", span.Line, span.Col, span.EndLine, span.EndCol-1)
				case span.EndCol == span.Col+1:
					end = fmt.Sprintf("%d:%d>", span.Line, span.Col)
				}
				lines := strings.Split(text, "\n")
				before := strings.TrimRight(strings.Join(lines[:n.Line-1], "\n")+"\n"+lines[n.Line-1][:n.Col-1], " \n")
				if !strings.HasSuffix(before, "src<"+file+":"+end) {
					t.Errorf("%s: a note of %s:%s is said to scope over %d:%d", core.Name, file, end, n.Line, n.Col)
				}
			}
			if files["Main.hs"] && files["Stream.hs"] && strings.Contains(b.Name+core.Name, "sumOfSquares") {
				fused = true
			}
		}
		if !fused {
			t.Error("no Core of sumOfSquares has notes of both Main.hs and Stream.hs")
		}
	})
}

// Dumps that are not the program's are left alone, and newer ones marked.
func TestCoreOfOtherBuilds(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inputs := testprog.CopySource(t, "fac", dir)
	testprog.Compile(t, "", dir, append(append(coreFlags, "-dsuppress-uniques", "-outputdir", "obj", "-o", "fac"), inputs...)...)
	exe := filepath.Join(dir, "fac")
	mod := module(t, exe, codeAddresses(t, exe, 4)...)
	mod.ModTime = time.Now().Add(time.Hour)
	job := Job{Modules: []Module{mod}}
	own := resolveCore(t, job)
	if len(own.cores) == 0 {
		t.Fatal("no Core")
	}
	good, err := os.ReadFile(own.cores[0].Dump)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(own.cores[0].Dump); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, text string
		cores            int
		problem          string
		newer            bool
	}{
		{name: "none"},
		{name: "of another module", path: "a/Other.dump-simpl", text: string(good)},
		{name: "in a hidden folder", path: ".cache/Main.dump-simpl", text: string(good)},
		{name: "of Stack's", path: ".stack-work/dist/Main.dump-simpl", text: string(good), cores: len(own.cores)},
		{name: "no dump", path: "a/Main.dump-simpl", text: "\x7fELF", problem: "a/Main.dump-simpl"},
		{name: "no Core", path: "a/Main.dump-simpl", text: "module Main where\n", problem: "no dump of -ddump-simpl"},
		{name: "of older sources", path: "a/Main.dump-simpl", text: strings.ReplaceAll(string(good), "Main.hs:", "Main.hs:9"), problem: "of another build"},
		{name: "newer", path: "a/Main.dump-simpl", text: string(good), cores: len(own.cores), newer: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.path != "" {
				write(c.path, c.text)
				defer os.Remove(filepath.Join(dir, c.path))
			}
			if c.newer {
				job.Modules[0].ModTime = time.Now().Add(-time.Hour)
			}
			got := resolveCore(t, job)
			problems := strings.Join(Lines(got.sum.Problems), "\n")
			if len(got.cores) != c.cores || !strings.Contains(problems, c.problem) || c.problem == "" && strings.Contains(problems, "Core") {
				t.Errorf("%d bindings of Core, problems %q", len(got.cores), problems)
			}
			for _, core := range got.cores {
				if (core.Problem != "") != c.newer {
					t.Errorf("%s: problem %q", core.Name, core.Problem)
				}
			}
		})
	}
}
