package worker

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ccagent/internal/sandbox"
	"ccagent/internal/testprog"
)

// A table comes back from the cache without a child as it was made, not for a file that has
// changed, and not once the kept file is damaged or others may have written to it.
func TestUnwindCache(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "rev")
	program, err := os.ReadFile(testprog.Build(t, "rev", testprog.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		if err := os.WriteFile(exe, program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write()
	cache := &UnwindCache{Dir: filepath.Join(t.TempDir(), "index"), UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	compile := func() (table UnwindTable, kept bool) {
		f, err := os.Open(exe)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		before := sandbox.CPUTime()
		CompileUnwind(t.Context(), cache, []*os.File{f}, func(_ int, u UnwindTable) { table = u })
		if table.Err != nil {
			t.Fatal(table.Err)
		}
		return table, sandbox.CPUTime() == before
	}
	first, kept := compile()
	if kept || len(first.Rows) == 0 {
		t.Fatalf("the first table has %d bytes of rows; kept: %t", len(first.Rows), kept)
	}
	second, kept := compile()
	if !kept || second.Base != first.Base || !bytes.Equal(first.Rows, second.Rows) || !bytes.Equal(first.Rules, second.Rules) {
		t.Errorf("another table came back; kept: %t", kept)
	}
	write()
	if _, kept := compile(); kept {
		t.Error("the table of a file was given for what was written over it")
	}
	names, err := filepath.Glob(filepath.Join(cache.Dir, "*"))
	if err != nil || len(names) != 2 {
		t.Fatalf("the cache has %v (%v)", names, err)
	}
	for what, harm := range map[string]func(path string) error{
		"writable by its group": func(path string) error { return os.Chmod(path, 0o620) },
		"damaged": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[len(b)/2] ^= 1
			return os.WriteFile(path, b, 0o600)
		},
	} {
		if _, kept := compile(); !kept {
			t.Fatalf("the table is not found before its file is %s", what)
		}
		for _, name := range names {
			if err := harm(name); err != nil {
				t.Fatal(err)
			}
		}
		if _, kept := compile(); kept {
			t.Errorf("a table was used whose file is %s", what)
		}
	}
}

// A kept table is whole and well-formed, or an error.
func FuzzDecodeUnwind(f *testing.F) {
	row := []byte{0, 0, 0, 0, 0, 0, 0, 0}
	rule := make([]byte, 32)
	f.Add(encodeUnwind(&UnwindTable{Base: 0x1000, Rows: row, Rules: rule}))
	f.Add(encodeUnwind(&UnwindTable{Rows: append(row, row...), Rules: rule}))
	f.Add(encodeUnwind(&UnwindTable{}))
	f.Add(encodeUnwind(&UnwindTable{Rows: row, Rules: rule, Paged: true, Pages: []UnwindPage{{0, row}, {7, nil}}}))
	f.Add([]byte(unwindMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := decodeUnwind(b)
		if err == nil && table.check() != nil {
			t.Errorf("%x has %v", b, table.check())
		}
		if err == nil && !bytes.Equal(encodeUnwind(&table), b) {
			t.Errorf("%x was read as another table", b)
		}
	})
}
