package dwarf

import (
	"context"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence/symtab"

	"github.com/google/go-cmp/cmp"
)

// openCached opens a program's evidence with a cache.
func openCached(t *testing.T, f *elffile.File, c Cache) *Evidence {
	t.Helper()
	all, err := f.SymbolTable(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	e, problems := Open(context.Background(), f, f, symtab.NewTable(f, all, true), Options{Memory: 1 << 30, Cache: c, Warn: t.Errorf})
	if e == nil || len(problems) > 0 {
		t.Fatalf("%v", problems)
	}
	return e
}

// origins gives for each procedure where it came from, and whether that was worked out.
func origins(e *Evidence) (of []dwarfindex.Proc, adopted int) {
	for i := 1; i <= e.x.Procs(); i++ {
		p := e.x.Proc(dwarfindex.ProcID(i))
		if of = append(of, p); p.Adopted {
			adopted++
		}
	}
	return of, adopted
}

// Where procedures came from is the same whether their references were looked for or kept, and
// what is kept of them is taken only if it can be so.
func TestReferencesCache(t *testing.T) {
	f := elftest.Open(t, testprog.Build(t, "maps", testprog.Options{}))
	c := DirCache{t.TempDir(), os.Geteuid()}
	want, adopted := origins(openCached(t, f, c))
	if adopted == 0 {
		t.Fatal("no procedure's origin was worked out")
	}
	parts := LoadParts(c, 0, referencesName, 1<<30)
	if len(parts[partReferences]) < adopted*referenceSize {
		t.Fatalf("%d bytes of references were kept, for %d procedures", len(parts[partReferences]), adopted)
	}
	if got, _ := origins(openCached(t, f, c)); !cmp.Equal(want, got) {
		t.Errorf("other origins by what was kept: %s", cmp.Diff(want, got))
	}
	// Fewer references give fewer origins, so they do come from the cache.
	if err := StoreParts(c, 0, referencesName, map[string][]byte{partReferences: {}}); err != nil {
		t.Fatal(err)
	}
	if _, n := origins(openCached(t, f, c)); n != 0 {
		t.Errorf("%d origins without references", n)
	}
	whole := parts[partReferences]
	beyond := slices.Clone(whole)
	binary.LittleEndian.PutUint32(beyond[8:], uint32(len(want)+1))
	nowhere := slices.Clone(whole)
	binary.LittleEndian.PutUint64(nowhere, 1)
	for name, b := range map[string][]byte{"cut off": whole[:len(whole)-1], "to no procedure": beyond, "from nowhere": nowhere} {
		if err := StoreParts(c, 0, referencesName, map[string][]byte{partReferences: b}); err != nil {
			t.Fatal(err)
		}
		if got, _ := origins(openCached(t, f, c)); !cmp.Equal(want, got) {
			t.Errorf("%s: used", name)
		}
	}
}

// Whatever bytes are kept as references, those taken are to orphans and from code that shows where
// these came from.
func FuzzRecallReferences(f *testing.F) {
	file := elftest.Open(f, testprog.Build(f, "maps", testprog.Options{}))
	all, err := file.SymbolTable(1 << 30)
	if err != nil {
		f.Fatal(err)
	}
	e, _ := Open(context.Background(), file, file, symtab.NewTable(file, all, true), Options{Memory: 1 << 30, Warn: f.Errorf})
	if e == nil {
		f.Fatal("no evidence")
	}
	var orphans []dwarfindex.ProcID
	for i := 1; i <= e.x.Procs(); i++ {
		if p := e.x.Proc(dwarfindex.ProcID(i)); p.Adopted {
			orphans = append(orphans, p.ID)
		}
	}
	f.Add([]byte{})
	f.Add(encodeReferences([]dwarfindex.Reference{{From: e.x.Start(orphans[0]), To: orphans[0]}, {From: 1, To: 2}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		refs, ok := e.recallReferences(b, orphans)
		if ok && len(refs)*referenceSize != len(b) {
			t.Fatalf("%d references of %d bytes", len(refs), len(b))
		}
		for _, r := range refs {
			if _, is := slices.BinarySearch(orphans, r.To); !is || e.x.Lookup(r.From) == dwarfindex.NoBlock {
				t.Fatalf("%+v", r)
			}
		}
	})
}
