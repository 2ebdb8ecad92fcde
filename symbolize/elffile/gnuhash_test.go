package elffile

import (
	"bytes"
	"os"
	"testing"
)

// The hash table of a stripped program finds each of its dynamic symbols as the table has it, and
// nothing else.
func TestNameHash(t *testing.T) {
	exe, err := os.ReadFile("/bin/bash")
	if err != nil {
		t.Skipf("unsupported: %v", err)
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
		t.Skip("unsupported: needs a stripped, dynamically linked /bin/bash")
	}
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
	// Whatever the table says, no look-up fails in another way or takes long.
	at := bytes.Index(exe, []byte("/bin/sh"))
	for i := int(h.buckets) - 16; i < int(h.end) && at != 0; i += 4 {
		damaged := bytes.Clone(exe[i : i+4])
		copy(exe[i:], "\xfe\xff\xff\xff")
		if h, err := f.NameHash(); err == nil && h != nil {
			_, _, _ = h.Find(all[i%len(all)].Name)
		}
		copy(exe[i:], damaged)
	}
}
