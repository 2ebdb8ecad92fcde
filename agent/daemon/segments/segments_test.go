package segments

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// write makes pieces of 10 bytes, one a minute.
func write(t *testing.T, f *Folder, n int) (paths []string) {
	t.Helper()
	for i := range n {
		at := noon.Add(time.Duration(i) * time.Minute)
		path, err := f.Name("api", 7, at)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// The oldest pieces go first, by bytes and by age, but not one that is being written.
func TestRetention(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	paths := write(t, f, 5)
	foreign := filepath.Join(filepath.Dir(paths[0]), "notes.txt")
	if err := os.WriteFile(foreign, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	written := func(path string) bool { return path == paths[0] }
	check := func(l Limits, now time.Time, want ...int) {
		t.Helper()
		pieces, bytes, err := f.Retain(l, now, written)
		if err != nil || pieces != len(want) || bytes != int64(10*len(want)) {
			t.Errorf("%d pieces of %d bytes are left, want %d; %v", pieces, bytes, len(want), err)
		}
		for _, i := range want {
			if _, err := os.Stat(paths[i]); err != nil {
				t.Errorf("piece %d: %v", i, err)
			}
		}
	}
	check(Limits{}, noon.Add(time.Hour), 0, 1, 2, 3, 4)
	check(Limits{Bytes: 45}, noon, 0, 2, 3, 4)
	check(Limits{Age: time.Minute}, noon.Add(4*time.Minute), 0, 3, 4)
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a file that is no piece: %v", err)
	}
}

// Names are unique, and those of services are no way out of the folder.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		path, err := f.Name("../../etc", 7, noon)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(filepath.Dir(path)) != dir {
			t.Errorf("%s is not below %s", path, dir)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := f.Pieces()
	if err != nil || len(all) != 2 || all[0].PID != 7 || !all[0].Start.Equal(noon) || !all[1].Start.Equal(noon) {
		t.Errorf("the pieces are %+v, %v", all, err)
	}
}
