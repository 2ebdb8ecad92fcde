package elffile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"ccagent/internal/testprog"
)

// nameHash opens the hash table of a stripped program, and gives the program's bytes, which the
// file reads.
func nameHash(t *testing.T) ([]byte, *File, *NameHash) {
	t.Helper()
	exe, err := os.ReadFile("/bin/bash")
	if err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: err.Error()})
	}
	f, err := Open(bytes.NewReader(exe), int64(len(exe)))
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.NameHash()
	if err != nil {
		t.Fatal(err)
	}
	if h == nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a stripped, dynamically linked /bin/bash"})
	}
	return exe, f, h
}

// The hash table of a stripped program finds each of its dynamic symbols as the table has it, and
// nothing else.
func TestNameHash(t *testing.T) {
	_, f, h := nameHash(t)
	all, err := f.Symbols(1 << 26)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d symbols, %v", len(all), err)
	}
	for _, want := range all {
		if got, found, err := h.Find(want.Name); err != nil || !found || got != want {
			t.Fatalf("%q: %+v, %v, %v, want %+v", want.Name, got, found, err, want)
		}
		if _, found, err := h.Find(want.Name + "?"); found || err != nil {
			t.Fatalf("%q: found %v, %v", want.Name+"?", found, err)
		}
	}
}

// A table that is damaged anywhere gives the symbol itself, none, or a FormatError; without chains
// it finds nothing.
func TestDamagedNameHash(t *testing.T) {
	exe, f, h := nameHash(t)
	all, err := f.Symbols(1 << 26)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d symbols, %v", len(all), err)
	}
	var refused *FormatError
	check := func(what string, want Symbol) (found bool, err error) {
		t.Helper()
		h, err := f.NameHash()
		if err == nil && h == nil {
			t.Fatalf("%s: there is no table", what)
		}
		var got Symbol
		if err == nil {
			got, found, err = h.Find(want.Name)
		}
		if err != nil && (found || !errors.As(err, &refused)) || found && got != want {
			t.Fatalf("%s: %q is %+v, %v, %v", what, want.Name, got, found, err)
		}
		return found, err
	}
	for i, n := int(h.buckets)-16, 0; i+4 <= int(h.end); i, n = i+4, n+1 {
		whole := bytes.Clone(exe[i : i+4])
		copy(exe[i:], "\xfe\xff\xff\xff")
		_, _ = check(fmt.Sprintf("damage at %#x", i), all[n%len(all)])
		copy(exe[i:], whole)
	}
	buckets := exe[h.buckets:h.chains]
	whole := bytes.Clone(buckets)
	for fill, name := range map[byte]string{0: "empty buckets", 0xff: "buckets beyond the table"} {
		for i := range buckets {
			buckets[i] = fill
		}
		for _, want := range all {
			if found, err := check(name, want); found || (fill != 0) != (err != nil) {
				t.Fatalf("%s: %q: found %v, %v", name, want.Name, found, err)
			}
		}
	}
	copy(buckets, whole)
}
