package dwarf

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"

	"github.com/google/go-cmp/cmp"
)

// indexed opens a program's debug information.
func indexed(t *testing.T, name string) (dwarfindex.Sections, *elffile.File) {
	t.Helper()
	f := elftest.Open(t, testprog.Build(t, name, testprog.Options{}))
	s, err := newReader(f, 1<<30, &Options{}).sections()
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

// An index comes back from the cache as it was, and not at all once its file was touched
// by others.
func TestCache(t *testing.T) {
	ctx := context.Background()
	s, f := indexed(t, "fusion")
	x, err := dwarfindex.Build(ctx, s, dwarfindex.Options{Executable: f.Executable})
	if err != nil {
		t.Fatal(err)
	}
	key := cacheKey(dwarfindex.Format)
	c := DirCache{filepath.Join(t.TempDir(), "deep", "index"), os.Geteuid()}
	if loadIndex(c, 1, key, 1<<30) != nil {
		t.Fatal("an empty cache has an index")
	}
	if err := storeIndex(c, 1, key, x); err != nil {
		t.Fatal(err)
	}
	got := loadIndex(c, 1, key, 1<<30)
	if got == nil {
		t.Fatal("the index is not found again")
	}
	if diff := cmp.Diff(x.Encode(nil), got.Encode(nil)); diff != "" {
		t.Error("another index came back")
	}
	if entries, _ := os.ReadDir(c.Dir); len(entries) != 1 {
		t.Errorf("the cache holds %v", entries)
	}
	if loadIndex(c, 1, key, 100) != nil {
		t.Error("an index over the memory budget was read")
	}

	// What is not as it was written is not used: a damaged file, one that others
	// may write to, a link to it.
	path := c.path(key)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func() error{
		"damaged":        func() error { d := append([]byte(nil), data...); d[len(d)/2] ^= 1; return os.WriteFile(path, d, 0o600) },
		"cut off":        func() error { return os.WriteFile(path, data[:len(data)-1], 0o600) },
		"empty":          func() error { return os.WriteFile(path, nil, 0o600) },
		"group-writable": func() error { return os.Chmod(path, 0o620) },
		"a link": func() error {
			if err := os.Rename(path, path+".real"); err != nil {
				return err
			}
			return os.Symlink(path+".real", path)
		},
		"a folder": func() error { os.Remove(path); return os.Mkdir(path, 0o700) },
	} {
		os.RemoveAll(path)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if loadIndex(c, 1, key, 1<<30) == nil {
			t.Fatal("the index is not found before it is harmed")
		}
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if loadIndex(c, 1, key, 1<<30) != nil {
			t.Errorf("%s: used", name)
		}
	}
}

// Compressed sections come back from the cache as they were, and not once the file in the cache
// is damaged.
func TestSectionsCache(t *testing.T) {
	exe := testprog.Build(t, "example", testprog.Options{})
	packed := filepath.Join(t.TempDir(), "packed")
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	if out, err := exec.Command(objcopy, "--compress-debug-sections=zlib", exe, packed).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := DirCache{t.TempDir(), os.Geteuid()}
	warn := func(format string, args ...any) { t.Errorf(format, args...) }
	read := func() (*reader, dwarfindex.Sections) {
		r := newReader(elftest.Open(t, packed), 1<<30, &Options{Cache: c, Warn: warn})
		r.keeps = true // however small it is
		r.load()
		s, err := r.sections()
		if err != nil {
			t.Fatal(err)
		}
		r.keep()
		return r, s
	}
	first, want := read()
	if first.kept != nil || len(first.fresh) == 0 {
		t.Fatalf("%d sections of an empty cache, %d decompressed", len(first.kept), len(first.fresh))
	}
	second, got := read()
	if len(second.kept) != len(first.fresh) || len(second.fresh) != 0 {
		t.Errorf("%d of %d sections were kept; %d were decompressed again", len(second.kept), len(first.fresh), len(second.fresh))
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *bytes.Reader) bool { return a.Size() == b.Size() })); diff != "" {
		t.Errorf("other sections came back: %.1000s", diff)
	}
	path := c.path(cacheKey(sectionsMagic))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if third, _ := read(); third.kept != nil {
		t.Error("a damaged file was used")
	}
}

// Whatever bytes are in the cache, the sections of them lie within them.
func FuzzDecodeSections(f *testing.F) {
	f.Add(encodeSections(map[string][]byte{".debug_info": {1, 2, 3}, ".debug_str": nil}))
	f.Fuzz(func(t *testing.T, b []byte) {
		le := binary.LittleEndian
		for _, b := range [][]byte{b, le.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))} {
			n := 0
			for name, data := range decodeSections(b) {
				n += len(name) + len(data)
			}
			if n > len(b) {
				t.Fatalf("%d bytes of %d", n, len(b))
			}
		}
	})
}

// The cache forgets what was not used for the longest time.
func TestCachePrunesTheOldest(t *testing.T) {
	c := DirCache{t.TempDir(), os.Geteuid()}
	now := time.Now()
	for i, name := range []string{"old", "older", "new"} {
		p := c.path(name)
		if err := os.WriteFile(p, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		at := now.Add(-time.Duration([]int{2, 3, 1}[i]) * time.Hour)
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.prune(250); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"old": true, "older": false, "new": true} {
		if _, err := os.Stat(c.path(name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
