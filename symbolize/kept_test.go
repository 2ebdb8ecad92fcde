package symbolize

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ccagent/internal/testprog"
	"ccagent/symbolize/evidence/dwarf"
)

// openedCache counts what it has given.
type openedCache struct {
	dwarf.DirCache
	given int
}

func (c *openedCache) Open(module uint32, key string) *os.File {
	f := c.DirCache.Open(module, key)
	if f != nil {
		c.given++
	}
	return f
}

// holds reports whether a part is in one of its files.
func (c *openedCache) holds(t *testing.T, part string) bool {
	files, err := filepath.Glob(filepath.Join(c.Dir, "*.index"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(part)) {
			return true
		}
	}
	return false
}

// What was kept of a program's symbols gives the names that reading them anew does, of other addresses than those for which
// it was kept; damaged, it is not believed.
func TestKeptSymbols(t *testing.T) {
	for _, c := range []struct {
		name, program string
		options       testprog.Options
	}{
		{"notes", "example", testprog.Options{}},
		{"symbols", "rev", testprog.Options{NoDebug: true}},
		{"stripped", "rev", testprog.Options{Release: "9.6.6", NoDebug: true, Strip: true}},
		{"C with lines", "ffi", testprog.Options{}},
		{"info table map", "example", testprog.Options{Release: "9.6.6", NoDebug: true, Flags: []string{"-finfo-table-map"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe := testprog.Build(t, c.program, c.options)
			all := codeAddresses(t, exe, 4)
			var first, others []Address
			for i, a := range all {
				if i%997 == 0 {
					first = append(first, a)
				} else if i%97 == 0 {
					others = append(others, a)
				}
			}
			if !c.options.Strip {
				thunk := symbolAddress(t, exe, "stg_ap_2_upd_info")
				first, others = append(first, Address{Addr: thunk}), append(others, Address{Addr: thunk})
			}
			cache := &openedCache{DirCache: dwarf.DirCache{Dir: filepath.Join(t.TempDir(), "index"), Owner: os.Geteuid()}}
			want, _ := resolve(t, Job{Modules: []Module{module(t, exe, others...)}})
			same := func(what string, opened bool) {
				t.Helper()
				cache.given = 0
				got, _ := resolve(t, Job{Modules: []Module{module(t, exe, others...)}, Cache: cache})
				if (cache.given > 0) != opened {
					t.Errorf("%s: %d files of the cache were opened", what, cache.given)
				}
				for _, a := range others {
					if got, want := got.describe(a.Addr, 0), want.describe(a.Addr, 0); got != want {
						t.Fatalf("%s: %#x is\n%s\nand was\n%s", what, a.Addr, got, want)
					}
				}
			}
			cache.given = 0
			resolve(t, Job{Modules: []Module{module(t, exe, first...)}, Cache: cache})
			if notes := c.name == "notes" || c.name == "C with lines"; cache.holds(t, "makers") != notes {
				t.Errorf("where thunks are made is kept: %v", !notes)
			}
			same("kept", true)
			same("kept again", true)
			files, err := filepath.Glob(filepath.Join(cache.Dir, "*.index"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%d files were kept: %v", len(files), err)
			}
			for _, path := range files {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				text[len(text)/2] ^= 0x40
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			same("damaged", true)
			for _, path := range files {
				if err := os.Chmod(path, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			same("open to others", false)
			for _, path := range files {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v was not made anew: %v", info.Mode(), err)
				}
				if text, err := os.ReadFile(path); err != nil || len(bytes.TrimSpace(text)) == 0 {
					t.Error("it is empty")
				}
			}
		})
	}
}
