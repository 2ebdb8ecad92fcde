package symbolize

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/sources"
)

// tables are what Run emits, by id.
type tables struct {
	modules   map[uint32]eventlog.ModuleSymbols
	files     map[uint32]eventlog.File
	text      map[uint32]string
	bindings  map[uint32]eventlog.Binding
	spans     map[uint32]eventlog.Span
	blocks    map[uint32]eventlog.Block
	locations map[uint32]map[uint64]eventlog.Location
}

func resolve(tb testing.TB, job Job) (tables, Summary) {
	tb.Helper()
	t := tables{
		map[uint32]eventlog.ModuleSymbols{}, map[uint32]eventlog.File{}, map[uint32]string{}, map[uint32]eventlog.Binding{},
		map[uint32]eventlog.Span{}, map[uint32]eventlog.Block{}, map[uint32]map[uint64]eventlog.Location{},
	}
	defined := func(what string, id uint32, ok bool) {
		if id != 0 && !ok {
			tb.Errorf("%s %d is referred to before it is defined", what, id)
		}
	}
	sum, err := Run(context.Background(), job, func(e eventlog.Event) error {
		switch e := e.(type) {
		case *eventlog.ModuleSymbols:
			t.modules[e.Module] = *e
		case *eventlog.File:
			t.files[e.ID] = *e
		case *eventlog.FileText:
			t.text[e.File] += string(e.Text)
		case *eventlog.Binding:
			_, ok := t.bindings[e.Parent]
			defined("parent binding", e.Parent, ok)
			t.bindings[e.ID] = *e
		case *eventlog.Span:
			_, ok := t.files[e.File]
			defined("file", e.File, ok)
			_, ok = t.bindings[e.Binding]
			defined("binding", e.Binding, ok)
			t.spans[e.ID] = *e
		case *eventlog.Block:
			b := *e
			b.Causes, b.Enclosing = slices.Clone(e.Causes), slices.Clone(e.Enclosing)
			for _, c := range b.Causes {
				_, ok := t.spans[c.Span]
				defined("span", c.Span, ok)
			}
			t.blocks[e.ID] = b
		case *eventlog.Locations:
			if t.locations[e.Module] == nil {
				t.locations[e.Module] = map[uint64]eventlog.Location{}
			}
			for _, l := range e.Locations {
				_, ok := t.bindings[l.Binding]
				defined("binding", l.Binding, ok)
				_, ok = t.blocks[l.Block]
				defined("block", l.Block, ok)
				t.locations[e.Module][l.Addr] = l
			}
		default:
			tb.Errorf("Run emitted a %T", e)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return t, sum
}

func module(tb testing.TB, path string, addrs ...Address) Module {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	return Module{ID: 1, Path: path, File: f, Size: st.Size(), Addresses: addrs}
}

// codeAddresses lists addresses in .text, every step bytes.
func codeAddresses(tb testing.TB, path string, step uint64) []Address {
	tb.Helper()
	f, err := elf.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	var out []Address
	for a := text.Addr; a < text.Addr+text.Size; a += step {
		out = append(out, Address{Addr: a})
	}
	return out
}

func symbolAddress(tb testing.TB, path, name string) uint64 {
	tb.Helper()
	f, err := elf.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range syms {
		if s.Name == name {
			return s.Value
		}
	}
	tb.Fatalf("%s has no symbol %s", path, name)
	return 0
}

// TestCategories names functions whose owner is known.
func TestCategories(t *testing.T) {
	exe := testprog.Build(t, "ffi", testprog.Options{Threaded: true})
	want := map[string]eventlog.Category{
		"GarbageCollect": eventlog.CategoryGC, "evacuate1": eventlog.CategoryGC, "scavenge_block": eventlog.CategoryGC, "sweep": eventlog.CategoryGC,
		"scheduleWaitThread": eventlog.CategoryRTS, "allocate": eventlog.CategoryRTS, "schedule": eventlog.CategoryRTS, "hs_main": eventlog.CategoryRTS,
		"stg_upd_frame_info": eventlog.CategorySTG, "stg_ap_pp_fast": eventlog.CategorySTG, "stg_gc_noregs": eventlog.CategorySTG,
		"base_GHCziBase_zpzp_info": eventlog.CategoryHaskell, "Main_main_info": eventlog.CategoryHaskell,
		"main": eventlog.CategoryForeign, "__hsbase_MD5Update": eventlog.CategoryForeign, "c_inner": eventlog.CategoryForeign,
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	m := module(t, exe)
	plain := func(name string) string { name, _, _ = strings.Cut(name, "."); return name } // of copies that the C compiler made
	names := map[uint64]string{}
	for _, s := range syms {
		if _, ok := want[plain(s.Name)]; ok && elf.ST_TYPE(s.Info) != elf.STT_FILE && s.Section != elf.SHN_UNDEF {
			m.Addresses = append(m.Addresses, Address{Addr: s.Value})
			names[s.Value] = plain(s.Name)
		}
	}
	got, _ := resolve(t, Job{Modules: []Module{m}})
	checked := map[string]bool{}
	for addr, l := range got.locations[1] {
		name := names[addr]
		checked[name] = true
		if l.Category != want[name] || l.Quality != eventlog.QualityExact {
			t.Errorf("%s is %v, quality %d; want %v", name, l.Category, l.Quality, want[name])
		}
	}
	for _, must := range []string{"GarbageCollect", "scavenge_block", "schedule", "stg_upd_frame_info", "base_GHCziBase_zpzp_info", "c_inner"} {
		if !checked[must] {
			t.Errorf("%s was not compared", must)
		}
	}
}

// TestNeverConfidentlyWrong takes a program with full debug information as the
// truth, and resolves every address of it again by the symbol table alone: an
// exact name must be the procedure's, and a named module the procedure's.
func TestNeverConfidentlyWrong(t *testing.T) {
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	exe := testprog.Build(t, "example", testprog.Options{})
	bare := filepath.Join(t.TempDir(), "bare")
	if out, err := exec.Command(objcopy, "--strip-debug", exe, bare).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	addrs := codeAddresses(t, exe, 4)
	truth, _ := resolve(t, Job{Modules: []Module{module(t, exe, addrs...)}})
	guess, _ := resolve(t, Job{Modules: []Module{module(t, bare, addrs...)}})
	exact, near, none := 0, 0, 0
	for addr, l := range truth.locations[1] {
		if l.Block == 0 {
			continue
		}
		p := truth.bindings[truth.blocks[l.Block].Binding]
		g := guess.locations[1][addr]
		b := guess.bindings[g.Binding]
		n, ok := hsname.Parse(p.Symbol)
		switch g.Quality {
		case eventlog.QualityExact:
			exact++
			if ok && n.Internal {
				t.Errorf("%#x is in %s (%s), and the symbol table says exactly %s", addr, p.Symbol, p.Name, b.Symbol)
			} else if b.Module != p.Module || ok && b.Name != n.Name {
				t.Errorf("%#x is in %s, and the symbol table says %s.%s", addr, p.Symbol, b.Module, b.Name)
			}
		case eventlog.QualityNear:
			near++
			if b.Module != p.Module {
				t.Errorf("%#x is in module %s, and is said to be near %s.%s", addr, p.Module, b.Module, b.Name)
			}
		default:
			none++
		}
		if g.Category != eventlog.CategoryHaskell && g.Category != eventlog.CategoryUnresolved {
			t.Errorf("%#x in %s is called %v", addr, p.Symbol, g.Category)
		}
	}
	t.Logf("%d exact, %d by module, %d unresolved", exact, near, none)
	if exact < 100 || near < 100 || none > 0 {
		t.Error("the program compares too little")
	}
}

// TestSourceBindings resolves procedures of a program to the bindings that
// were written, with the source at hand and without.
func TestSourceBindings(t *testing.T) {
	exe := testprog.Build(t, "fusion", testprog.Options{})
	for _, withText := range []bool{true, false} {
		job := Job{Modules: []Module{module(t, exe, codeAddresses(t, exe, 4)...)}, EmbedSource: true}
		if withText {
			job.ReadSource = sources.ReadOwn
		}
		got, sum := resolve(t, job)
		if sum.InBlocks < 100 {
			t.Fatalf("only %d addresses in blocks", sum.InBlocks)
		}
		bySpan := map[string]bool{}
		unnamed := 0
		for _, s := range got.spans {
			if s.Binding == 0 {
				unnamed++
				continue
			}
			b := got.bindings[s.Binding]
			if b.Parent != 0 {
				t.Errorf("span at line %d is given to %s.%s, which was made from another binding", s.Line, b.Module, b.Name)
			}
			bySpan[b.Module+"."+b.Name] = true
		}
		for _, want := range []string{"Main.main", "Stream.upTo", "Stream.squares"} {
			if !bySpan[want] {
				t.Errorf("with text %v: no span is in %s; there are %v", withText, want, bySpan)
			}
		}
		if unnamed > len(got.spans)/4 {
			t.Errorf("with text %v: %d of %d spans have no binding", withText, unnamed, len(got.spans))
		}
		texts := 0
		for id, f := range got.files {
			if uint64(len(got.text[id])) != f.TextSize {
				t.Errorf("%s: %d bytes of text, declared %d", f.Path, len(got.text[id]), f.TextSize)
			}
			if f.TextSize > 0 {
				texts++
			}
		}
		if withText == (texts == 0) {
			t.Errorf("with text %v: %d of %d files have text", withText, texts, len(got.files))
		}
	}
}

// A source that was changed after the build is embedded with a warning.
func TestNewerSource(t *testing.T) {
	exe := testprog.Build(t, "rev", testprog.Options{})
	m := module(t, exe, Address{Addr: symbolAddress(t, exe, "Main_main_info")})
	m.ModTime = time.Unix(1e9, 0)
	got, _ := resolve(t, Job{Modules: []Module{m}, ReadSource: sources.ReadOwn, EmbedSource: true})
	newer := false
	for _, f := range got.files {
		newer = newer || strings.Contains(f.Problem, "newer")
	}
	if !newer {
		t.Errorf("files changed since 2001 are not reported: %+v", got.files)
	}
}

// Kernel addresses are named by the symbol before them, return addresses by the call's;
// hidden symbols are reported.
func TestKernel(t *testing.T) {
	kallsyms := "ffffffff81000000 T startup_64\nffffffff81000100 t do_one [mod]\nffffffff81000080 D data\n"
	got, _ := resolve(t, Job{Kernel: NameKernel(strings.NewReader(kallsyms), []Address{{Addr: 0xffffffff81000104}, {Addr: 0xffffffff81000100, Call: true}, {Addr: 0x10}})})
	name := func(a uint64) string { return got.bindings[got.locations[0][a].Binding].Name }
	if name(0xffffffff81000104) != "do_one" || name(0xffffffff81000100) != "startup_64" || name(0x10) != "" {
		t.Errorf("%+v", got.locations[0])
	}
	_, sum := resolve(t, Job{Kernel: NameKernel(strings.NewReader("0000000000000000 T startup_64\n"), []Address{{Addr: 1 << 63}})})
	if len(sum.Problems) == 0 {
		t.Error("hidden kernel addresses are not reported")
	}
}

// TestSharedLibraries resolves in a Haskell shared library and in libc.
func TestSharedLibraries(t *testing.T) {
	ghc, _ := testprog.GHC(t, "")
	out, err := exec.Command(ghc, "--print-libdir").Output()
	if err != nil {
		t.Fatal(err)
	}
	libs, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "base-*", "libHSbase-*.so"))
	if len(libs) == 0 {
		libs, _ = filepath.Glob("/usr/lib/ghc/base-*/libHSbase-*.so")
	}
	if len(libs) == 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "GHC's base as a shared library"})
	}
	addrs := codeAddresses(t, libs[0], 64)
	got, sum := resolve(t, Job{Modules: []Module{module(t, libs[0], addrs...)}})
	byCategory := map[eventlog.Category]int{}
	for _, l := range got.locations[1] {
		byCategory[l.Category]++
	}
	t.Logf("%d addresses, %d named, %v", sum.Addresses, sum.Resolved, byCategory)
	if byCategory[eventlog.CategoryHaskell] < len(addrs)*9/10 || byCategory[eventlog.CategoryRTS] > 0 {
		t.Errorf("categories %v", byCategory)
	}
	if sum.Resolved < len(addrs)*3/4 {
		t.Errorf("%d of %d addresses have a name or module", sum.Resolved, len(addrs))
	}
}

// The info table map places code by whole closures: its spans lie in the sources,
// both are read of the same sources, they agree on the binding.
func TestInfoTableMap(t *testing.T) {
	for _, release := range testprog.Releases {
		if release == "" {
			continue // the machine's GHC may be older than the map
		}
		t.Run(release, func(t *testing.T) {
			exe := testprog.Build(t, "example", testprog.Options{Release: release, NoDebug: true, Flags: []string{"-finfo-table-map", "-fdistinct-constructor-tables"}})
			m := module(t, exe, codeAddresses(t, exe, 16)...)
			got, _ := resolve(t, Job{Modules: []Module{m}, ReadSource: sources.ReadOwn, EmbedSource: true})
			if ms := got.modules[1]; !ms.HasIPE || ms.HasNotes || !strings.Contains(ms.Problem, "-g3") {
				t.Errorf("module: %+v", ms)
			}
			files := map[string]int{}
			for _, b := range got.blocks {
				for _, c := range b.Causes {
					s := got.spans[c.Span]
					f := got.files[s.File]
					files[f.Path]++
					text := strings.Split(got.text[s.File], "\n")
					if s.EndLine < s.Line || int(s.EndLine) > len(text) || s.EndLine == s.Line && int(s.EndCol) > len(text[s.Line-1])+1 {
						t.Errorf("span %+v is outside of %s", s, f.Path)
					}
				}
			}
			if len(files) < 5 {
				t.Errorf("spans in %v only", files)
			}
			// The binding that an info table's span lies in is the one that it is of.
			want := map[string]string{"Dictionary_find_info": "find", "Words_split_info": "split", "Corpus_zdwdocument_info": "document"}
			found := 0
			for _, b := range got.bindings {
				if source := want[b.Symbol]; source != "" {
					root := b
					for root.Parent != 0 {
						root = got.bindings[root.Parent]
					}
					if found++; root.Name != source {
						t.Errorf("%s is made from %s, want %s", b.Symbol, root.Name, source)
					}
				}
			}
			if found == 0 {
				t.Error("none of the bindings was seen")
			}
			described := 0
			for _, b := range got.bindings {
				if strings.Contains(b.Detail, "thunk of type") {
					described++
				}
			}
			if described < 10 {
				t.Errorf("only %d bindings have their closures' type", described)
			}
		})
	}
}
