package dwarf

import (
	"context"
	"os"
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
	s, err := openSections(f, 1<<30)
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
	key, err := indexKey(ctx, s, f)
	if err != nil {
		t.Fatal(err)
	}
	other, otherFile := indexed(t, "rev")
	if k, err := indexKey(ctx, other, otherFile); err != nil || k == key {
		t.Fatalf("another program has the key %s, %v", k, err)
	}

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
