package snapshot

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A snapshot and its golden stack are the same after being written to a build's archives
// and read again.
func TestArchives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "9.0.2", "O2")
	want := Recorded{Name: "mid-adjustment", Snapshot: example(), Golden: []byte("# comment\nstop 0x1  a\n")}
	if err := WriteArchives(path, []Recorded{want, {Name: "empty", Snapshot: &Snapshot{Arch: ARM64, Registers: make([]uint64, 34)}}}); err != nil {
		t.Fatal(err)
	}
	snapshots, goldens, err := OpenArchives(path)
	if err != nil {
		t.Fatal(err)
	}
	for fsys, pattern := range map[fs.FS]string{snapshots: "*.snap", goldens: "*.txt"} {
		if names, err := fs.Glob(fsys, pattern); err != nil || len(names) != 2 {
			t.Errorf("files %s: %v, %v", pattern, names, err)
		}
	}
	data, err := fs.ReadFile(snapshots, "mid-adjustment.snap")
	if err != nil {
		t.Fatal(err)
	}
	got := Recorded{Name: want.Name}
	if got.Snapshot, err = Decode(data); err != nil {
		t.Fatal(err)
	}
	if got.Golden, err = fs.ReadFile(goldens, "mid-adjustment.txt"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read other than written:\n%s", d)
	}
}
