package binary

import (
	"ccagent/internal/testprog"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// opened opens a file for the length of a test.
func opened(tb testing.TB, path string) (*os.File, int64) {
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
	return f, st.Size()
}

// Release, way and the evidence that a binary holds are found in the file alone, also of
// a stripped one.
func TestIdentify(t *testing.T) {
	_, version := testprog.GHC(t, "")
	for _, c := range []struct {
		name string
		opt  testprog.Options
		way  string
		want func(b *Info) bool
	}{
		{"plain", testprog.Options{}, "rts_v", func(b *Info) bool { return b.HasDWARF && b.HasNotes && b.HasSymtab && b.RTS }},
		{"threaded", testprog.Options{Threaded: true}, "rts_thr", func(b *Info) bool { return b.Threaded() && !b.Profiled() }},
		{"profiling", testprog.Options{Prof: true, Threaded: true}, "rts_thr_p", func(b *Info) bool { return b.Profiled() }},
		{"no-debug", testprog.Options{NoDebug: true}, "rts_v", func(b *Info) bool { return !b.HasNotes && b.HasSymtab }},
		{"stripped", testprog.Options{Strip: true}, "rts_v", func(b *Info) bool { return !b.HasDWARF && !b.HasSymtab && b.RTS }},
		{"lines only", testprog.Options{NoDebug: true, Flags: []string{"-g1"}}, "rts_v", func(b *Info) bool { return b.HasDWARF && !b.HasNotes }},
		{"dynamic", testprog.Options{Dynamic: true, Threaded: true}, "rts_thr_dyn", func(b *Info) bool { return b.DynamicHaskell && !b.RTS && b.Threaded() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, size := opened(t, testprog.Build(t, "rev", c.opt))
			b, err := Identify(f, size)
			if err != nil {
				t.Fatal(err)
			}
			if !b.GHC || b.GHCVersion != version || string(b.Way) != c.way || len(b.BuildID) == 0 || !c.want(&b) {
				t.Errorf("%+v; want GHC %s, way %s", b, version, c.way)
			}
		})
	}
	t.Run("without section headers", func(t *testing.T) {
		b, err := os.ReadFile(testprog.Build(t, "rev", testprog.Options{Strip: true}))
		if err != nil {
			t.Fatal(err)
		}
		clear(b[40:48]) // e_shoff
		clear(b[58:64])
		path := filepath.Join(t.TempDir(), "prog")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		f, size := opened(t, path)
		got, err := Identify(f, size)
		if err != nil || got.GHCVersion != version || got.Way != "rts_v" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("not Haskell", func(t *testing.T) {
		f, size := opened(t, testprog.NeedTool(t, "true", "coreutils"))
		if b, err := Identify(f, size); err != nil || b.GHC || b.Arch == "" {
			t.Errorf("%+v, %v", b, err)
		}
	})
	t.Run("not ELF", func(t *testing.T) {
		if _, err := Identify(strings.NewReader("#!/bin/sh\n"), 10); !errors.Is(err, ErrNotELF) {
			t.Error(err)
		}
	})
}
