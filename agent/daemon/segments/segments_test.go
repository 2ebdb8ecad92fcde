package segments

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ccagent/eventlog"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// write makes pieces of 10 bytes, one a minute.
func write(t *testing.T, f *Folder, n int) (paths []string) {
	t.Helper()
	for i := range n {
		at := noon.Add(time.Duration(i) * time.Minute)
		path, err := nameOf(f, "api", 7, at)
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
		pieces, bytes, err := f.Retain(l, now.Sub, written)
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

// A piece that is written again once it is closed, as with names that were missing, is as old as that makes it,
// and one that others have removed is no error.
func TestRetentionOfChangedPieces(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	paths := write(t, f, 4)
	retain := func(l Limits, want int) {
		t.Helper()
		now := noon.Add(4 * time.Minute)
		if pieces, bytes, err := f.Retain(l, now.Sub, func(string) bool { return false }); err != nil || pieces != want || bytes != int64(10*want) {
			t.Errorf("%d pieces of %d bytes are left, want %d; %v", pieces, bytes, want, err)
		}
	}
	retain(Limits{}, 4)
	late := noon.Add(4 * time.Minute)
	if err := os.Chtimes(paths[0], late, late); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	retain(Limits{Age: 150 * time.Second}, 3)
	if _, err := os.Stat(paths[0]); err != nil {
		t.Errorf("the piece that was written again: %v", err)
	}
	retain(Limits{Bytes: 10}, 1)
	if _, err := os.Stat(paths[0]); err != nil {
		t.Errorf("the youngest piece: %v", err)
	}
}

// What retention takes each time with a day's pieces of a few processes.
func BenchmarkRetain(b *testing.B) {
	f, err := Open(filepath.Join(b.TempDir(), "state"))
	if err != nil {
		b.Fatal(err)
	}
	for i := range 20_000 {
		path, err := nameOf(f, "api", uint32(i%16), noon.Add(time.Duration(i)*time.Second))
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	retain := func() {
		if n, _, err := f.Retain(Limits{Age: time.Hour}, time.Since, func(string) bool { return false }); n != 20_000 || err != nil {
			b.Fatal(n, err)
		}
	}
	retain() // lists them
	for b.Loop() {
		retain()
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
		path, err := nameOf(f, "../../etc", 7, noon)
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

// A piece that was cut off is unfinished, also where the cut leaves the bytes of an end marker.
func TestUnfinished(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, nil)
	if err := w.Write(1, eventlog.NoCap, &eventlog.Sample{Weight: 1<<64 - 1, TSO: 1<<64 - 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := log.Bytes()
	cut := bytes.LastIndex(whole[:len(whole)-2], []byte{0xff, 0xff})
	if cut < 0 {
		t.Fatal("the event has no such bytes")
	}
	want := []string{}
	for i, text := range [][]byte{whole, whole[:cut+2], whole[:len(whole)-2]} {
		path, err := nameOf(f, "api", uint32(i+1), noon)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			want = append(want, path)
		}
	}
	got, err := f.Unfinished()
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("unfinished are %q, want %q; %v", got, want, err)
	}
}

// nameOf is what a piece is called.
func nameOf(f *Folder, service string, pid uint32, start time.Time) (name string, err error) {
	err = f.Create(service, pid, start, func(path string) error {
		name = path
		return nil
	})
	return name, err
}
